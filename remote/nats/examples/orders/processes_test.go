package main

import (
	"bufio"
	"os"
	"testing"

	"github.com/coir-go/coir/remote/nats/examples/internal/processes"
)

// TestMain lets the test binary act as the processes that TestTwoProcesses starts.
func TestMain(m *testing.M) { processes.Main(m, main) }

// The program on a server: orders that are sent before a receiver starts and while it runs are received.
func TestTwoProcesses(t *testing.T) {
	process := processes.Start(t)
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
