package network

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func makePipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func TestPipe(t *testing.T) {
	r, w := makePipe(t)
	go func() {
		for range 100 {
			_, _ = w.WriteString(strings.Repeat("x", 1000)) // more than it holds
		}
		_ = w.Close()
	}()
	if b, err := io.ReadAll(r); len(b) != 100_000 || err != nil {
		t.Error(len(b), err)
	}
}

func TestPipeErrors(t *testing.T) {
	r, w := makePipe(t)
	if _, err := w.Read(make([]byte, 1)); err == nil || !strings.HasSuffix(err.Error(), "bad file descriptor") {
		t.Error(err)
	}
	if _, err := r.Write([]byte("x")); err == nil || !strings.HasSuffix(err.Error(), "bad file descriptor") {
		t.Error(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Error(err)
	}
	_ = r.Close()
	if _, err := w.Write([]byte("x")); err == nil || !strings.HasSuffix(err.Error(), "broken pipe") {
		t.Error(err)
	}
}

// A short write is not divided.
func TestPipeRecords(t *testing.T) {
	r, w := makePipe(t)
	const size = 3000
	go func() {
		for range 40 {
			_, _ = w.Write(make([]byte, size))
		}
		_ = w.Close()
	}()
	for range 40 {
		if n, err := r.Read(make([]byte, size)); n != size || err != nil {
			t.Fatal(n, err)
		}
	}
}

// A line is read by another goroutine, which the test does not wait for.
//
// Expect: fail
func TestBugPipe(t *testing.T) {
	r, w := makePipe(t)
	var mu sync.Mutex
	lines := 0
	done := make(chan bool)
	go func() {
		defer close(done)
		for s := bufio.NewScanner(r); s.Scan(); {
			mu.Lock()
			lines++
			mu.Unlock()
		}
	}()
	_, _ = w.WriteString("one\n")
	_ = w.Close()
	mu.Lock()
	if lines != 1 {
		t.Errorf("%d lines", lines)
	}
	mu.Unlock()
	<-done
}

// The pipe is full, and the goroutine that could read from it waits for the writer.
//
// Expect: deadlock
func TestBugPipeFull(t *testing.T) {
	r, w := makePipe(t)
	_, _ = w.Write(make([]byte, 1<<20))
	_, _ = r.Read(make([]byte, 1))
}

func TestPipeToProcessOnKernel(t *testing.T) {
	r, w := makePipe(t)
	echo := exec.Command("echo", "hello")
	echo.Stdout = w
	if err := echo.Run(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if b, err := io.ReadAll(r); string(b) != "hello\n" || err != nil {
		t.Error(string(b), err)
	}
}

func TestSignal(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGUSR1)
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}

// Stop waits for what was sent.
func TestSignalStop(t *testing.T) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	signal.Stop(c)
	select {
	case <-c:
	default:
		t.Error("no signal")
	}
}

// A signal comes some time after it was sent, not at once.
//
// Expect: fail
func TestBugSignal(t *testing.T) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	defer signal.Stop(c)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c:
	default:
		t.Error("no signal")
	}
}
