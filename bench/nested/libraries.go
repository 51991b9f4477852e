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

// A library has a program, which returns the number of children that ran.
type library struct {
	name    string
	program func() int
}

// libraries has the same program for each library. If the library can wait for a part of the tasks, the program uses
// that; otherwise it uses a WaitGroup.
var libraries = []library{
	{"errgroup", func() int {
		var g errgroup.Group
		g.SetLimit(places)
		return withWaitGroups(func(task func()) { g.Go(func() error { task(); return nil }) },
			func(*sync.WaitGroup) { check(g.Wait()) })
	}},
	{"pond", onPond},
	{"ants", func() int {
		p, err := ants.NewPool(places)
		check(err)
		return withWaitGroups(func(task func()) { check(p.Submit(task)) },
			func(all *sync.WaitGroup) { all.Wait(); p.Release() })
	}},
	{"workerpool", func() int {
		p := workerpool.New(places)
		// StopWait would refuse children that the tasks have not submitted yet.
		return withWaitGroups(p.Submit, func(all *sync.WaitGroup) { all.Wait(); p.StopWait() })
	}},
	{"conc", func() int {
		p := pool.New().WithMaxGoroutines(places)
		return withWaitGroups(p.Go, func(*sync.WaitGroup) { p.Wait() })
	}},
	{"coir", onCoir},
	{"coir-run", onCoirRun},
}

// withWaitGroups is the program for a library that cannot wait for a part of the tasks: it uses a WaitGroup instead.
// wait waits for all tasks, in the library's own way or with the WaitGroup.
func withWaitGroups(start func(task func()), wait func(all *sync.WaitGroup)) int {
	var ran atomic.Int64
	var outer sync.WaitGroup
	for range tasks {
		outer.Add(1)
		start(func() {
			defer outer.Done()
			var inner sync.WaitGroup
			for range children {
				inner.Add(1)
				start(func() {
					defer inner.Done()
					ran.Add(1)
				})
			}
			inner.Wait()
		})
	}
	wait(&outer)
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
	check(outer.Wait())
	p.StopAndWait()
	return int(ran.Load())
}

// onCoir is the same program on coir, without changes: the children go into the same nursery as the tasks, and each
// task waits for its children.
func onCoir() int {
	return inNursery(func(n *coir.Nursery, child func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			mine := make([]*coir.Fiber, children)
			for i := range mine {
				mine[i] = n.Go("child", child)
			}
			for _, f := range mine {
				if err := f.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// onCoirRun is the same program in the usual style of coir: each task opens a nursery for its children.
func onCoirRun() int {
	return inNursery(func(_ *coir.Nursery, child func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Limit(places)
				for range children {
					n.Go("child", child)
				}
				return nil
			})
		}
	})
}

// inNursery starts the tasks in a nursery with the same number of places.
func inNursery(task func(n *coir.Nursery, child func(context.Context) error) func(context.Context) error) int {
	var ran atomic.Int64
	check(coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Limit(places)
		for range tasks {
			n.Go("task", task(n, func(context.Context) error {
				ran.Add(1)
				return nil
			}))
		}
		return nil
	}))
	return int(ran.Load())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
