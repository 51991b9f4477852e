package main

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestMain lets the test binary act as the processes that TestTwoProcesses starts.
func TestMain(m *testing.M) {
	if os.Getenv("NATS_URL") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The program on a server: orders that are sent before a receiver starts and while it runs are received.
func TestTwoProcesses(t *testing.T) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	process := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), "NATS_URL="+s.ClientURL())
		cmd.Stderr = os.Stderr
		return cmd
	}
	sends := func(item string) {
		out, err := process(item).Output()
		if err != nil || string(out) != "stored "+item+"\n" {
			t.Fatalf("%v: %s", err, out)
		}
	}
	sends("tea")
	receiver := process()
	out, err := receiver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	receives := func(item string) {
		if !lines.Scan() || lines.Text() != "received "+item {
			t.Fatalf("%v: %q", lines.Err(), lines.Text())
		}
	}
	receives("tea")
	sends("milk")
	receives("milk")
	if err := receiver.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := receiver.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}
