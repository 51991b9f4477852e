package main

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestMain lets the test binary act as the processes that TestFirst starts.
func TestMain(m *testing.M) {
	if os.Getenv("NATS_URL") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A process stores two orders, and another one receives them.
func TestFirst(t *testing.T) {
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
	if out, err := process("tea", "milk").Output(); err != nil || string(out) != "stored tea\nstored milk\n" {
		t.Fatalf("%v: %s", err, out)
	}
	receiver := process()
	out, err := receiver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, item := range []string{"tea", "milk"} {
		if !lines.Scan() || lines.Text() != "received "+item {
			t.Errorf("%v: %q", lines.Err(), lines.Text())
		}
	}
	_ = receiver.Process.Kill()
	_ = receiver.Wait()
}
