package sim

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/coro"
)

// Waited returns how the goroutine last waited. Operations that do not wait, mutexes and Gosched do not count.
func TestWaited(t *testing.T) {
	if !coro.Assembly {
		t.Skip("without assembly there are no notes")
	}
	if !tellsWaits() {
		t.Fatal("the runtime's notes were not found")
	}
	after := func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	c, full, none := make(chan int), make(chan int, 1), make(chan int)
	full <- 1
	var group sync.WaitGroup
	var mu, held sync.Mutex
	cond := sync.NewCond(&mu)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const soon = time.Millisecond
	for _, x := range []struct {
		name string
		want coro.Wait
		do   func()
	}{
		{"time.Sleep(1)", coro.Slept, func() { time.Sleep(time.Nanosecond) }},
		{"time.Sleep(0)", coro.NotWaited, func() { time.Sleep(0) }},
		{"a receive", coro.Received, func() { after(soon, func() { c <- 1 }); <-c }},
		{"a receive that need not wait", coro.NotWaited, func() { <-full }},
		{"a send", coro.Sent, func() { after(soon, func() { <-c }); c <- 1 }},
		{"a select", coro.Selected, func() {
			after(soon, func() { c <- 1 })
			select {
			case <-c:
			case <-none:
			}
		}},
		{"a select with a default", coro.NotWaited, func() {
			select {
			case <-none:
			default:
			}
		}},
		{"a WaitGroup", coro.Grouped, func() { group.Add(1); after(soon, group.Done); group.Wait() }},
		{"a Cond", coro.Signalled, func() { mu.Lock(); after(soon, cond.Signal); cond.Wait(); mu.Unlock() }},
		{"a pipe of the system", coro.Polled, func() {
			after(soon, func() { _, _ = w.Write([]byte{1}) })
			_, _ = r.Read(make([]byte, 1))
		}},
		{"a mutex", coro.NotWaited, func() { held.Lock(); after(soon, held.Unlock); held.Lock() }},
		{"Gosched and a collection", coro.NotWaited, func() { runtime.Gosched(); runtime.GC() }},
	} {
		// An early timer or a garbage collection may remove the note. So one of a few tries must be correct.
		got := coro.NotWaited
		for range 20 {
			coro.ForgetWait()
			x.do()
			if got = coro.Waited(); got == x.want {
				break
			}
			if x.name == "a receive that need not wait" {
				full <- 1
			}
		}
		if got != x.want {
			t.Errorf("after %s: %d, want %d", x.name, got, x.want)
		}
	}
}
