package sim

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Work that sim does not see fails, in the same way whether it is fast or slow, in each run: alone, beside other
// fibers, and between operations.
//
// Spec: SM-06 (an outside goroutine is reported)
func TestWorkOutsideFailsHoweverFast(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := time.ParseDuration(r.URL.Query().Get("takes"))
		time.Sleep(d)
		_, _ = io.WriteString(w, "done")
	}))
	defer server.Close()
	const moment = 30 * time.Millisecond // on a busy machine a shorter timer may fire before the fiber waits for it
	for name, c := range map[string]struct {
		kind Kind
		text string
		work func(d time.Duration)
	}{
		"time.Sleep": {KindBlocked, "waits outside of coir, in time.Sleep", func(d time.Duration) { time.Sleep(d) }},
		"time.After": {KindBlocked, "waits outside of coir, to receive from a native channel", func(d time.Duration) {
			<-time.After(d + moment)
		}},
		"std ticker": {KindBlocked, "waits outside of coir, to receive from a native channel", func(d time.Duration) {
			k := time.NewTicker(d + moment)
			defer k.Stop()
			<-k.C
		}},
		"native select": {KindBlocked, "waits outside of coir, in a native select", func(d time.Duration) {
			never := make(chan int)
			select {
			case <-time.After(d + moment):
			case <-never:
			}
		}},
		"native channel": {KindBlocked, "waits outside of coir, to receive from a native channel", func(d time.Duration) {
			c := make(chan int)
			go func() { takes(d); c <- 1 }()
			<-c
		}},
		"buffered channel": {KindBlocked, "waits outside of coir, to receive from a native channel", func(d time.Duration) {
			c := make(chan int, 1)
			go func() { takes(d); c <- 1 }()
			<-c
		}},
		"WaitGroup": {KindBlocked, "waits outside of coir, for a sync.WaitGroup", func(d time.Duration) {
			var wg sync.WaitGroup
			wg.Go(func() { takes(d) })
			wg.Wait()
		}},
		"goroutine": {KindUncontrolled, "starts a goroutine, at sim/unseen_test.go:", func(d time.Duration) { go takes(d) }},
		"goroutine and a long step": {KindUncontrolled, "starts a goroutine, at sim/unseen_test.go:", func(time.Duration) {
			var done atomic.Bool
			go done.Store(true)
			for until := time.Now().Add(100 * time.Microsecond); time.Now().Before(until); {
			}
		}},
		"http.Get": {KindBlocked, "waits outside of coir, ", func(d time.Duration) {
			r, err := http.Get(server.URL + "/?takes=" + d.String())
			if err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
		}},
	} {
		for place, program := range map[string]func(d time.Duration) program{
			"alone": func(d time.Duration) program { return func(context.Context, *Sim) { c.work(d) } },
			"in a fiber": func(d time.Duration) program {
				return func(ctx context.Context, _ *Sim) { beside(ctx, func(context.Context) { c.work(d) }) }
			},
			"between operations": func(d time.Duration) program {
				return func(ctx context.Context, _ *Sim) { _ = coir.Yield(ctx); c.work(d); _ = coir.Yield(ctx) }
			},
		} {
			for _, d := range []time.Duration{1, 3 * time.Millisecond, 2 * stallAfter} {
				if d == 2*stallAfter && (place != "alone" || testing.Short()) {
					continue // it takes long
				}
				t.Run(fmt.Sprintf("%s, %s, %v", name, place, d), func(t *testing.T) {
					for range 5 {
						f := found(t, c.kind, program(d), WithSchedules(50))
						says(t, f, c.text)
						if d == 2*stallAfter {
							break
						}
					}
				})
			}
		}
	}
}

// takes takes some time, if d is more than 1.
func takes(d time.Duration) {
	if d > 1 {
		time.Sleep(d)
	}
}

// The report of a wait that has ended names the operations before and after it, and its token replays it.
//
// Spec: SM-05 (a token replays its schedule)
func TestAWaitThatHasEndedHasAPlace(t *testing.T) {
	from, to := line(2), line(4)
	program := func(ctx context.Context, _ *Sim) {
		_ = coir.Yield(ctx)
		time.Sleep(time.Millisecond)
		_ = coir.Yield(ctx)
	}
	f := found(t, KindBlocked, program)
	says(t, f, "fiber main waits outside of coir, in time.Sleep, between the operations at "+from+" and "+to, "coir.Sleep in place of time.Sleep")
	again, err := Replay(f.Token, program)
	if err != nil || again == nil || again.Text != f.Text {
		t.Errorf("replayed: %v, %v", again, err)
	}
	at := line(1)
	f = found(t, KindBlocked, func(context.Context, *Sim) { time.Sleep(time.Nanosecond) })
	says(t, f, "fiber main waits outside of coir, in time.Sleep, in the function at "+at+".")
	at = line(2)
	f = found(t, KindBlocked, func(ctx context.Context, _ *Sim) {
		_ = coir.Yield(ctx)
		time.Sleep(time.Nanosecond)
	})
	says(t, f, "fiber main waits outside of coir, in time.Sleep, after the operation at "+at+".")
}

// A program without an operation of coir has tested nothing, and fails. A program that only draws numbers is explored.
func TestAProgramWithoutOperationsFails(t *testing.T) {
	f := found(t, KindEmpty, func(context.Context, *Sim) {})
	says(t, f, "the simulation saw no operation of coir")
	if again, err := Replay(f.Token, func(context.Context, *Sim) {}); err != nil || again == nil || again.Kind != KindEmpty {
		t.Errorf("replayed: %v, %v", again, err)
	}
	if f := Drawn(func(int) int { return 0 }, func(context.Context, *Sim) {}); f == nil || f.Kind != KindEmpty {
		t.Errorf("drawn: %v", f)
	}
	for name, fn := range map[string]program{
		"a number":      func(_ context.Context, s *Sim) { s.Intn(2) },
		"not each time": func(ctx context.Context, s *Sim) { _ = s.Intn(2) == 0 && coir.Yield(ctx) == nil },
	} {
		if res := Explore(fn, WithSchedules(10)); res.Failure != nil {
			t.Errorf("%s: %v", name, res.Failure)
		}
	}
}

// A program that neither waits outside coir nor starts a goroutine passes, even while other code starts very many.
func TestWhatDoesNotWaitOutsidePasses(t *testing.T) {
	var stop atomic.Bool
	var noise sync.WaitGroup
	defer noise.Wait()
	defer stop.Store(true)
	for range 2 {
		noise.Go(func() {
			for !stop.Load() {
				var wg sync.WaitGroup
				wg.Go(runtime.Gosched)
				wg.Wait()
			}
		})
	}
	var once sync.Once
	ended := make(chan struct{})
	defer close(ended)
	for name, work := range map[string]func(){
		"nothing":                   func() {},
		"a buffered native channel": func() { c := make(chan int, 1); c <- 1; <-c },
		"a closed native channel":   func() { c := make(chan int); close(c); <-c },
		"a select with a default": func() {
			select {
			case <-ended:
			default:
			}
		},
		"a mutex":      func() { var mu sync.Mutex; mu.Lock(); mu.Unlock() }, //nolint:staticcheck // that is the point
		"Gosched":      runtime.Gosched,
		"a collection": runtime.GC,
		"memory":       func() { _ = make([]byte, 1<<20) },
		"computing":    func() { _ = fmt.Sprint(make([]int, 1000)) },
		"a goroutine that is started once, for the process": func() { once.Do(func() { go func() { <-ended }() }) },
		"iter.Pull of what does not wait": func() {
			next, stop := iter.Pull(func(yield func(int) bool) { _ = yield(1) && yield(2) })
			defer stop()
			next()
			next()
		},
	} {
		t.Run(name, func(t *testing.T) {
			res := Explore(func(ctx context.Context, _ *Sim) {
				work()
				beside(ctx, func(context.Context) { work() })
			}, WithSchedules(20))
			if res.Failure != nil {
				t.Error(res.Failure)
			}
		})
	}
}
