package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/overlay"
	"github.com/coir-go/coir/internal/replay"
)

const testUsage = `coir test explores the schedules of tests.

Usage:

	coir test [flags] [packages]

coir test runs each test many times in a process of its own, on a virtual clock, each time with another order of its
goroutines. A test fails if any of its schedules deadlocks, panics, fails, or leaves a goroutine behind. coir test then
shrinks the failing schedule, explains it, and prints a token that runs it again.

Flags of coir:

	-schedules n     run at most n schedules per test (default 10000); for a test with timers, the last fifth simulates
	                 a slow machine, and is counted separately
	-budget d        spend at most this time per test (default 1s; unlimited if -schedules is given, so that the result
	                 is the same on every machine)
	-strategy s      default, random, uniform, pct, exhaustive, dpor or stay
	-bound n         at most n preemptions in a schedule of the exhaustive strategy (default 2)
	-seed n          seed of the random choices (default 1)
	-racing          let time pass even while goroutines can run: finds bugs that need a timeout at a bad moment, and
	                 fails tests that rely on time
	-replay token    run one schedule again
	-atomics         also switch goroutines at atomic operations
	-network n       memory or kernel: where Unix sockets, and sockets on loopback addresses, are. In memory, coir
	                 controls them and time is virtual (default memory; kernel on systems other than Linux)
	-faults kinds    faults that schedules may have, separated by commas: reset, refused, short, delay and hang of
	                 connections in memory, or net for all of these; test for the faults of explore.Fault; or all
	-leaks=false     do not fail a test that leaves goroutines behind; -v shows them
	-strict          fail a test if some of its schedules are not controlled
	-fresh           run each schedule in a process of its own; automatic if a test depends on earlier runs
	-for d           explore all tests in rounds, for this time in total, and keep the schedules that showed something
	                 new for the next run
	-keep dir        the directory where -for keeps schedules (default in the user's cache)
	-save            write the schedule of each failure into testdata/coir, beside the test; coir test runs those first
	-emit            write a test that repeats each failure: see package explore
	-p n             run at most n processes at a time (default the number of processors)
	-c -o file       build the tests of one package into file, and run nothing
	-html dir        write a chart of each failure into the directory, as an HTML file
	-junit file      write a report in the format of JUnit, for CI systems

Flags of go test: -run, -skip, -list, -short, -timeout (of each test), -v, -json, -failfast, -fullpath, -C, and those of
go build, such as -race, -tags, -mod, -ldflags. -count and -shuffle are accepted and change nothing. coir test refuses
other flags, and says why and what to do instead. The arguments after -args go to the tests.

coir test runs the seeds of fuzz tests once, as go test does.

In a job of GitHub Actions, coir test also writes annotations and a job summary, unless -json is given.

The exit code is 0 if all tests passed, 1 if one failed or could not be built, 2 if coir test could not run, and 128
plus the signal number if a signal ended it.
`

// options are the flags of a command.
type options struct {
	schedules int
	budget    time.Duration
	strategy  string
	bound     int
	seed      uint64
	racing    bool
	replay    string
	step      int  // the flag -step of coir debug
	debug     bool // run the process under a debugger
	network   string
	onKernel  string // the reason why the test runs on the kernel's network although network was memory
	fresh     bool
	leaks     bool
	faults    string
	total     time.Duration
	dir       string   // the directory where -for keeps schedules
	kept      string   // the file where -for keeps the schedules of the test
	saved     []string // the tokens of earlier failures of the test
	save      bool
	emit      bool
	atomics   bool
	strict    bool
	from      int // the number of the first schedule to run: other processes have run the earlier ones
	patience  int // see the constant patience
	processes int
	html      string
	junit     string
	run, skip string
	list      string
	short     bool
	fullpath  bool
	verbose   bool // -v, or implied by -json
	detailed  bool // -v
	json      bool
	failfast  bool
	timeout   time.Duration
	compile   bool
	output    string   // the file that -c writes
	chdir     string   // -C
	build     []string // flags for go build and go list
	packages  []string
	args      []string // the arguments after -args
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("coir test", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.schedules, "schedules", 10000, "")
	f.DurationVar(&o.budget, "budget", time.Second, "")
	f.StringVar(&o.strategy, "strategy", "default", "")
	f.IntVar(&o.bound, "bound", 2, "")
	f.Uint64Var(&o.seed, "seed", 1, "")
	f.BoolVar(&o.racing, "racing", false, "")
	f.StringVar(&o.replay, "replay", "", "")
	f.IntVar(&o.step, "step", 0, "")
	f.StringVar(&o.network, "network", "memory", "")
	f.BoolVar(&o.leaks, "leaks", true, "")
	f.StringVar(&o.faults, "faults", "", "")
	f.BoolVar(&o.strict, "strict", false, "")
	f.BoolVar(&o.atomics, "atomics", false, "")
	f.BoolVar(&o.fresh, "fresh", false, "")
	f.DurationVar(&o.total, "for", 0, "")
	f.StringVar(&o.dir, "keep", "", "")
	f.BoolVar(&o.save, "save", false, "")
	f.BoolVar(&o.emit, "emit", false, "")
	f.IntVar(&o.processes, "p", runtime.GOMAXPROCS(0), "")
	f.StringVar(&o.html, "html", "", "")
	f.StringVar(&o.junit, "junit", "", "")
	f.StringVar(&o.run, "run", "", "")
	f.StringVar(&o.skip, "skip", "", "")
	f.BoolVar(&o.short, "short", false, "")
	f.BoolVar(&o.verbose, "v", false, "")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.failfast, "failfast", false, "")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "")
	f.BoolVar(&o.compile, "c", false, "")
	f.StringVar(&o.output, "o", "", "")
	f.BoolVar(&o.fullpath, "fullpath", false, "")
	f.StringVar(&o.list, "list", "", "")
	var refused error
	defineOthers(f, &o.build, &refused)
	if i := slices.IndexFunc(args, func(s string) bool { return s == "-args" || s == "--args" }); i >= 0 {
		args, o.args = args[:i], args[i+1:]
	}
	var err error
	if o.chdir, args, err = changeDir(args); err != nil {
		return nil, err
	}
	for len(args) > 0 { // as for go test, flags may come after packages
		if err := f.Parse(args); err != nil {
			return nil, explained(err)
		}
		if args = f.Args(); len(args) > 0 {
			o.packages = append(o.packages, args[0])
			args = args[1:]
		}
	}
	if refused != nil {
		return nil, refused
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["schedules"] && !given["budget"] && o.total == 0 {
		o.budget = math.MaxInt64
	}
	switch o.strategy {
	case "default", "random", "uniform", "pct", "exhaustive", "dpor", "stay":
	default:
		return nil, fmt.Errorf("unknown strategy %q: use default, random, uniform, pct, exhaustive, dpor or stay",
			o.strategy)
	}
	if o.network != "memory" && o.network != "kernel" {
		return nil, fmt.Errorf("unknown network %q: use memory or kernel", o.network)
	}
	if _, err := faultBits(o.faults); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"run": o.run, "skip": o.skip} {
		if _, err := parsePattern(value); err != nil {
			return nil, fmt.Errorf("-%s: %w", name, err)
		}
	}
	if _, err := regexp.Compile(o.list); err != nil {
		return nil, fmt.Errorf("-list: %q is not a regular expression: %w", o.list, err)
	}
	if o.schedules < 1 || o.processes < 1 {
		return nil, errors.New("-schedules and -p must be above 0")
	}
	if o.budget <= 0 || o.total < 0 {
		return nil, errors.New("-budget and -for must be above 0")
	}
	if o.compile != (o.output != "") {
		return nil, errors.New("-c needs -o with the name of the file to write, and -o needs -c")
	}
	if o.junit != "" && (o.compile || o.list != "") {
		return nil, errors.New("-junit cannot be combined with -c or -list, which run no tests")
	}
	flagged := slices.ContainsFunc(o.build, func(f string) bool { return strings.HasPrefix(f, "-gcflags=") })
	if o.atomics && flagged {
		return nil, errors.New("-atomics and -gcflags cannot be combined")
	}
	if o.replay != "" && o.run == "" {
		return nil, errors.New("-replay needs -run with the test of the token")
	}
	if o.replay != "" {
		if _, hash, ok := parseToken(o.replay); !ok || hash == 0 {
			return nil, fmt.Errorf("the token %s is damaged: copy all of it from the line \"replay: ...\" of the report", o.replay)
		}
	}
	if o.strategy == "dpor" && !flagged {
		o.atomics = true // otherwise dpor would miss interactions through atomics
	}
	if o.total > 0 && (o.replay != "" || o.fresh) {
		return nil, errors.New("-for cannot be combined with -replay or -fresh")
	}
	if len(o.packages) == 0 {
		o.packages = []string{"."}
	}
	o.detailed = o.verbose
	o.verbose = o.verbose || o.json // as go test does
	return o, nil
}

// faultBits returns the faults of -faults as bits.
func faultBits(names string) (bits int, err error) {
	const all, net = 1<<len(coir.Faults) - 1, 1<<(len(coir.Faults)-1) - 1
	for name := range strings.SplitSeq(names, ",") {
		switch i := slices.Index(coir.Faults[:], name); {
		case name == "":
		case name == "all":
			bits |= all
		case name == "net":
			bits |= net
		case i < 0:
			return 0, fmt.Errorf("unknown fault %q: use %s, net or all", name, strings.Join(coir.Faults[:], ", "))
		default:
			bits |= 1 << i
		}
	}
	return bits, nil
}

// readToken reports whether a token can be read, and whether the clock races in its schedule.
func readToken(token string) (racing, ok bool) {
	racing, _, ok = parseToken(token)
	return racing, ok
}

// parseToken also returns the hash of what the schedule did. It is never 0 in a token that coir test printed. The
// explorer reads the rest of the token, in a process of the test.
func parseToken(token string) (racing bool, hash uint64, ok bool) {
	letters, ok := strings.CutPrefix(token, "c1.")
	if !ok {
		letters, ok = strings.CutPrefix(token, "f1.")
	}
	_, err := replay.Parse(letters, func(b []byte) ([]byte, bool) {
		for i := range 3 { // seed, racing clock, hash
			x, n := binary.Uvarint(b)
			if n <= 0 {
				return nil, false
			}
			racing = racing || i == 1 && x&(1<<coir.FaultsInToken-1) > 0
			hash = x
			b = b[n:]
		}
		return b, true
	})
	return racing, hash, ok && err == nil
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
	if tool.overlay, err = overlay.Make(tool.root, tool.version, tool.cache); err != nil {
		return false, err
	}
	packages, err := tool.list(ctx, o)
	if err != nil {
		return false, err
	}
	dir, remove, err := makeTemp(tool.tempBase)
	if err != nil {
		return false, err
	}
	defer remove()
	tool.temp = dir
	if o.compile {
		if len(packages) != 1 {
			return false, errors.New("-c builds the tests of one package")
		}
		b := tool.build(ctx, o, packages[0], o.output, errs)
		if b.why != "" && ctx.Err() == nil {
			fmt.Fprint(errs, b.output)
		}
		return b.why != "", nil
	}
	if o.total > 0 {
		if err := keepDir(o, tool.cache); err != nil {
			return false, err
		}
		return tool.exploreFor(ctx, o, packages, dir, w, errs), nil
	}

	// While the tests of one package run, the next package is built.
	next := make(chan *built)
	building, stop := context.WithCancel(ctx)
	go func() {
		defer close(next)
		for i, p := range packages {
			b := tool.build(building, o, p, filepath.Join(dir, strconv.Itoa(i), p.binary()), errs)
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
		if tool.explorePackage(ctx, o, b, w) {
			failed = true
			if o.failfast {
				break
			}
		}
	}
	return failed, nil
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
	results := t.runAll(ctx, o, b.p, b.binary, tests, w)
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

// runAll runs the tests, each in a process of its own.
func (t *tool) runAll(ctx context.Context, o *options, p *pkg, binary string, tests []string, w *writer) []*result {
	results := make([]*result, len(tests))
	alone := o.processes == 1 || len(tests) == 1
	slots := make(chan bool, o.processes)
	var wait sync.WaitGroup
	for i, name := range tests {
		slots <- true
		if ctx.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-slots }()
			began := time.Now()
			w.began(p, name)
			r := t.runTest(ctx, o, p, binary, name, i)
			if r == nil {
				w.cutShort(p, name, time.Since(began))
			}
			w.progress(p, results, i, r, r != nil && (alone || !r.dependsOnOthers()))
		})
	}
	wait.Wait()
	for i, r := range results { // tests may share a port or a file, because go test runs one at a time
		if r != nil && r.dependsOnOthers() && !alone && ctx.Err() == nil {
			if again := t.runTest(ctx, o, p, binary, r.test, i); again != nil {
				results[i] = again
			}
		}
	}
	return results
}
