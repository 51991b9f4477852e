//go:build unix

// Package server starts PostgreSQL servers for tests.
package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Server is a PostgreSQL server that listens on a Unix socket only.
type Server struct {
	DSN string // how to connect to it

	bin, dir string
	settings []string
	as       *syscall.SysProcAttr
	cmd      *exec.Cmd
	in       io.WriteCloser
	ended    chan struct{} // is closed when the server has ended
}

// ErrNotInstalled means that there is no PostgreSQL on this machine.
var ErrNotInstalled = errors.New("PostgreSQL is not installed: postgres is neither in the path nor in " +
	"/usr/lib/postgresql. On Debian, apt-get install postgresql brings it")

// Start starts a server with settings such as "fsync=off".
func Start(settings ...string) (*Server, error) {
	return start(settings, "initdb", "-U", "coir", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8")
}

// Standby starts a standby of the server with the given name.
func (s *Server) Standby(name string) (*Server, error) {
	return start(nil, "pg_basebackup", "-R", "--no-sync", "-c", "fast", "-d", s.DSN+" application_name="+name)
}

// Promote makes a standby a server of its own.
func (s *Server) Promote() error { return s.command("pg_ctl", "promote", "-w") }

// Kill ends the server as a failure does.
func (s *Server) Kill() {
	_, _ = io.WriteString(s.in, "kill\n") // it fails if the server has ended
	<-s.ended
}

// Without stops the server, calls f, and starts the server again.
func (s *Server) Without(f func()) error {
	_ = s.in.Close() // it fails if the server has ended
	<-s.ended
	_ = s.cmd.Wait() // the same
	f()
	s.ended = make(chan struct{})
	return s.run()
}

// Stop ends the server, and removes its directory.
func (s *Server) Stop() error {
	if s.cmd != nil {
		_ = s.in.Close() // it fails if the server has ended
		<-s.ended
		_ = s.cmd.Wait() // the same
	}
	return os.RemoveAll(s.dir)
}

// start makes the data of a server by a command, and starts the server.
func start(settings []string, name string, args ...string) (*Server, error) {
	s := &Server{settings: settings, ended: make(chan struct{})}
	var err error
	if s.bin, err = installed(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil { // the path of a socket must be short
		return nil, err
	}
	s.DSN = "host=" + s.dir + " user=coir dbname=postgres"
	if s.as, err = unprivileged(s.dir); err == nil {
		err = s.command(name, args...)
	}
	if err == nil {
		err = s.run()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command runs a command of PostgreSQL about the data of the server.
func (s *Server) command(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), append(args, "-D", s.data())...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("server: %s: %w\n%s", name, err, out)
	}
	return nil
}

// script stops the server when its input ends, so that no server is left behind if the test is killed. It closes its
// own standard error, so that standard error ends when the server does.
const script = `"$0" "$@" & exec 2>&-; read -r how; [ "$how" = kill ] && kill -KILL $! || kill -INT $!; wait $!`

// run starts the server, and waits until it accepts connections.
func (s *Server) run() error {
	args := []string{"-c", script, filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir, "-c", "listen_addresses="}
	for _, set := range s.settings {
		args = append(args, "-c", set)
	}
	cmd := exec.Command("sh", args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	lines := bufio.NewScanner(log)
	var said strings.Builder
	ready := false
	for !ready && lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		ready = strings.Contains(lines.Text(), "ready to accept") // connections, or read-only ones
	}
	go func() {
		defer close(s.ended)
		_, _ = io.Copy(io.Discard, log)
	}()
	if !ready {
		return fmt.Errorf("server: PostgreSQL did not start:\n%s", said.String())
	}
	return nil
}

// installed returns the directory of the programs. Debian has one for each version, which is not in the path.
func installed() (string, error) {
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); err == nil && len(found) > 0 {
		return filepath.Dir(found[len(found)-1]), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", ErrNotInstalled
	}
	return filepath.Dir(path), nil
}

// unprivileged returns how to run PostgreSQL, which refuses to run as root, and gives it the directory.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	as := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return &syscall.SysProcAttr{Credential: as}, os.Chown(dir, int(uid), int(gid))
}
