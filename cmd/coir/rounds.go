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

// inRounds is a test that is explored in rounds.
type inRounds struct {
	job *job    // of a round without limits
	all *result // of all rounds so far
}

// over reports whether another round of the test would show nothing new.
func (e *inRounds) over() bool {
	return e.all != nil && (e.all.outcome != coir.VerdictPass || e.all.seeds)
}

// add adds the result of a round.
func (e *inRounds) add(r *result) {
	if e.all != nil {
		r.mergeRounds(e.all)
	}
	e.all = r
}

// rounds are the rounds of a run.
type rounds struct {
	tool  *tool
	o     *options
	w     *writer
	keep  string // the directory where schedules are kept
	tests []*inRounds
	began time.Time // building does not count
}

// exploreFor explores packages for the time of -for. It reports whether a test has failed.
func (t *tool) exploreFor(ctx context.Context, o *options, packages []*pkg, w *writer, errs io.Writer) (bool, error) {
	keep, err := keepDir(o.keep, t.cache)
	if err != nil {
		return false, err
	}
	s := &rounds{tool: t, o: o, w: w, keep: keep}
	failed := s.build(ctx, packages, errs)
	if ctx.Err() != nil {
		return true, nil
	}
	s.began = time.Now()
	for n := 0; ctx.Err() == nil && s.left() > 0; n++ {
		s.round(ctx, n)
		open, schedules, failures := s.progress()
		fmt.Fprintf(errs, "coir test: round %d: %s, %s so far, %s of %s\n", n+1, report.Count(schedules, "schedule"),
			report.Count(failures, "failure"), time.Since(s.began).Round(time.Second), o.total)
		if open == 0 || failures > 0 && o.failfast {
			break
		}
	}
	for _, p := range packages {
		if results, took := s.results(p, ctx.Err() != nil); results != nil && w.finished(p, results, took) {
			failed = true
		}
	}
	return failed, nil
}

// left returns the remaining time.
func (s *rounds) left() time.Duration { return s.o.total - time.Since(s.began) }

// build builds the packages, and finds their tests. It reports whether a package failed.
func (s *rounds) build(ctx context.Context, packages []*pkg, errs io.Writer) (failed bool) {
	for i, p := range packages {
		b := s.tool.build(ctx, s.o, p, filepath.Join(s.tool.temp, fmt.Sprint(i, ".test")), errs)
		if ctx.Err() != nil {
			return true
		}
		if b.binary == "" {
			failed = s.tool.explorePackage(ctx, s.o, b, s.w) || failed
			continue
		}
		s.w.start(b)
		names, err := s.tool.tests(ctx, s.o, p, b.binary)
		if err != nil {
			failed = s.w.listed(p, err.Error(), err, 0)
			continue
		}
		for _, name := range names {
			s.tests = append(s.tests, &inRounds{job: newJob(s.o, p, b.binary, name, len(s.tests))})
		}
	}
	return failed
}

// progress returns how many tests need another round, and how many schedules and failures there are so far.
func (s *rounds) progress() (open, schedules, failures int) {
	for _, e := range s.tests {
		if !e.over() {
			open++
		}
		if e.all != nil {
			schedules += e.all.schedules
			if e.all.failure != nil {
				failures++
			}
		}
	}
	return open, schedules, failures
}

// results returns the results of the tests of a package, and how long they took. If the run was interrupted, the
// result of a test that has none yet is nil.
func (s *rounds) results(p *pkg, interrupted bool) (results []*result, took time.Duration) {
	for _, e := range s.tests {
		if e.job.p != p || e.all == nil && !interrupted {
			continue
		}
		if results = append(results, e.all); e.all != nil {
			took += e.all.elapsed
		}
	}
	return results, took
}

// round runs each test once, unless another round would show nothing new.
func (s *rounds) round(ctx context.Context, n int) {
	slots := make(chan bool, s.o.processes)
	var wait sync.WaitGroup
	for _, e := range s.tests {
		if e.over() {
			continue
		}
		slots <- true
		left := s.left()
		if ctx.Err() != nil || left <= 0 && e.all != nil {
			<-slots
			break
		}
		j := e.job.inRound(n, left, s.keep)
		if e.all != nil {
			j.before = e.all.schedules + e.all.racing
		}
		wait.Go(func() {
			defer func() { <-slots }()
			begins := time.Now()
			if e.all == nil {
				s.w.began(j.p, j.test)
			}
			switch r := s.tool.runTest(ctx, j); {
			case r != nil:
				e.add(r)
			case e.all == nil:
				s.w.cutShort(j.p, j.test, time.Since(begins))
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

// keepDir returns the directory in which schedules are kept, and makes it if it does not exist. keep is the value of
// -keep, and cache the directory where coir keeps its files.
func keepDir(keep, cache string) (dir string, err error) {
	if keep == "" {
		keep = filepath.Join(cache, "schedules")
	}
	if dir, err = filepath.Abs(keep); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o777)
}
