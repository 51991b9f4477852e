package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/alitto/pond/v2"
	"github.com/coir-go/coir"
	"github.com/gammazero/workerpool"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
)

// libraries has the same program for each: it returns the number of children
// that ran. Where the library has a way of its own to wait for a part of the
// tasks, the program uses that; elsewhere it uses a WaitGroup.
var libraries = []struct {
	name    string
	program func() int
}{
	{"errgroup", onErrgroup},
	{"pond", onPond},
	{"ants", onAnts},
	{"workerpool", onWorkerpool},
	{"conc", onConc},
	{"coir", onCoir},
	{"coir-run", onCoirRun},
}

func onErrgroup() int {
	var ran atomic.Int64
	var g errgroup.Group
	g.SetLimit(places)
	for range tasks {
		g.Go(func() error {
			var wg sync.WaitGroup
			wg.Add(children)
			for range children {
				g.Go(func() error {
					defer wg.Done()
					ran.Add(1)
					return nil
				})
			}
			wg.Wait()
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		panic(err)
	}
	return int(ran.Load())
}

func onPond() int {
	var ran atomic.Int64
	p := pond.NewPool(places)
	outer := p.NewGroup()
	for range tasks {
		outer.SubmitErr(func() error {
			inner := p.NewGroup()
			for range children {
				inner.Submit(func() { ran.Add(1) })
			}
			return inner.Wait()
		})
	}
	if err := outer.Wait(); err != nil {
		panic(err)
	}
	p.StopAndWait()
	return int(ran.Load())
}

func onAnts() int {
	var ran atomic.Int64
	p, err := ants.NewPool(places)
	if err != nil {
		panic(err)
	}
	defer p.Release()
	var outer sync.WaitGroup
	for range tasks {
		outer.Add(1)
		submit(p, func() {
			defer outer.Done()
			var inner sync.WaitGroup
			for range children {
				inner.Add(1)
				submit(p, func() {
					defer inner.Done()
					ran.Add(1)
				})
			}
			inner.Wait()
		})
	}
	outer.Wait()
	return int(ran.Load())
}

func submit(p *ants.Pool, task func()) {
	if err := p.Submit(task); err != nil {
		panic(err)
	}
}

func onWorkerpool() int {
	var ran atomic.Int64
	p := workerpool.New(places)
	var outer sync.WaitGroup
	for range tasks {
		outer.Add(1)
		p.Submit(func() {
			defer outer.Done()
			var inner sync.WaitGroup
			for range children {
				inner.Add(1)
				p.Submit(func() {
					defer inner.Done()
					ran.Add(1)
				})
			}
			inner.Wait()
		})
	}
	outer.Wait() // StopWait refuses what the tasks have yet to submit
	p.StopWait()
	return int(ran.Load())
}

func onConc() int {
	var ran atomic.Int64
	p := pool.New().WithMaxGoroutines(places)
	for range tasks {
		p.Go(func() {
			var wg sync.WaitGroup
			for range children {
				wg.Add(1)
				p.Go(func() {
					defer wg.Done()
					ran.Add(1)
				})
			}
			wg.Wait()
		})
	}
	p.Wait()
	return int(ran.Load())
}

// onCoir is the program word for word: the children go into the same nursery as
// the tasks, and each task waits for its own.
func onCoir() int {
	var ran atomic.Int64
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Limit(places)
		for range tasks {
			n.Go("task", func(ctx context.Context) error {
				mine := make([]*coir.Fiber, children)
				for i := range mine {
					mine[i] = n.Go("child", func(context.Context) error {
						ran.Add(1)
						return nil
					})
				}
				for _, f := range mine {
					if err := f.Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return int(ran.Load())
}

// onCoirRun is the same as one would rather write it: each task opens a nursery
// of its own for its children.
func onCoirRun() int {
	var ran atomic.Int64
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Limit(places)
		for range tasks {
			n.Go("task", func(ctx context.Context) error {
				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Limit(places)
					for range children {
						n.Go("child", func(context.Context) error {
							ran.Add(1)
							return nil
						})
					}
					return nil
				})
			})
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return int(ran.Load())
}
