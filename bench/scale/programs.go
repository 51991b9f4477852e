package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
)

// These programs check the model: each of k fibers, on k workers and as many processors of Go, repeats an operation. No
// fiber waits, so each stays on its worker, and it is known what they share.
type program struct {
	name    string
	between float64 // nanoseconds of work that nothing shares, for each operation
	setUp   func(nur *coir.Nursery, k int) operate
}

// operate performs the operation in the i-th fiber.
type operate func(ctx context.Context, i int) error

var programs = []program{
	{"a channel of its own", 0, ownChannel},
	{"one counter", 0, oneCounter},
	{"one channel", 0, oneChannel},
	{"one channel", 300, oneChannel},
	{"one channel", 1000, oneChannel},
	{"one channel", 10_000, oneChannel},
	{"one nursery", 0, oneNursery},
}

// places returns the places that all fibers of a program write.
func (p program) places(in map[string]float64) []place {
	switch p.name {
	case "one counter":
		return []place{{"counter", 1, 1, in["add"]}}
	case "one channel": // it is locked for a send and for a receive
		return []place{{"channel", 2, 2, in["hold"]}}
	case "one nursery": // the word pending, when a child begins and when it ends
		return []place{{"nursery", 2, 1, in["add"]}}
	}
	return nil
}

// passes sends a value and receives one. There is room for a value of each fiber, and each has sent one before it
// receives, so neither waits.
func passes(c *coir.Chan[int]) operate {
	return func(ctx context.Context, i int) error {
		if err := c.Send(ctx, i); err != nil {
			return err
		}
		_, err := c.Recv(ctx)
		return err
	}
}

func oneChannel(_ *coir.Nursery, k int) operate { return passes(coir.NewChan[int](k)) }

func ownChannel(_ *coir.Nursery, k int) operate {
	var all []operate
	for range k {
		all = append(all, passes(coir.NewChan[int](64))) // whose buffer is larger than a cache line
	}
	return func(ctx context.Context, i int) error { return all[i](ctx, i) }
}

func oneCounter(*coir.Nursery, int) operate {
	var n atomic.Int64
	return func(context.Context, int) error { n.Add(1); return nil }
}

func oneNursery(nur *coir.Nursery, _ int) operate {
	return func(ctx context.Context, _ int) error {
		return nur.Go("", func(context.Context) error { return nil }).Wait(ctx)
	}
}

// measured is the result for a program: the time of an operation on one core and on each of two, in nanoseconds, and
// the median and the quartiles over the rounds of how much more two cores do than one.
type measured struct {
	Name     string
	Between  float64
	One, Two float64
	Gain     float64
	Lo, Hi   float64
}

// sink keeps the compiler from removing the work between operations.
var sink atomic.Uint64

// spin works without memory.
func spin(turns int) uint64 {
	x := uint64(turns)
	for range turns {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// measurePrograms measures each program on one core and on two, in turns. A round counts if the system took no core
// from the program meanwhile.
func measurePrograms(rounds int, round time.Duration) ([]measured, error) {
	const spins = 20 * time.Millisecond
	perNano := float64(timing.Turns(true, spins, func(n int) { sink.Add(spin(n)) })) / float64(spins.Nanoseconds())
	var all []measured
	for _, p := range programs {
		turns, err := p.turns(round, perNano)
		if err != nil {
			return nil, err
		}
		var costs [2][]float64
		for try := 0; min(len(costs[0]), len(costs[1])) < rounds; try++ {
			if try == 400*rounds {
				return nil, fmt.Errorf("%s: the machine is too busy: only %d rounds of %d were not disturbed",
					p.name, min(len(costs[0]), len(costs[1])), try)
			}
			for k := 1; k <= 2; k++ {
				took, alone, err := p.run(k, turns, perNano)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", p.name, err)
				}
				if alone && try > 0 { // the first round warms up
					costs[k-1] = append(costs[k-1], float64(took.Nanoseconds())/float64(turns))
				}
			}
		}
		var gains []float64
		for i := range rounds {
			gains = append(gains, 2*costs[0][i]/costs[1][i])
		}
		at := func(v []float64, q float64) float64 { return timing.Short(timing.Quantile(v, q)) }
		all = append(all, measured{p.name, p.between, at(costs[0], 0.5), at(costs[1], 0.5),
			at(gains, 0.5), at(gains, 0.25), at(gains, 0.75)})
	}
	return all, nil
}

// turns returns how many turns take at least half of a round on one core. It uses the shortest of three runs.
func (p program) turns(round time.Duration, perNano float64) (int, error) {
	for n := 1; ; n *= 2 {
		best := time.Duration(math.MaxInt64)
		for range 3 {
			took, _, err := p.run(1, n, perNano)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", p.name, err)
			}
			best = min(best, took)
		}
		if best >= round/2 {
			return n, nil
		}
	}
}

// run performs the operation the given number of times in each of k fibers, which begin together. It returns how long
// that took, and whether no other program used their cores.
func (p program) run(k, turns int, perNano float64) (took time.Duration, alone bool, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(k))
	rt := coir.NewRuntime(coir.WithWorkers(k))
	defer func() { err = errors.Join(err, rt.Close(context.Background())) }()
	work := int(p.between * perNano)
	var ready, ended atomic.Int64
	var late atomic.Bool // a fiber had no core when they began
	var began time.Time
	var switches int64
	err = rt.Run(context.Background(), func(_ context.Context, nur *coir.Nursery) error {
		op := p.setUp(nur, k)
		for i := range k {
			nur.Go("", func(ctx context.Context) error {
				if ready.Add(1) == int64(k) {
					switches = timing.Switches()
					began = time.Now()
					ready.Add(1)
				}
				for ready.Load() <= int64(k) { // each on its own worker
				}
				if time.Since(began) > 5*time.Microsecond {
					late.Store(true)
				}
				x := uint64(0)
				for range turns {
					if err := op(ctx, i); err != nil {
						return err
					}
					x += spin(work)
				}
				if ended.Add(1) == int64(k) {
					took, alone = time.Since(began), timing.Switches() == switches && !late.Load()
				}
				sink.Add(x)
				return nil
			})
		}
		return nil
	})
	return took, alone, err
}

// handOver returns how long it takes, in nanoseconds, until one core sees a word that another core has written, and
// writes it. Two threads take turns. The result is the first quartile of batches, because the machine takes a core away
// during many of them.
func handOver(batches int) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const batch = 1000
	var word atomic.Int64
	var times []float64
	var both sync.WaitGroup
	for odd := range int64(2) {
		both.Go(func() {
			runtime.LockOSThread()
			began := time.Now()
			for v := odd; v < int64(batches*batch); v += 2 {
				for word.Load() != v {
				}
				word.Store(v + 1)
				if v%batch == 0 && v > 0 {
					times = append(times, float64(time.Since(began).Nanoseconds())/batch)
					began = time.Now()
				}
			}
		})
	}
	both.Wait()
	return timing.Quantile(times, 0.25)
}
