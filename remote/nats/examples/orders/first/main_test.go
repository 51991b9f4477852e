package main

import (
	"bufio"
	"testing"

	"github.com/coir-go/coir/remote/nats/examples/internal/processes"
)

// TestMain lets the test binary act as the processes that TestFirst starts.
func TestMain(m *testing.M) { processes.Main(m, main) }

// A process stores two orders, and another one receives them.
func TestFirst(t *testing.T) {
	process := processes.Start(t)
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
