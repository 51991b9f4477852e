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
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/overlay"
	"github.com/coir-go/coir/internal/replay"
)

const testUsage = `coir test explores the schedules of tests.

Usage:

	coir test [flags] [packages]

Each test runs in a process of its own, many times, each time in another order of its goroutines and on a virtual clock.
It fails if any of the schedules deadlocks, panics, fails, or leaves a goroutine behind. The failing schedule is made
small, explained, and can be run again by its token.

Flags of coir:

	-schedules n     at most so many schedules a test (10000)
	-budget d        at most so much time a test (1s; no bound if -schedules is given, so that the result is the same on
	                 every machine)
	-strategy s      default, random, uniform, pct, exhaustive, dpor, stay
	-bound n         preemptions in a schedule of the exhaustive strategy (2)
	-seed n          where to begin (1)
	-racing          let time pass while goroutines can run, too: finds what needs a timeout at a bad moment,
	                 and fails tests that rely on time
	-replay token    run one schedule again
	-atomics         atomic operations are points, too
	-leaks=false     a test that leaves goroutines behind passes; they are shown with -v
	-fresh           run each schedule in a process of its own, as is done for tests that notice earlier runs
	-for d           explore all tests in rounds, for so much time in all, and keep schedules that have shown something
	                 new for the next time
	-keep dir        where -for keeps them (in the user's cache)
	-p n             processes at a time (the number of processors)
	-c -o file       build the tests of one package into file, and run nothing
	-html dir        draw each failure, as an HTML file in the directory

Flags of go test: -run, -skip, -short, -timeout (of each test), -v, -json, -failfast, and those of go build, such as
-race, -tags, -mod, -ldflags. What follows -args goes to the tests.
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
	fresh     bool
	leaks     bool
	total     time.Duration
	dir       string // where schedules are kept
	kept      string // the file with the schedules of the test
	atomics   bool
	processes int
	html      string
	run, skip string
	short     bool
	verbose   bool
	json      bool
	failfast  bool
	timeout   time.Duration
	compile   bool
	output    string   // of compile
	build     []string // for go build and go list
	packages  []string
	args      []string // for the tests
}

// buildFlags are the flags of go build that are passed on. Those with true have no value.
var buildFlags = map[string]bool{
	"race": true, "msan": true, "asan": true, "trimpath": true, "x": true, "work": true, "modcacherw": true,
	"tags": false, "mod": false, "modfile": false, "ldflags": false, "gcflags": false, "asmflags": false, "C": false,
	"pgo": false, "buildvcs": false,
}

// passed collects flags that are passed on.
type passed struct {
	name string
	bare bool
	to   *[]string
}

func (p passed) String() string   { return "" }
func (p passed) IsBoolFlag() bool { return p.bare }
func (p passed) Set(v string) error {
	*p.to = append(*p.to, "-"+p.name+"="+v)
	return nil
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
	f.BoolVar(&o.leaks, "leaks", true, "")
	f.BoolVar(&o.atomics, "atomics", false, "")
	f.BoolVar(&o.fresh, "fresh", false, "")
	f.DurationVar(&o.total, "for", 0, "")
	f.StringVar(&o.dir, "keep", "", "")
	f.Int("count", 1, "")    // of go test: a schedule is not run twice
	f.Int("parallel", 1, "") // of go test: all parallel tests of a schedule run in parallel
	f.IntVar(&o.processes, "p", runtime.GOMAXPROCS(0), "")
	f.StringVar(&o.html, "html", "", "")
	f.StringVar(&o.run, "run", "", "")
	f.StringVar(&o.skip, "skip", "", "")
	f.BoolVar(&o.short, "short", false, "")
	f.BoolVar(&o.verbose, "v", false, "")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.failfast, "failfast", false, "")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "")
	f.BoolVar(&o.compile, "c", false, "")
	f.StringVar(&o.output, "o", "", "")
	for name, bare := range buildFlags {
		f.Var(passed{name, bare, &o.build}, name, "")
	}
	if i := slices.IndexFunc(args, func(s string) bool { return s == "-args" || s == "--args" }); i >= 0 {
		args, o.args = args[:i], args[i+1:]
	}
	for len(args) > 0 { // flags may come after packages, as for go test
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		if args = f.Args(); len(args) > 0 {
			o.packages = append(o.packages, args[0])
			args = args[1:]
		}
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if given["schedules"] && !given["budget"] && o.total == 0 {
		o.budget = math.MaxInt64
	}
	switch o.strategy {
	case "default", "random", "uniform", "pct", "exhaustive", "dpor", "stay":
	default:
		return nil, fmt.Errorf("there is no strategy %q: there are default, random, uniform, pct, exhaustive, dpor and stay",
			o.strategy)
	}
	if o.schedules < 1 || o.processes < 1 {
		return nil, errors.New("-schedules and -p need a number above 0")
	}
	if o.compile != (o.output != "") {
		return nil, errors.New("-c needs -o with the file to write, and -o needs -c")
	}
	flagged := slices.ContainsFunc(o.build, func(f string) bool { return strings.HasPrefix(f, "-gcflags=") })
	if o.atomics && flagged {
		return nil, errors.New("-atomics sets -gcflags, so that the two cannot be given together")
	}
	if o.replay != "" && o.run == "" {
		return nil, errors.New("-replay needs -run with the test that the token is of")
	}
	if o.replay != "" {
		if _, ok := readToken(o.replay); !ok {
			return nil, fmt.Errorf("the token %s is damaged", o.replay)
		}
	}
	if o.strategy == "dpor" && !flagged {
		o.atomics = true // interactions through atomics would be lost
	}
	if o.total > 0 && (o.replay != "" || o.fresh) {
		return nil, errors.New("-for does not go with -replay or -fresh")
	}
	if len(o.packages) == 0 {
		o.packages = []string{"."}
	}
	return o, nil
}

// readToken reports whether a token can be read, and whether the clock races in its schedule. The explorer reads the
// rest, in a process of the test.
func readToken(token string) (racing, ok bool) {
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
			racing = racing || i == 1 && x > 0
			b = b[n:]
		}
		return b, true
	})
	return racing, ok && err == nil
}

// test runs the command coir test.
func test(args []string, out, errs io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, testUsage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(errs, "coir test: %v\nRun 'coir help test' for the flags.\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed, err := explore(ctx, o, out, errs)
	if err != nil {
		fmt.Fprintf(errs, "coir test: %v\n", err)
		return 2
	}
	if failed {
		return 1
	}
	return 0
}

// explore builds and explores the packages. It reports whether a test has failed.
func explore(ctx context.Context, o *options, out, errs io.Writer) (failed bool, err error) {
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
	if o.compile {
		if len(packages) != 1 {
			return false, errors.New("-c builds the tests of one package")
		}
		text, err := tool.build(ctx, o, packages[0], o.output)
		fmt.Fprint(errs, text)
		return err != nil, nil
	}
	dir, err := os.MkdirTemp("", "coir-test-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	if o.total > 0 {
		if err := keepDir(o, tool.cache); err != nil {
			return false, err
		}
		return tool.exploreFor(ctx, o, packages, dir, newWriter(out, o), errs), context.Cause(ctx)
	}

	// One package is built while the tests of the one before run.
	type built struct {
		p      *pkg
		binary string
		output string
		err    error
	}
	next := make(chan built)
	go func() {
		defer close(next)
		for i, p := range packages {
			b := built{p: p, binary: filepath.Join(dir, strconv.Itoa(i), p.binary())}
			if p.hasTests() {
				b.output, b.err = tool.build(ctx, o, p, b.binary)
			}
			select {
			case next <- b:
			case <-ctx.Done():
				return
			}
		}
	}()
	w := newWriter(out, o)
	for b := range next {
		if ctx.Err() != nil {
			break
		}
		switch {
		case !b.p.hasTests():
			w.noTests(b.p)
			continue
		case b.err != nil:
			w.notBuilt(b.p, b.output)
			failed = true
			continue
		}
		began := time.Now()
		tests, err := tool.tests(ctx, o, b.p, b.binary)
		if err != nil {
			w.notBuilt(b.p, err.Error())
			failed = true
			continue
		}
		results := tool.runAll(ctx, o, b.p, b.binary, tests, w)
		_ = os.Remove(b.binary)
		if w.finished(b.p, results, time.Since(began)) {
			failed = true
			if o.failfast {
				break
			}
		}
	}
	return failed, context.Cause(ctx)
}

// tests lists the tests of a package that -run and -skip select.
func (t *tool) tests(ctx context.Context, o *options, p *pkg, binary string) ([]string, error) {
	top, _, _ := strings.Cut(o.run, "/")
	if top == "" {
		top = "."
	}
	text, err := t.command(ctx, p.Dir, binary, "-test.list", top)
	if err != nil {
		return nil, fmt.Errorf("the tests cannot be listed: %v\n%s", err, text)
	}
	var skip *regexp.Regexp
	if o.skip != "" && !strings.Contains(o.skip, "/") {
		if skip, err = regexp.Compile(o.skip); err != nil {
			return nil, err
		}
	}
	var tests []string
	for line := range strings.Lines(text) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, "Test") && !strings.ContainsAny(name, " \t") && (skip == nil || !skip.MatchString(name)) {
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
			r := t.runTest(ctx, o, p, binary, name, i)
			w.progress(p, results, i, r, r != nil && (alone || !r.dependsOnOthers()))
		})
	}
	wait.Wait()
	for i, r := range results { // tests may share a port or a file, and do not run concurrently under go test
		if r != nil && r.dependsOnOthers() && !alone && ctx.Err() == nil {
			if again := t.runTest(ctx, o, p, binary, r.test, i); again != nil {
				results[i] = again
			}
		}
	}
	return results
}
