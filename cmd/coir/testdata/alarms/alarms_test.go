// Package alarms has tests for which coir test once gave an alarm that was false, or none by the clock of the machine.
package alarms

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"
)

var (
	mu         sync.Mutex
	registered = map[string]bool{}
)

func register(name string) bool {
	mu.Lock()
	defer mu.Unlock()
	if registered[name] {
		return false
	}
	registered[name] = true
	return true
}

// It passes once in a process, and leaves a goroutine behind: that is what it is told for.
//
// Expect: leak
func TestRegistersAndLeaks(t *testing.T) {
	if !register("leaks") {
		t.Fatal("it is registered")
	}
	never := make(chan bool)
	go func() { <-never }()
}

func TestRegisters(t *testing.T) {
	if !register("passes") {
		t.Fatal("it is registered")
	}
}

// It starts something once in a process, as a library does. That is not left behind by each of its schedules.
func TestStartsOnce(t *testing.T) {
	if register("starts") {
		go func() { select {} }()
	}
}

// locked is an object whose lock, Once, WaitGroup, RWMutex and Cond were used.
type locked struct {
	mu   sync.Mutex
	rw   sync.RWMutex
	once sync.Once
	wg   sync.WaitGroup
	cond *sync.Cond
	self *locked
}

func use() (*atomic.Bool, *atomic.Bool, weak.Pointer[locked], weak.Pointer[sync.Mutex]) {
	x := new(locked)
	x.cond, x.self = sync.NewCond(&x.mu), x
	x.wg.Go(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.once.Do(x.cond.Broadcast)
	})
	x.rw.RLock()
	x.rw.RUnlock()
	x.wg.Wait()
	small := new(sync.Mutex)
	small.Lock()
	small.Unlock()
	var cleaned, finalized atomic.Bool
	runtime.AddCleanup(x, func(b *atomic.Bool) { b.Store(true) }, &cleaned)
	y := &locked{}
	y.mu.Lock()
	y.mu.Unlock()
	runtime.SetFinalizer(y, func(*locked) { finalized.Store(true) })
	return &cleaned, &finalized, weak.Make(x), weak.Make(small)
}

// What coir test knows of a lock does not keep it alive.
func TestCollectsWhatWasLocked(t *testing.T) {
	cleaned, finalized, x, small := use()
	for range 4 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	switch {
	case !cleaned.Load():
		t.Error("the cleanup has not run")
	case !finalized.Load():
		t.Error("the finalizer has not run")
	case x.Value() != nil:
		t.Error("the weak pointer has a value")
	}
	_ = small // it may share its memory with others
}

// Locks whose memory the collector gives to other locks are other objects: the trace is the same with and without it.
func TestLocksAreCollected(t *testing.T) {
	c := make(chan int, 1)
	for i := range 2000 {
		x := new(locked)
		x.mu.Lock()
		go func() {
			x.mu.Lock()
			c <- i
		}()
		x.mu.Unlock()
		if <-c != i {
			t.Error(i)
		}
	}
}

// Beside the deadlock a connection is kept alive for good, with many steps every few hours, and a timer that never fires
// says when to close it, as in gRPC.
//
// Expect: deadlock
func TestDeadlockBesideKeepalive(*testing.T) {
	ping, pong := make(chan int), make(chan int)
	go func() {
		for n := range ping {
			pong <- n
		}
	}()
	go func() {
		end, tick := time.NewTimer(math.MaxInt64), time.NewTicker(5*time.Hour)
		for {
			select {
			case <-end.C:
				return
			case <-tick.C:
			}
			for n := range 60 {
				ping <- n
				<-pong
			}
		}
	}()
	select {}
}

// Its own goroutine sleeps for seconds, while others sleep for milliseconds. It takes that for no deadlock, also when it
// is run again because of what it leaves behind.
//
// Expect: leak
func TestSleepsBesideSleepers(*testing.T) {
	var stop atomic.Bool
	for range 8 {
		go func() {
			for !stop.Load() {
				time.Sleep(time.Millisecond)
				mu.Lock()
				mu.Unlock()
			}
		}()
	}
	go func() { <-make(chan int) }()
	for range 20 {
		time.Sleep(time.Second)
	}
	stop.Store(true)
}

// It makes more steps without a moment at which all wait than a schedule may have.
func TestTooManySteps(*testing.T) {
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 3_000_000 {
				mu.Lock()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// within fails a test that is not done when a time is over, as a keepalive does. The test calls what it returns when it
// is done.
func within(t *testing.T, d time.Duration) (done func() bool) {
	return time.AfterFunc(d, func() { t.Error("it takes more than", d) }).Stop
}

// It works for long: goroutines that wait for each other do not spin.
func TestWorksForLong(t *testing.T) {
	defer within(t, 1500*time.Millisecond)()
	c := make(chan int)
	go func() {
		for i := range 550_000 {
			c <- i
		}
		close(c)
	}()
	n := 0
	for range c {
		n++
	}
	if n != 550_000 {
		t.Error(n)
	}
}

// Two goroutines that always can run, the one or the other, do not keep a third from running.
func TestRunsBesideOthers(t *testing.T) {
	defer within(t, 100*time.Millisecond)()
	there, back, stop := make(chan bool), make(chan bool), make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range there {
			back <- true
		}
	})
	wg.Go(func() {
		defer close(there)
		for {
			select {
			case <-stop:
				return
			case there <- true:
				<-back
			}
		}
	})
	wg.Go(func() { close(stop) })
	wg.Wait()
}

// inOrder returns the numbers of two goroutines in the order in which they get a lock.
func inOrder() (order []int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
		})
	}
	wg.Wait()
	return order
}

// It fails only if it is not skipped, as it is in the plain order.
//
// Expect: fail
func TestSkipsFirst(t *testing.T) {
	if inOrder()[0] == 0 {
		t.Skip("in the plain order")
	}
	t.Error("in another order")
}

func TestSkipsSometimes(t *testing.T) {
	if inOrder()[0] == 0 {
		t.Skip("in the plain order")
	}
}

// Expect: skip
func TestSkipsAlways(t *testing.T) {
	_ = inOrder()
	t.Skip("in any order")
}

// Expect: skip
func TestSkips(t *testing.T) { t.Skip("nothing is decided") }
