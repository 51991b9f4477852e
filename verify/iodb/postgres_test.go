//go:build unix

package iodb

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// run stops the server when its own input ends, so that no server is left if the test is killed. It closes its own
// standard error, so that the end of that output means the end of the server.
const run = `"$0" "$@" & exec 2>&-; read -r _; kill -INT $!; wait $!`

// postgres starts a PostgreSQL that listens only on a Unix socket, and returns its data source name. The server is
// stopped when the test ends.
func postgres(t *testing.T) (dsn string) {
	t.Helper()
	server := installed(t)
	dir, err := os.MkdirTemp("", "pg") // not t.TempDir: the path of a socket must be short, and open to another user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	as := unprivileged(t, dir)
	data := filepath.Join(dir, "data")
	cmd := exec.Command(filepath.Join(filepath.Dir(server), "initdb"), "-D", data,
		"-U", "coir", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8")
	cmd.Dir, cmd.SysProcAttr = dir, as
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}

	cmd = exec.Command("sh", "-c", run, server, "-D", data, "-k", dir, "-c", "listen_addresses=", "-F")
	cmd.Dir, cmd.SysProcAttr = dir, as
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	var said strings.Builder
	ready := false
	for !ready && lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		ready = strings.Contains(lines.Text(), "ready to accept connections")
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		_, _ = io.Copy(io.Discard, log)
	}()
	t.Cleanup(func() {
		_ = stop.Close()
		<-rest
		if err := cmd.Wait(); err != nil && ready {
			t.Errorf("PostgreSQL: %v", err)
		}
	})
	if !ready {
		t.Fatalf("PostgreSQL did not start:\n%s", said.String())
	}
	return "host=" + dir + " user=coir dbname=postgres"
}

// installed finds the server. Debian has it in a directory for each version, which is not in the path.
func installed(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("postgres"); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed: postgres is neither in the path nor in /usr/lib/postgresql. " +
			"On Debian, apt-get install postgresql brings it.")
	}
	return found[len(found)-1]
}

// unprivileged returns the attributes to run PostgreSQL as another user, because it refuses to run as root, and makes
// that user the owner of the directory.
func unprivileged(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
