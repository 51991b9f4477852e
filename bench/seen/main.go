// Command seen measures what snapshots cost the program that they show. Run it in the directory bench:
//
//	go run ./seen
//
// It parks fibers, takes a snapshot of them that it discards, and one that it keeps. Meanwhile two other fibers pass a
// value back and forth, and seen measures how much longer that takes than without snapshots. Then it serves the page of
// package inspect for 10,000 fibers, asks for a snapshot each second, and compares the processor time of the process
// with the elapsed time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

var (
	fibers  = flag.Int("fibers", 1_000_000, "parked fibers")
	rounds  = flag.Int("rounds", 5, "snapshots, and as many times without")
	page    = flag.Int("page", 10_000, "parked fibers beside the page")
	seconds = flag.Int("seconds", 20, "how long the page is open")
)

func main() {
	flag.Parse()
	if err := served(*page); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := parked(*fibers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// with runs f while n fibers are parked.
func with(n int, f func(ctx context.Context, rt *coir.Runtime) error) error {
	rt := coir.NewRuntime()
	return rt.Run(context.Background(), func(ctx context.Context, nursery *coir.Nursery) error {
		defer nursery.Cancel(nil)
		jobs := coir.NewChan[int](0, coir.WithName("jobs"))
		for range n {
			nursery.Go("worker", func(ctx context.Context) error { _, err := jobs.Recv(ctx); return err })
		}
		for jobs.Stats().Recv.Waiting < n {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		return f(ctx, rt)
	})
}

func parked(n int) error {
	return with(n, func(ctx context.Context, rt *coir.Runtime) error {
		var quiet, seen []time.Duration
		var took []time.Duration
		for range *rounds {
			begin := time.Now()
			done := make(chan time.Duration, 1)
			go func() {
				begin := time.Now()
				got := 0
				rt.Snapshot(snapshot.Options{Each: func(*snapshot.Fiber) bool { got++; return true }})
				done <- time.Since(begin)
				if got < n {
					panic(fmt.Sprintf("%d of %d fibers", got, n))
				}
			}()
			var t time.Duration
			if err := pingPong(ctx, &seen, func() bool {
				select {
				case t = <-done:
					return false
				default:
					return true
				}
			}); err != nil {
				return err
			}
			took = append(took, t)
			length := time.Since(begin)
			begin = time.Now()
			if err := pingPong(ctx, &quiet, func() bool { return time.Since(begin) < length }); err != nil {
				return err
			}
		}
		slices.Sort(took)
		fmt.Printf("snapshot of %d fibers: %v (median of %d), %v a fiber\n", n, took[len(took)/2].Round(time.Millisecond),
			len(took), took[len(took)/2]/time.Duration(n))
		fmt.Printf("two fibers to and fro: beside snapshots %s; without %s\n", spread(seen), spread(quiet))
		before := allocated()
		rt.Snapshot(snapshot.Options{Each: func(*snapshot.Fiber) bool { return true }})
		each := allocated() - before
		before = allocated()
		s := rt.Snapshot(snapshot.Options{})
		fmt.Printf("allocated: %d bytes if fibers are not kept; %d bytes for the %d that are kept\n", each, allocated()-before,
			len(s.Fibers))
		return nil
	})
}

// pingPong passes values back and forth while more returns true, and adds the time of each to all.
func pingPong(ctx context.Context, all *[]time.Duration, more func() bool) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		ping, pong := coir.NewChan[int](0), coir.NewChan[int](0)
		n.Go("pong", func(ctx context.Context) error {
			for v, err := range ping.All(ctx) {
				if err != nil {
					return err
				}
				if err := pong.Send(ctx, v); err != nil {
					return err
				}
			}
			return nil
		})
		defer ping.Close()
		for last := time.Now(); more(); {
			if err := ping.Send(ctx, 1); err != nil {
				return err
			}
			if _, err := pong.Recv(ctx); err != nil {
				return err
			}
			now := time.Now()
			*all = append(*all, now.Sub(last))
			last = now
		}
		return nil
	})
}

func spread(all []time.Duration) string {
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[min(len(all)-1, int(q*float64(len(all))))] }
	return fmt.Sprintf("p50 %v, p99 %v, p99.9 %v, longest %v of %d", at(.5), at(.99), at(.999), at(1), len(all))
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// served measures an open page.
func served(n int) error {
	return with(n, func(ctx context.Context, rt *coir.Runtime) error {
		server := httptest.NewServer(inspect.Handler(inspect.WithSource(rt)))
		defer server.Close()
		share := func(ask bool) (float64, error) {
			begin, cpu := time.Now(), spent()
			for range *seconds {
				if ask {
					_, err := coir.Blocking(ctx, func() (int64, error) { return get(server.URL + "/snapshot.json") })
					if err != nil {
						return 0, err
					}
				}
				if err := coir.Sleep(ctx, time.Second); err != nil {
					return 0, err
				}
			}
			return float64(spent()-cpu) / float64(time.Since(begin)), nil
		}
		quiet, err := share(false)
		if err != nil {
			return err
		}
		open, err := share(true)
		if err != nil {
			return err
		}
		fmt.Printf("page with %d fibers, a snapshot each second: %.2f %% of one processor, the reader's share included; without %.2f %%\n",
			n, 100*open, 100*quiet)
		return nil
	})
}

// get reads a page in compressed form, because unpacking is the browser's work.
func get(url string) (int64, error) {
	ask, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	ask.Header.Set("Accept-Encoding", "gzip")
	r, err := http.DefaultClient.Do(ask)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	return io.Copy(io.Discard, r.Body)
}

// spent returns the processor time of the process.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
