//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/events"
)

// A process that takes part in a test connects to the test, sends its arguments, and keeps the connection. The
// connection ends when the process, and all processes to which it passed the connection, have ended.

const slowTests = `package slow

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	c, err := net.Dial("tcp", os.Getenv("CONNECT_TO"))
	if err != nil {
		panic(err)
	}
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		panic(err)
	}
	if os.Getenv("NO_CHILD") == "" {
		child := exec.Command("sleep", "600")
		child.ExtraFiles = []*os.File{f}
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	fmt.Fprintln(c, strings.Join(os.Args, " "))
	m.Run()
}

func TestFails(t *testing.T) { t.Error("wrong") }

func TestSlow(t *testing.T) {
	t.TempDir()
	done := make(chan bool)
	go close(done)
	<-done
}

func TestUnseen(t *testing.T) {}
`

// slow is coir, which runs slowTests.
type slow struct {
	*exec.Cmd
	out, errs bytes.Buffer
	temp      string // its temporary files
	listener  net.Listener
}

func startSlow(t *testing.T, args func(address string) []string) *slow {
	t.Helper()
	module(t, map[string]string{
		"slow/slow_test.go": slowTests,
		"then/then_test.go": "package then\n\nimport \"testing\"\n\nfunc TestThen(*testing.T) {}\n",
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := &slow{temp: t.TempDir(), listener: l}
	s.Cmd = command(t, append([]string{"test", "-p=1", "-budget=1h"}, args(l.Addr().String())...)...)
	s.Env = append(s.Env, "TMPDIR="+s.temp, "CONNECT_TO="+l.Addr().String())
	s.Stdout, s.Stderr = &s.out, &s.errs
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = s.Process.Kill()
			t.Logf("coir printed\n%s%s", &s.out, &s.errs)
		}
	})
	return s
}

// connected waits until a process connects that has the text in its arguments.
func (s *slow) connected(t *testing.T, text string) net.Conn {
	t.Helper()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, text) {
			return c
		}
	}
}

// hasEnded waits until the processes that have a connection have ended.
func hasEnded(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a process has not ended: %d, %v", n, err)
	}
}

// A signal ends coir test and all processes that it has started. coir test prints the results so far, never prints "ok"
// for the interrupted package, and leaves no files.
func TestSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	for _, c := range []struct {
		signal syscall.Signal
		code   int
		args   []string
	}{
		{syscall.SIGINT, 130, nil},
		{syscall.SIGTERM, 143, nil},
		{syscall.SIGHUP, 129, []string{"-json"}},
		{syscall.SIGINT, 130, []string{"-for=1h"}},
	} {
		t.Run(strings.Join(append([]string{c.signal.String()}, c.args...), " "), func(t *testing.T) {
			s := startSlow(t, func(string) []string { return append(c.args, "-keep="+t.TempDir(), "./slow", "./then") })
			running := s.connected(t, "-test.run=^TestSlow$")
			if err := s.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = s.Wait()
			hasEnded(t, running)
			if code := s.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if files, err := os.ReadDir(s.temp); err != nil || len(files) > 0 {
				t.Errorf("%v are left, %v", files, err)
			}
			out := s.out.String()
			if slices.Contains(c.args, "-json") {
				out = outputs(t, &s.out)
			}
			for _, want := range []string{
				"--- FAIL: TestFails (", "slow_test.go:32: wrong\n", "--- INTERRUPTED: TestSlow (",
				"\nFAIL\texample.com/m/slow\tinterrupted, 1 test, ",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("there is no %q in\n%s", want, out)
				}
			}
			if strings.Contains(out, "ok  \t") || strings.Contains(out, "TestUnseen") {
				t.Errorf("a package is ok in\n%s", out)
			}
			if want := "coir test: interrupted by a signal (" + c.signal.String() + ")"; !strings.Contains(s.errs.String(), want) {
				t.Errorf("there is no %q in\n%s", want, &s.errs)
			}
		})
	}
}

// An interrupted run also writes the report and the summary. They have the results so far, and say that they are not
// complete.
func TestSignalsInCI(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	report := filepath.Join(t.TempDir(), "report.xml")
	summary := onGitHub(t, t.TempDir())
	s := startSlow(t, func(string) []string { return []string{"-junit=" + report, "./slow", "./then"} })
	running := s.connected(t, "-test.run=^TestSlow$")
	if all := readJUnit(t, report); all.Tests != 0 {
		t.Errorf("before a package has ended there is a report %+v", all)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	hasEnded(t, running)
	if code := s.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
	all := readJUnit(t, report)
	if c := all.find(t, "example.com/m/slow", "TestFails"); c.Failure == nil {
		t.Errorf("TestFails is %+v; want its failure", c)
	}
	if e := all.find(t, "example.com/m/slow", "TestSlow").Error; e == nil || e.Message != "interrupted" {
		t.Errorf("the error of TestSlow is %+v; want interrupted", e)
	}
	e := all.find(t, "coir test", "the results are not complete").Error
	if e == nil || !strings.HasPrefix(e.Text, "interrupted by a signal (terminated)") || all.Tests != 3 {
		t.Errorf("%+v, %+v", all, e)
	}
	text, err := os.ReadFile(summary)
	for _, want := range []string{
		"| example.com/m/slow | 1 | ", " | interrupted |\n", "\n### TestFails (", "interrupted by a signal (terminated)",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in the summary\n%s, %v", want, text, err)
		}
	}
}

// outputs returns the output of the events of -json. The last event must say that the package has failed.
func outputs(t *testing.T, lines io.Reader) string {
	t.Helper()
	var all strings.Builder
	var e events.Event
	for d := json.NewDecoder(lines); d.More(); {
		e = events.Event{}
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		all.WriteString(e.Output)
	}
	if e.Action != "fail" || e.Test != "" {
		t.Errorf("the last event is %+v", e)
	}
	return all.String()
}

// A signal also ends the go command and the processes that it runs.
func TestSignalsInABuild(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			s := startSlow(t, func(address string) []string {
				return []string{"-toolexec=" + self + " -stall " + address, "./slow"}
			})
			running := s.connected(t, "compile")
			if err := s.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = s.Wait()
			hasEnded(t, running)
			if code := s.ProcessState.ExitCode(); code != 128+int(signal) || s.out.Len() > 0 {
				t.Errorf("exit code %d\n%s%s", code, &s.out, &s.errs)
			}
			if files, err := os.ReadDir(s.temp); err != nil || len(files) > 0 {
				t.Errorf("%v are left, %v", files, err)
			}
		})
	}
}

// acting is a writer that calls a function when something is written.
type acting struct {
	bytes.Buffer
	act func()
}

func (a *acting) Write(b []byte) (int, error) {
	a.act()
	return a.Buffer.Write(b)
}

// After an announced build is interrupted or killed, no message says how long it took.
func TestInterruptedBuildIsNotDone(t *testing.T) {
	for _, name := range []string{"interrupted", "killed"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			goCommand, pipe := filepath.Join(dir, "go"), filepath.Join(dir, "pipe")
			script := "#!/bin/sh\nread line < " + pipe + "\nkill -KILL $$\n"
			if err := errors.Join(syscall.Mkfifo(pipe, 0o666), os.WriteFile(goCommand, []byte(script), 0o777)); err != nil {
				t.Fatal(err)
			}
			to, err := os.OpenFile(pipe, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = to.Close() }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			errs := acting{act: cancel}
			if name == "killed" {
				errs.act = func() { _, _ = io.WriteString(to, "now\n") }
			}
			tool := &tool{goCommand: goCommand, overlay: filepath.Join(dir, "overlay.json"), cache: dir, temp: dir}
			b := tool.build(ctx, &options{}, &pkg{ImportPath: "example.com/m"}, filepath.Join(dir, "m.test"), &errs)
			if want := "coir test: " + firstBuild + "\n"; b.why != "build failed" || errs.String() != want {
				t.Errorf("%s, and it prints %q, want %q", b.why, errs.String(), want)
			}
		})
	}
}

// If coir is killed, the test ends, too, and the next run removes the files.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills a process with its parent")
	}
	t.Setenv("NO_CHILD", "1") // the child would not end
	s := startSlow(t, func(string) []string { return []string{"./slow"} })
	running := s.connected(t, "-test.run=^TestSlow$")
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	hasEnded(t, running)
	var out, errs bytes.Buffer
	t.Setenv("TMPDIR", s.temp)
	if files, err := os.ReadDir(s.temp); err != nil || len(files) != 1 {
		t.Errorf("%v are left, %v", files, err)
	}
	if code := run([]string{"test", "./then"}, &out, &errs); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
	if files, err := os.ReadDir(s.temp); err != nil || len(files) > 0 {
		t.Errorf("%v are left, %v", files, err)
	}
}
