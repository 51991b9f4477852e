// Package kernel has tests whose goroutines wait in the kernel: for sockets, pipes and processes. Those with Bug in their
// name deadlock in some schedules, or in all.
package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
)

type account struct {
	mu      sync.Mutex
	balance int
}

func transfer(from, to *account) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	from.balance--
	to.balance++
}

// serve transfers money between two accounts behind a server, there and back.
func serve(t *testing.T, there, back func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("/there", func(http.ResponseWriter, *http.Request) { there() })
	mux.HandleFunc("/back", func(http.ResponseWriter, *http.Request) { back() })
	s := httptest.NewServer(mux)
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var wg sync.WaitGroup
	for _, path := range []string{"/there", "/back"} {
		wg.Go(func() {
			resp, err := http.Get(s.URL + path)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	wg.Wait()
}

// Expect: deadlock
func TestBugLocksBehindServer(t *testing.T) {
	var a, b account
	serve(t, func() { transfer(&a, &b) }, func() { transfer(&b, &a) })
}

func TestFixedLocksBehindServer(t *testing.T) {
	var a, b account
	serve(t, func() { transfer(&a, &b) }, func() { transfer(&a, &b) })
}

func TestServerSleeps(t *testing.T) {
	serve(t, func() { time.Sleep(20 * time.Millisecond) }, func() {})
}

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (a, b net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	return a, <-accepted
}

// publish sends to a queue while it holds the lock that the reader of the queue needs.
func publish(t *testing.T, wait bool) {
	a, b := pair(t)
	var mu sync.Mutex
	queue, gone := make(chan string), make(chan bool)
	go func() { // takes the lock to leave
		defer b.Close()
		for {
			select {
			case m := <-queue:
				fmt.Fprintln(b, m)
			case <-gone:
				mu.Lock()
				defer mu.Unlock()
				return
			}
		}
	}()
	sent := make(chan bool)
	go func() {
		defer close(sent)
		mu.Lock()
		defer mu.Unlock()
		queue <- "hello"
	}()
	if wait {
		<-sent
	}
	close(gone)
	_, _ = bufio.NewReader(a).ReadString('\n')
	<-sent
	a.Close()
}

// Expect: deadlock
func TestBugSendWithLock(t *testing.T) { publish(t, false) }

func TestFixedSendWithLock(t *testing.T) { publish(t, true) }

// Expect: deadlock
func TestBugPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	start := make(chan bool)
	go func() {
		<-start
		_, _ = w.Write([]byte("x"))
	}()
	_, _ = r.Read(make([]byte, 1)) // it starts the writer afterwards
	close(start)
}

// Expect: deadlock
func TestBugClientThatDoesNotCome(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	_, _ = l.Accept()
}

// cat starts a process that repeats its input.
func cat(t *testing.T) (in io.WriteCloser, out io.Reader) {
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = c.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	return in, out
}

// Expect: deadlock
func TestBugLocksBesideProcess(t *testing.T) {
	_, out := cat(t)
	go func() { _, _ = out.Read(make([]byte, 1)) }()
	var a, b sync.RWMutex
	var wg sync.WaitGroup
	wg.Go(func() {
		a.RLock()
		defer a.RUnlock()
		b.Lock()
		defer b.Unlock()
	})
	wg.Go(func() {
		b.RLock()
		defer b.RUnlock()
		a.Lock()
		defer a.Unlock()
	})
	wg.Wait()
}

// In some schedules it asks a process that does not answer.
func TestProcessThatDoesNotAnswer(t *testing.T) {
	answers := make(chan int, 2)
	go func() { answers <- 1 }()
	go func() { answers <- 2 }()
	if first := <-answers; first == 2 {
		_, out := cat(t)
		_, _ = out.Read(make([]byte, 1))
	}
}

// The same while a goroutine waits for a lock that it has locked itself, for another one to unlock it.
func TestUnlockedByAnother(t *testing.T) {
	answers := make(chan int, 2)
	go func() { answers <- 1 }()
	go func() { answers <- 2 }()
	if first := <-answers; first == 2 {
		_, out := cat(t)
		var mu sync.Mutex
		mu.Lock()
		go func() {
			_, _ = out.Read(make([]byte, 1))
			mu.Unlock()
		}()
		mu.Lock()
	}
}

// The sender of a channel waits in the kernel.
func TestSenderReads(t *testing.T) {
	a, b := pair(t)
	defer a.Close()
	defer b.Close()
	line := make(chan string)
	go func() {
		text, _ := bufio.NewReader(a).ReadString('\n')
		line <- text
	}()
	go func() { fmt.Fprintln(b, "hello") }()
	if text := <-line; text != "hello\n" {
		t.Errorf("read %q", text)
	}
}

// A goroutine reads from the network before it is done.
func TestDoneAfterRead(t *testing.T) {
	a, b := pair(t)
	defer a.Close()
	defer b.Close()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = bufio.NewReader(a).ReadString('\n') })
	time.AfterFunc(time.Minute, func() { fmt.Fprintln(b, "hello") })
	wg.Wait()
}

// A goroutine reads from a process while it holds a lock.
func TestReadsWithLock(t *testing.T) {
	in, out := cat(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	wg.Go(func() {
		mu.Lock()
		defer mu.Unlock()
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if _, err := in.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
	})
	wg.Wait()
}

// A goroutine unlocks what another one has locked, after it has read from a process.
func TestHandsOver(t *testing.T) {
	in, out := cat(t)
	var a, b sync.Mutex
	var wg sync.WaitGroup
	a.Lock()
	wg.Go(func() {
		b.Lock()
		defer b.Unlock()
		a.Lock()
		defer a.Unlock()
	})
	wg.Go(func() {
		_, _ = in.Write([]byte("x"))
		_, _ = out.Read(make([]byte, 1))
		a.Unlock()
	})
	b.Lock()
	b.Unlock() //nolint:staticcheck // it waits for the other
	wg.Wait()
}

// A deadline ends a wait in the kernel in real time.
func TestDeadline(t *testing.T) {
	a, b := pair(t)
	defer a.Close()
	defer b.Close()
	if err := a.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// A timer comes before a deadline that is later, although that is in real time.
func TestTimerBeforeDeadline(t *testing.T) {
	a, b := pair(t)
	defer a.Close()
	defer b.Close()
	if err := a.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool)
	go func() { _, _ = a.Read(make([]byte, 1)); close(ended) }()
	select {
	case <-ended:
		t.Error("the deadline came first")
	case <-time.After(100 * time.Millisecond):
	}
	_ = a.Close()
	<-ended
}

// The other end is closed by the collector.
func TestCollected(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _ = w.Write([]byte("x"))
	w = nil
	if text, err := io.ReadAll(r); string(text) != "x" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
}

// The other end is closed by a second collection, after a finalizer that the first one has run.
func TestCollectedLater(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	holder := &struct{ w *os.File }{w}
	runtime.SetFinalizer(holder, func(any) {})
	w, holder = nil, nil
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
}

// Something outside, which the test of this package starts, calls back. Nothing in the process shows that it will.
func TestCalledBack(t *testing.T) {
	outside := os.Getenv("COIR_OUTSIDE")
	if outside == "" {
		t.Skip("it needs a server outside")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", outside)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, l.Addr())
	back, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = back.Close()
}

// It polls beside a socket. Its 2,000 sleeps are on the virtual clock, and short in real time.
func TestPolls(t *testing.T) {
	a, b := pair(t)
	defer a.Close()
	begun := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() { close(begun); _, _ = b.Read(make([]byte, 1)) })
	<-begun
	for range 2000 {
		time.Sleep(time.Millisecond)
	}
	_ = b.Close()
	wg.Wait()
}

// It leaves a listener behind, so the next schedule cannot have that in the same process.
func TestLeavesListener(t *testing.T) {
	l, err := net.Listen("unix", fmt.Sprintf("@coir-kernel-%d", os.Getppid()))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = l.Accept() }()
}
