package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/report"
)

// With -for, coir test explores all tests in rounds until the time is up. Each round gives a test twice the time of the
// round before, and uses another seed. A file keeps the schedules that showed something new (see coirKept in the
// overlay). The next round and the next run begin with them. The file also keeps the schedule of a failure, which then
// runs first.

// exploring is a test that is explored in rounds.
type exploring struct {
	p      *pkg
	binary string
	test   string
	n      int     // its index among all tests
	all    *result // of all rounds so far
}

// over reports whether another round of the test would show nothing new.
func (e *exploring) over() bool {
	return e.all != nil && (e.all.outcome != coir.VerdictPass || e.all.seeds)
}

// add adds the result of a round.
func (e *exploring) add(r *result) {
	if e.all != nil {
		r.plus(e.all)
	}
	e.all = r
}

// exploreFor explores packages for the time of -for. It reports whether a test has failed.
func (t *tool) exploreFor(
	ctx context.Context, o *options, packages []*pkg, dir string, w *writer, errs io.Writer,
) bool {
	failed := false
	var tests []*exploring
	for i, p := range packages {
		b := t.build(ctx, o, p, filepath.Join(dir, fmt.Sprint(i, ".test")), errs)
		if ctx.Err() != nil {
			return true
		}
		if b.binary == "" {
			failed = t.explorePackage(ctx, o, b, w) || failed
			continue
		}
		w.start(b)
		names, err := t.tests(ctx, o, p, b.binary)
		if err != nil {
			failed = w.listed(p, err.Error(), err, 0)
			continue
		}
		for _, name := range names {
			tests = append(tests, &exploring{p: p, binary: b.binary, test: name, n: len(tests)})
		}
	}
	began := time.Now() // building does not count
	for round := 0; ctx.Err() == nil && time.Since(began) < o.total; round++ {
		t.round(ctx, o, tests, round, began, w)
		open, schedules, failures := 0, 0, 0
		for _, e := range tests {
			switch {
			case e.all == nil:
			case e.all.failure != nil:
				failures++
				fallthrough
			default:
				schedules += e.all.schedules
			}
			if !e.over() {
				open++
			}
		}
		fmt.Fprintf(errs, "coir test: round %d: %s, %s so far, %s of %s\n", round+1, report.Count(schedules, "schedule"),
			report.Count(failures, "failure"), time.Since(began).Round(time.Second), o.total)
		if open == 0 || failures > 0 && o.failfast {
			break
		}
	}
	for _, p := range packages {
		var results []*result
		took := time.Duration(0)
		for _, e := range tests {
			if e.p != p || e.all == nil && ctx.Err() == nil {
				continue
			}
			if results = append(results, e.all); e.all != nil { // otherwise it was interrupted
				took += e.all.elapsed
			}
		}
		if results != nil && w.finished(p, results, took) {
			failed = true
		}
	}
	return failed
}

// round runs each test once, unless another round would show nothing new.
func (t *tool) round(
	ctx context.Context, o *options, tests []*exploring, round int, began time.Time, w *writer,
) {
	slots := make(chan bool, o.processes)
	var wait sync.WaitGroup
	for _, e := range tests {
		if e.over() {
			continue
		}
		slots <- true
		left := o.total - time.Since(began)
		if ctx.Err() != nil || left <= 0 && e.all != nil {
			<-slots
			break
		}
		mine := *o
		mine.budget = max(min(o.budget<<min(round, 20), left), time.Millisecond)
		mine.schedules = 1 << 30
		mine.seed = o.seed + uint64(round)<<32
		mine.kept = keptFile(o.dir, e.p.ImportPath, e.test)
		wait.Go(func() {
			defer func() { <-slots }()
			begins := time.Now()
			if e.all == nil {
				w.began(e.p, e.test)
			}
			switch r := t.runTest(ctx, &mine, e.p, e.binary, e.test, e.n); {
			case r != nil:
				e.add(r)
			case e.all == nil:
				w.cutShort(e.p, e.test, time.Since(begins))
			}
		})
	}
	wait.Wait()
}

// keptFile returns the name of the file with the schedules of a test.
func keptFile(dir, path, test string) string {
	name := strings.NewReplacer("/", "_", ":", "_", "\\", "_").Replace(path + "." + test)
	return filepath.Join(dir, name+".schedules")
}

// keepDir sets the directory in which schedules are kept, and makes it if it does not exist.
func keepDir(o *options, cache string) error {
	if o.dir == "" {
		o.dir = filepath.Join(cache, "schedules")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	o.dir = dir
	return os.MkdirAll(dir, 0o777)
}
