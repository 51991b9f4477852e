package netio

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

// A wake after the poller has ended writes nothing, because the number of its eventfd may belong to another file.
func TestLateWake(t *testing.T) {
	p := new(poller)
	if err := p.kernel.open(); err != nil {
		t.Fatal(err)
	}
	p.wake() // this wake does write
	if n := p.kernel.wait(&p.events, true); n != 0 {
		t.Errorf("%d events", n)
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[0])
	defer syscall.Close(pipe[1])
	p.end()
	for fd := -1; fd < p.kernel.waker; { // the system assigns the lowest free number
		var err error
		if fd, err = syscall.Dup(pipe[1]); err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
	}
	p.wake()
	if n, err := syscall.Read(pipe[0], make([]byte, 8)); err != syscall.EAGAIN {
		t.Errorf("wake wrote %d bytes to another file: %v", n, err)
	}
}

// A timer that fires late, for an earlier deadline, does not affect a later deadline.
func TestFarDeadline(t *testing.T) {
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[1])
	d := newDescriptor(pipe[0], "a pipe", readVerb)
	defer func() { _ = d.close() }()
	if _, err := syscall.Write(pipe[1], make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	for _, far := range []time.Time{
		time.Now().Add(time.Hour),
		time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(1<<60, 0),
	} {
		if err := d.setDeadline(&d.r, far); err != nil {
			t.Fatal(err)
		}
		d.expire(&d.r) // as the timer does
		if _, err := d.read(context.Background(), make([]byte, 1), stream); err != nil {
			t.Errorf("deadline %v: %v", far, err)
		}
	}
	if err := d.setDeadline(&d.r, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.read(context.Background(), make([]byte, 1), stream); err != os.ErrDeadlineExceeded {
		t.Error(err)
	}
}
