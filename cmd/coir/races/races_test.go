//go:build corpus

package races

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Expect: race
func TestCounter(t *testing.T) {
	var wg sync.WaitGroup
	n := 0
	for range 2 {
		wg.Go(func() { n++ })
	}
	wg.Wait()
}

// Expect: race
func TestMap(t *testing.T) {
	var wg sync.WaitGroup
	m := map[int]int{}
	for i := range 2 {
		wg.Go(func() { m[i] = i })
	}
	wg.Wait()
}

// Expect: race
func TestSlice(t *testing.T) {
	var wg sync.WaitGroup
	var all []int
	for i := range 2 {
		wg.Go(func() { all = append(all, i) })
	}
	wg.Wait()
}

// Expect: race
func TestInterface(t *testing.T) {
	var err error
	done := make(chan bool)
	go func() {
		err = t.Context().Err()
		done <- true
	}()
	_ = err
	<-done
}

// The lock covers one of the accesses.
//
// Expect: race
func TestLockThatDoesNotCover(t *testing.T) {
	var mu sync.Mutex
	n := 0
	done := make(chan bool)
	go func() {
		mu.Lock()
		n++
		mu.Unlock()
		close(done)
	}()
	mu.Lock()
	mu.Unlock()
	n++
	<-done
}

// Expect: race
func TestReadLockAndWrite(t *testing.T) {
	var mu sync.RWMutex
	var wg sync.WaitGroup
	n := 0
	for range 2 {
		wg.Go(func() {
			mu.RLock()
			n++
			mu.RUnlock()
		})
	}
	wg.Wait()
}

// Expect: race
func TestTwoLocks(t *testing.T) {
	var a, b sync.Mutex
	var wg sync.WaitGroup
	n := 0
	for _, mu := range []*sync.Mutex{&a, &b} {
		wg.Go(func() {
			mu.Lock()
			n++
			mu.Unlock()
		})
	}
	wg.Wait()
}

// The object is sent, and changed afterwards.
//
// Expect: race
func TestChangeAfterSend(t *testing.T) {
	c := make(chan *int, 1)
	done := make(chan bool)
	go func() {
		*<-c++
		close(done)
	}()
	n := new(int)
	c <- n
	*n++
	<-done
}

// Another object is published than the one that is read.
//
// Expect: race
func TestPublishAnother(t *testing.T) {
	var a, b int
	c := make(chan *int)
	go func() {
		a = 1
		c <- &a
		b = 1
	}()
	<-c
	_ = b
}

// A buffered channel orders a receive after its send, and no send after a receive.
//
// Expect: race
func TestSemaphoreOfTwo(t *testing.T) {
	slots := make(chan bool, 2)
	var wg sync.WaitGroup
	n := 0
	for range 2 {
		wg.Go(func() {
			slots <- true
			n++
			<-slots
		})
	}
	wg.Wait()
}

// Expect: race
func TestAtomicAndPlain(t *testing.T) {
	var n int64
	done := make(chan bool)
	go func() {
		atomic.AddInt64(&n, 1)
		close(done)
	}()
	n++
	<-done
}

// Expect: race
func TestCheckedTwice(t *testing.T) {
	var mu sync.Mutex
	var config *int
	get := func() *int {
		if config == nil {
			mu.Lock()
			defer mu.Unlock()
			if config == nil {
				config = new(int)
			}
		}
		return config
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { get() })
	}
	wg.Wait()
}

// Expect: race
func TestDoneTooEarly(t *testing.T) {
	var wg sync.WaitGroup
	n := 0
	wg.Add(1)
	go func() {
		wg.Done()
		n++
	}()
	wg.Wait()
	n++
}

// Expect: race
func TestAddWithinTheGoroutine(t *testing.T) {
	var wg sync.WaitGroup
	for range 2 {
		go func() {
			wg.Add(1)
			wg.Done()
		}()
	}
	wg.Wait()
}

// The Add comes before the end of the sleep as a rule.
//
// Expect: race
func TestAddWhileTheTestSleeps(t *testing.T) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		go func() {
			mu.Lock()
			defer mu.Unlock()
			wg.Add(1)
			go func() {
				defer wg.Done()
				mu.Lock()
				defer mu.Unlock()
			}()
		}()
	}
	time.Sleep(time.Millisecond)
	wg.Wait()
}

// Sleep orders nothing.
//
// Expect: race
func TestSleepAndRead(t *testing.T) {
	n := 0
	go func() { n++ }()
	time.Sleep(time.Second)
	_ = n
}

// What was before the start of one timer is not before the function of another.
//
// Expect: race
func TestTwoTimers(t *testing.T) {
	n := 0
	go func() {
		n = 1
		time.AfterFunc(time.Millisecond, func() {})
	}()
	done := make(chan bool)
	time.AfterFunc(time.Second, func() {
		n++
		close(done)
	})
	<-done
}

// A sleep beside a loop without waits is long. Of what was accessed long ago the detector does not tell.
//
// Expect: race
func TestLoopWhileTheTestSleeps(t *testing.T) {
	m := map[string]int{"a": 1, "b": 2}
	stop := make(chan bool)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			to := make(map[string]int, len(m))
			for k, v := range m {
				to[k] = v
			}
		}
	}()
	time.Sleep(time.Millisecond)
	m["a"] = 3
	close(stop)
}

// The timeout is far longer than the work.
//
// Expect: race
func TestTimeoutBeforeTheResult(t *testing.T) {
	result := 0
	done := make(chan bool, 1)
	go func() {
		result = 1
		done <- true
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
	}
	_ = result
}

// A test that has failed because it waits no longer is no matter: it relies on time.
func TestTimeoutThatFailsTheTest(t *testing.T) {
	result := 0
	done := make(chan bool, 1)
	go func() {
		result = 1
		done <- true
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("no result")
	}
	_ = result
}

func TestTimerAfterItsStart(t *testing.T) {
	n := 1
	done := make(chan bool)
	time.AfterFunc(time.Second, func() {
		n++
		close(done)
	})
	<-done
	n++
}

func TestTickerAfterItsStart(t *testing.T) {
	n := 1
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 3 {
			<-tick.C
			n++
		}
	})
	wg.Wait()
	n++
}

func TestOnceAndPool(t *testing.T) {
	var once sync.Once
	var n *int
	pool := sync.Pool{New: func() any { return new(int) }}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			once.Do(func() { n = new(int) })
			_ = *n
			p := pool.Get().(*int)
			*p++
			pool.Put(p)
		})
	}
	wg.Wait()
}
