package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/overlay"
	"github.com/coir-go/coir/internal/replay"
)

var testUsage = `coir test explores the schedules of tests.

Usage:

	coir test [flags] [packages]

coir test runs each test many times in a process of its own, on a virtual clock, each time with another order of its
goroutines. A test fails if any of its schedules deadlocks, panics, fails, or leaves a goroutine behind. coir test then
shrinks the failing schedule, explains it, and prints a token that runs it again.

Flags of coir:

` + flagTexts() + `
Flags of go test: -run, -skip, -list, -short, -timeout (of each test), -v, -json, -failfast, -fullpath, -C, and those of
go build, such as -race, -tags, -mod, -ldflags. -count and -shuffle are accepted and change nothing. coir test refuses
other flags, and says why and what to do instead. The arguments after -args go to the tests.

coir test runs the seeds of fuzz tests once, as go test does.

In a job of GitHub Actions, coir test also writes annotations and a job summary, unless -json is given.

The exit code is 0 if all tests passed, 1 if one failed or could not be built, 2 if coir test could not run, and 128
plus the signal number if a signal ended it.
`

// readToken returns the head of a token. It reports whether the token can be read and has a hash, as every token that
// coir test prints does. The explorer reads the decisions, in a process of the test.
func readToken(token string) (h coir.TokenHead, ok bool) {
	letters, ok := h.CutPrefix(token)
	if !ok {
		return h, false
	}
	_, err := replay.Parse(letters, h.Parse)
	return h, err == nil && h.Hash != 0
}

// test runs the command coir test.
func test(args []string, out, errs io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, testUsage)
		return 0
	}
	if err == nil && o.step != 0 {
		err = errors.New("-step is a flag of coir debug")
	}
	if err != nil {
		fmt.Fprintf(errs, "coir test: %v\nRun 'coir help test' for the flags.\n", err)
		return 2
	}
	if err := o.enter(); err != nil {
		fmt.Fprintf(errs, "coir test: %v\n", err)
		return 2
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	failed, err := explore(ctx, o, out, errs)
	var signal *interrupted
	if errors.As(context.Cause(ctx), &signal) {
		fmt.Fprintf(errs, "coir test: %v\n", signal)
		return signal.code()
	}
	if err != nil {
		fmt.Fprintf(errs, "coir test: %v\n", err)
		return 2
	}
	if failed {
		return 1
	}
	return 0
}

// enter changes to the directory of -C.
func (o *options) enter() error {
	if o.chdir == "" {
		return nil
	}
	if err := os.Chdir(o.chdir); err != nil {
		return fmt.Errorf("-C: %w", err)
	}
	if dir, err := os.Getwd(); err == nil {
		_ = os.Setenv("PWD", dir)
	}
	return nil
}

// explore builds and explores the packages. It reports whether a test has failed.
func explore(ctx context.Context, o *options, out, errs io.Writer) (failed bool, err error) {
	w := newWriter(out, o)
	if err := w.suites.writeJUnit(); err != nil {
		return false, err
	}
	if !o.compile {
		defer func() {
			ended := err
			if ctx.Err() != nil {
				ended = context.Cause(ctx)
			}
			err = errors.Join(err, w.suites.end(out, ended))
		}()
	}
	tool, err := toolchain(ctx, errs)
	if err != nil {
		return false, err
	}
	w.shrinks = tool.shrinks
	if tool.overlay, err = overlay.Make(tool.root, tool.version, tool.cache); err != nil {
		return false, err
	}
	packages, err := tool.list(ctx, o, errs)
	if err != nil {
		return false, err
	}
	dir, remove, err := makeTemp(tool.tempBase)
	if err != nil {
		return false, err
	}
	defer remove()
	tool.temp = dir
	switch {
	case o.compile:
		return tool.compile(ctx, o, packages, errs)
	case o.total > 0:
		return tool.exploreFor(ctx, o, packages, w, errs)
	}
	failed = tool.exploreEach(ctx, o, packages, w, errs)
	if o.replay != "" && o.list == "" && !failed && w.tests == 0 {
		return false, fmt.Errorf("nothing was replayed: -run '%s' selects no test that has schedules", o.run)
	}
	return failed, nil
}

// compile builds the tests of a package, for -c. It reports whether they could not be built.
func (t *tool) compile(ctx context.Context, o *options, packages []*pkg, errs io.Writer) (failed bool, err error) {
	if len(packages) != 1 {
		return false, errors.New("-c builds the tests of one package")
	}
	b := t.build(ctx, o, packages[0], o.output, errs)
	if b.why != "" && ctx.Err() == nil {
		fmt.Fprint(errs, b.output)
	}
	return b.why != "", nil
}

// exploreEach builds and explores one package after the other. It reports whether a test has failed.
func (t *tool) exploreEach(ctx context.Context, o *options, packages []*pkg, w *writer, errs io.Writer) (failed bool) {
	// While the tests of one package run, the next package is built.
	next := make(chan *built)
	building, stop := context.WithCancel(ctx)
	go func() {
		defer close(next)
		for i, p := range packages {
			b := t.build(building, o, p, filepath.Join(t.temp, strconv.Itoa(i), p.binary()), errs)
			select {
			case next <- b:
			case <-building.Done():
				return
			}
		}
	}()
	defer func() { // building must stop before the directory is removed
		stop()
		for range next {
		}
	}()
	for b := range next {
		if ctx.Err() != nil {
			break
		}
		if t.explorePackage(ctx, o, b, w) {
			failed = true
			if o.failfast {
				break
			}
		}
	}
	return failed
}

// explorePackage explores the tests of a package. It reports whether one has failed.
func (t *tool) explorePackage(ctx context.Context, o *options, b *built, w *writer) (failed bool) {
	switch {
	case b.why != "":
		w.notBuilt(b)
		return true
	case b.binary == "":
		w.noTests(b.p)
		return false
	}
	defer func() { _ = os.Remove(b.binary) }()
	began := time.Now()
	w.start(b)
	if o.list != "" {
		text, err := t.command(ctx, b.p.Dir, b.binary, "-test.list="+o.list)
		return ctx.Err() == nil && w.listed(b.p, text, err, time.Since(began))
	}
	tests, err := t.tests(ctx, o, b.p, b.binary)
	if ctx.Err() != nil {
		return w.finished(b.p, []*result{nil}, time.Since(began))
	}
	if err != nil {
		return w.listed(b.p, err.Error(), err, time.Since(began))
	}
	var jobs []*job
	for i, name := range tests {
		jobs = append(jobs, newJob(o, b.p, b.binary, name, i))
	}
	results := t.runAll(ctx, o.processes, jobs, w)
	return w.finished(b.p, results, time.Since(began))
}

// tests lists the tests and fuzz tests of a package that -run and -skip select.
func (t *tool) tests(ctx context.Context, o *options, p *pkg, binary string) ([]string, error) {
	text, err := t.command(ctx, p.Dir, binary, "-test.list=^(Test|Fuzz)")
	if err != nil {
		return nil, fmt.Errorf("cannot list the tests: %v\n%s", err, text)
	}
	run, _ := parsePattern(o.run) // parse has checked them
	skip, _ := parsePattern(o.skip)
	var tests []string
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		isTest := strings.HasPrefix(name, "Test") || isFuzz(name) && o.replay == ""
		if isTest && !strings.ContainsAny(name, " \t") && (run == nil || run.of(name) != nil) && !skip.whole(name) {
			tests = append(tests, name)
		}
	}
	return tests, nil
}

// runAll runs the jobs of a package, each in processes of its own, and at most so many processes at a time.
func (t *tool) runAll(ctx context.Context, processes int, jobs []*job, w *writer) []*result {
	results := make([]*result, len(jobs))
	alone := processes == 1 || len(jobs) == 1
	slots := make(chan bool, processes)
	var wait sync.WaitGroup
	for i, j := range jobs {
		slots <- true
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			w.began(j.p, j.test)
			r := t.runTest(ctx, j)
			if r == nil {
				w.cutShort(j.p, j.test, time.Since(began))
			}
			w.progress(j.p, results, i, r, r != nil && (alone || !r.dependsOnOthers()))
		})
	}
	wait.Wait()
	for i, r := range results { // tests may share a port or a file, because go test runs one at a time
		if r != nil && r.dependsOnOthers() && !alone && ctx.Err() == nil {
			if again := t.runTest(ctx, jobs[i]); again != nil {
				results[i] = again
			}
		}
	}
	return results
}
