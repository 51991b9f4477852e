package sim

import (
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/coir-go/coir/internal/coro"
)

//go:norace
func readNote(p *uint8) uint8 { return *p }

//go:norace
func setNote(p *uint8, note uint8) { *p = note }

// tellsWaits reports whether coro.Waited can report how a goroutine has waited. The first call finds that out, in about
// a millisecond: it makes goroutines wait in each of the relevant ways, and reads what the runtime notes in their
// records.
var tellsWaits = sync.OnceValue(func() bool {
	if !coro.Assembly {
		return false
	}
	at := findNote()
	if at == 0 {
		return false
	}
	for range 10 { // the garbage collector may leave another note, so two tries must agree
		waits, ok := learnWaits(at)
		if again, _ := learnWaits(at); ok && waits == again {
			coro.SetNotes(at, &waits)
			return true
		}
	}
	return false
})

// noteSpan is the number of bytes of a record to search. The note is the 185th byte in Go 1.26 and 1.27.
const noteSpan = 320

// findNote returns the offset of the byte that has one value after each time.Sleep and another value after each receive
// from a channel, in both of two goroutines. It returns 0 unless there is exactly one such byte.
func findNote() uintptr {
	type records [4][noteSpan]uint8
	look := func(all *records) {
		for i := range all {
			if i%2 == 0 {
				time.Sleep(time.Nanosecond)
			} else {
				<-time.After(10 * time.Microsecond)
			}
			for j := range all[i] {
				all[i][j] = readNote(coro.NoteAt(uintptr(j)))
			}
		}
	}
	for range 20 { // a goroutine that is delayed may find a value in the channel, and not wait
		var a, b records
		done := make(chan struct{})
		go func() { defer close(done); look(&a) }()
		<-done
		done = make(chan struct{})
		go func() { defer close(done); look(&b) }()
		<-done
		found, n := uintptr(0), 0
		for j := range noteSpan {
			sleeps, receives := a[0][j], a[1][j]
			same := sleeps != receives && sleeps != 0 && receives != 0
			for i := range a {
				want := sleeps
				if i%2 == 1 {
					want = receives
				}
				same = same && a[i][j] == want && b[i][j] == want
			}
			if same {
				found, n = uintptr(j), n+1
			}
		}
		if n == 1 {
			return found
		}
	}
	return 0
}

// learnWaits makes a goroutine wait in each way, and returns the note that the runtime leaves for each. It returns
// false if two ways have the same note.
func learnWaits(at uintptr) (waits [256]coro.Wait, ok bool) {
	learn := func(how coro.Wait, wait, end func()) bool {
		var note *uint8
		begun, done := make(chan struct{}), make(chan struct{})
		noted := uint8(0)
		go func() {
			defer close(done)
			note = coro.NoteAt(at)
			setNote(note, 0)
			close(begun)
			wait()
			noted = readNote(note)
		}()
		<-begun
		for until := time.Now().Add(time.Second); readNote(note) == 0 && time.Now().Before(until); {
			runtime.Gosched()
		}
		end()
		<-done
		if noted == 0 || waits[noted] != coro.NotWaited {
			return false
		}
		waits[noted] = how
		return true
	}
	none := func() {}
	c, d, e := make(chan int), make(chan int), make(chan int)
	if !learn(coro.Slept, func() { time.Sleep(time.Microsecond) }, none) ||
		!learn(coro.Received, func() { <-c }, func() { c <- 1 }) ||
		!learn(coro.Sent, func() { d <- 1 }, func() { <-d }) ||
		!learn(coro.Selected, func() {
			select {
			case <-c:
			case <-e:
			}
		}, func() { e <- 1 }) {
		return waits, false
	}
	var group sync.WaitGroup
	group.Add(1)
	learn(coro.Grouped, group.Wait, group.Done)
	var mu sync.Mutex
	cond := sync.NewCond(&mu)
	learn(coro.Signalled, func() { mu.Lock(); cond.Wait(); mu.Unlock() }, cond.Signal)
	if r, w, err := os.Pipe(); err == nil {
		learn(coro.Polled, func() { _, _ = r.Read(make([]byte, 1)) }, func() { _, _ = w.Write([]byte{1}) })
		_, _ = r.Close(), w.Close()
	}
	return waits, true
}
