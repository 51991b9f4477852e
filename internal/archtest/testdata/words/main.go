// Command words does each operation many times on one worker, and prints its writes. See TestSharedWords.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/archtest/testdata/counted"
	"github.com/coir-go/coir/internal/clock"
)

// Each operation is done in chunks, and the counts on which most chunks agree are taken. With one worker and no monitor
// most operations write the same in every chunk. Others depend on time: a fiber that sleeps writes less if the machine
// takes the processor away until its time has come. The shorter such a chunk, the more of them are undisturbed.
const (
	chunks = 41
	turns  = 100 // of an operation in a chunk
	naps   = 4
	crowds = 20
)

// A row has the writes of one operation, in one chunk.
type row struct {
	Operation string
	Turns     int
	Agreed    string // how many chunks have these writes
	Writes    []write
}

type write struct {
	counted.Write
	Times int
}

func main() {
	var rows []row
	add := func(operation string, times int, chunk func() map[counted.Write]int) {
		all := make([]map[counted.Write]int, chunks)
		for i := range all {
			all[i] = chunk()
		}
		agreed := make([]int, chunks)
		for i := range all {
			for j := range all {
				if maps.Equal(all[i], all[j]) {
					agreed[i]++
				}
			}
		}
		most := slices.Max(agreed)
		r := row{Operation: operation, Turns: times, Agreed: fmt.Sprintf("%d of %d", most, chunks)}
		for w, n := range all[slices.Index(agreed, most)] {
			r.Writes = append(r.Writes, write{w, n})
		}
		rows = append(rows, r)
	}
	rt := newRuntime()
	must(rt.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		for _, of := range []struct {
			operation string
			turns     int
			chunk     func(context.Context, *coir.Nursery) map[counted.Write]int
		}{
			{"rendezvous", turns, rendezvous},
			{"send and receive, buffered", turns, buffered},
			{"spawn and join", turns, spawnJoin},
			{"spawn and Wait", turns, spawnWait},
			{"yield", turns, yield},
			{"wake from outside, worker busy", turns, outside},
			{"RecvTimeout, served", turns, timeouts},
			{"timer armed and stopped", turns, timer},
			{"sleep, worker idle", naps, sleep},
		} {
			add(of.operation, of.turns, func() map[counted.Write]int { return of.chunk(ctx, nur) })
		}
		return nil
	}))
	add("spawn, park, wake, end: new coroutines", crowds, func() map[counted.Write]int {
		fresh := newRuntime()
		defer func() { must(fresh.Close(context.Background())) }()
		return counted.During(func() { crowd(fresh) })
	})
	add("spawn, park, wake, end: pooled coroutines", crowds, func() map[counted.Write]int {
		return counted.During(func() { crowd(rt) })
	})
	must(json.NewEncoder(os.Stdout).Encode(rows))
}

// newRuntime returns a runtime that has one worker and never another.
func newRuntime() *coir.Runtime { return coir.NewRuntime(coir.WithWorkers(1), coir.WithMaxWorkers(1)) }

func rendezvous(ctx context.Context, nur *coir.Nursery) map[counted.Write]int {
	c := coir.NewChan[int](0)
	receiver := nur.Go("receive", func(ctx context.Context) error {
		for range turns + 10 {
			if _, err := c.Recv(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	send := func(n int) {
		for i := range n {
			must(c.Send(ctx, i))
		}
	}
	send(5)
	writes := counted.During(func() { send(turns) })
	send(5)
	must(receiver.Wait(ctx))
	return writes
}

func timeouts(ctx context.Context, nur *coir.Nursery) map[counted.Write]int {
	c := coir.NewChan[int](0)
	receiver := nur.Go("receive", func(ctx context.Context) error {
		for range turns + 10 {
			if _, err := c.RecvTimeout(ctx, time.Hour); err != nil {
				return err
			}
		}
		return nil
	})
	// The sender yields, so that each receive waits, and each send finds it.
	send := func(n int) {
		for i := range n {
			must(coir.Yield(ctx))
			must(c.Send(ctx, i))
		}
	}
	send(5)
	writes := counted.During(func() { send(turns) })
	send(5)
	must(receiver.Wait(ctx))
	return writes
}

func buffered(ctx context.Context, _ *coir.Nursery) map[counted.Write]int {
	c := coir.NewChan[int](1)
	return counted.During(func() {
		for i := range turns {
			must(c.Send(ctx, i))
			_, err := c.Recv(ctx)
			must(err)
		}
	})
}

func spawnJoin(ctx context.Context, _ *coir.Nursery) map[counted.Write]int {
	return counted.During(func() {
		for range turns {
			must(coir.Run(ctx, func(_ context.Context, nur *coir.Nursery) error {
				nur.Go("child", func(context.Context) error { return nil })
				return nil
			}))
		}
	})
}

func spawnWait(ctx context.Context, nur *coir.Nursery) map[counted.Write]int {
	return counted.During(func() {
		for range turns {
			must(nur.Go("child", func(context.Context) error { return nil }).Wait(ctx))
		}
	})
}

func yield(ctx context.Context, nur *coir.Nursery) map[counted.Write]int {
	var stop atomic.Bool
	other := nur.Go("other", func(ctx context.Context) error {
		for !stop.Load() {
			must(coir.Yield(ctx))
		}
		return nil
	})
	must(coir.Yield(ctx))
	writes := counted.During(func() {
		for range turns / 2 { // the other yields as often
			must(coir.Yield(ctx))
		}
	})
	stop.Store(true)
	must(other.Wait(ctx))
	return writes
}

// outside counts what a goroutine writes to wake a parked fiber. The worker runs another fiber meanwhile, so no worker
// must be woken. Each chunk has a goroutine of its own: one whose address has the hash of a fiber's takes a lock more.
func outside(ctx context.Context, nur *coir.Nursery) map[counted.Write]int {
	c := coir.NewChan[int](0)
	var received, rounds, stop atomic.Int64
	receiver := nur.Go("receive", func(ctx context.Context) error {
		for range turns {
			if _, err := c.Recv(ctx); err != nil {
				return err
			}
			received.Add(1)
		}
		return nil
	})
	sum := make(map[counted.Write]int)
	go func() {
		for i := range turns {
			for received.Load() < int64(i) || c.Stats().Recv.Waiting == 0 {
				runtime.Gosched()
			}
			// The receiver has published its wait. It has parked when the other fiber has run since.
			for before := rounds.Load(); rounds.Load() < before+2; {
				runtime.Gosched()
			}
			for w, n := range counted.Under(func() { must(c.TrySend(i)) }) {
				sum[w] += n
			}
		}
		stop.Store(1)
		select {} // so that the next chunk has another goroutine: see outside
	}()
	for stop.Load() == 0 {
		must(coir.Yield(ctx))
		rounds.Add(1)
		runtime.Gosched()
	}
	must(receiver.Wait(ctx))
	return sum
}

// never is the target of a timer that does not fire.
type never struct{}

func (never) Expire(uint64) { panic("a timer that was an hour away fired") }

func timer(context.Context, *coir.Nursery) map[counted.Write]int {
	c := clock.NewReal()
	defer c.Close()
	var t clock.Timer
	return counted.During(func() {
		for range turns {
			c.Arm(&t, c.Now()+int64(time.Hour), never{}, 1)
			c.Stop(&t)
		}
	})
}

// sleep counts the writes of one fiber that sleeps repeatedly. Nothing else runs, so the worker goes to sleep each time
// and is woken.
func sleep(ctx context.Context, _ *coir.Nursery) map[counted.Write]int {
	return counted.During(func() {
		for range naps {
			must(coir.Sleep(ctx, time.Millisecond))
		}
	})
}

// crowd parks many fibers at the same time, and ends them. Each needs a coroutine of its own, new or from the pool.
// They fit the worker's own queue, so that no figure depends on when the worker looks at the global queue.
func crowd(rt *coir.Runtime) {
	c := coir.NewChan[int](0)
	must(rt.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		for range crowds {
			nur.Go("park", func(ctx context.Context) error {
				_, _ = c.Recv(ctx)
				return nil
			})
		}
		must(coir.Yield(ctx))
		c.Close()
		return nil
	}))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
