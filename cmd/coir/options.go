package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/report"
)

// options are the flags and the arguments of coir test and coir debug, as the user gave them. Nothing changes them
// after parse. Methods, and the job of each test, say what follows from them.
type options struct {
	schedules int
	budget    time.Duration // see limit
	shrink    time.Duration // see shrinking
	strategy  string
	bound     int
	seed      uint64
	racing    bool
	replay    string
	step      int // of coir debug
	network   string
	fresh     bool
	leaks     bool
	faults    string
	total     time.Duration // -for
	keep      string
	save      bool
	emit      bool
	atomics   bool // see atomicPoints
	strict    bool
	processes int // -p
	html      string
	junit     string
	run, skip string
	list      string
	short     bool
	fullpath  bool
	verbose   bool // -v; see printsAll
	json      bool
	failfast  bool
	timeout   time.Duration
	compile   bool     // -c
	output    string   // -o
	chdir     string   // -C
	build     []string // flags for go build and go list
	packages  []string
	args      []string        // the arguments after -args
	given     map[string]bool // the names of the flags that were given
}

// strategy is a value of -strategy. The explorer in the process of the test has the algorithm: see search in the
// overlay.
type strategy struct {
	name    string
	inOrder bool   // it depends on its earlier schedules, so that another process cannot continue it
	doc     string // for the reference in docs/guide
}

// strategies are all values of -strategy. The first is the default.
var strategies = []strategy{
	{name: "default", doc: "several in turn: those below except dpor, and random orders in which a few goroutines stop " +
		"for long"},
	{name: "random", doc: "at random: each choice is equally likely"},
	{name: "uniform", doc: "at random: each order is equally likely"},
	{name: "pct", doc: "at random: runs the goroutine with the highest random priority, and " +
		"changes a few priorities"},
	{name: "exhaustive", inOrder: true, doc: "all schedules with at most `-bound` preemptions. When all have run, the " +
		"last line says so: all of its schedules \"with at most 2 preemptions\". The default strategy also does that, and " +
		"reports it with `-v`"},
	{name: "dpor", inOrder: true, doc: "all orders of operations that conflict, with few schedules of each: operations " +
		"on the same channel, lock, WaitGroup, Cond or Once, and with `-atomics` on the same atomic. A small test is often " +
		"complete after some hundred schedules, and the last line says so. It turns `-atomics` on. It assumes a " +
		"program without data races, and does not see effects between goroutines through `len` and `cap` of a channel, one " +
		"timer, a sync.Pool, or atomics inside the standard library, such as those behind `ctx.Err`"},
	{name: plainOrder, doc: "only the plain order"},
}

// plainOrder is the strategy with only the plain schedule.
const plainOrder = "plain"

// strategyNames returns the names of all strategies, in words.
func strategyNames() string {
	var names []string
	for _, s := range strategies {
		names = append(names, s.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// strategyNamed returns the strategy with a name.
func strategyNamed(name string) (s strategy, ok bool) {
	i := slices.IndexFunc(strategies, func(s strategy) bool { return s.name == name })
	if i < 0 {
		return strategy{}, false
	}
	return strategies[i], true
}

// flagOfCoir is a flag: where parse stores its value, its default, and its text in the help. A flag without a text is
// one of go test or of coir debug. In the text, back quotes mark the word for the value, and {} is the default.
type flagOfCoir struct {
	to    any
	name  string
	value any
	text  string
}

// table returns the flags of coir test that set a field, in the order of the help.
func (o *options) table() []flagOfCoir {
	return []flagOfCoir{
		{&o.schedules, "schedules", 10000, "run at most `n` schedules per test (default {}); for a test with timers, the " +
			"last fifth simulates a slow machine, and is counted separately"},
		{&o.budget, "budget", time.Second, "spend at most `duration` on each test, such as 10s (default {}; " +
			"unlimited if -schedules is given, so that the result is the same on every machine)"},
		{&o.shrink, "shrink", 10 * time.Second, "spend at most `d` on shrinking a failure, beside the time of -budget " +
			"(default {}); 0: do not shrink it"},
		{&o.strategy, "strategy", strategies[0].name, "choose schedules by `strategy`: " + strategyNames()},
		{&o.bound, "bound", 2, "at most `n` preemptions in a schedule of the exhaustive strategy (default {})"},
		{&o.seed, "seed", uint64(1), "the seed `n` of the random choices (default {})"},
		{&o.racing, "racing", false, "let time pass even while goroutines can run: finds bugs that need a timeout at a bad " +
			"moment, and fails tests that rely on time"},
		{&o.replay, "replay", "", "run one schedule again, by its `token`"},
		{&o.atomics, "atomics", false, "also switch goroutines at atomic operations"},
		{&o.network, "network", networks[0], "the `network` for Unix and loopback sockets: " +
			strings.Join(networks, " or ") + ". In memory, coir controls them and time is virtual (default {}; kernel on " +
			"systems other than Linux)"},
		{&o.faults, "faults", "", "the `kinds` of faults that schedules may have, separated by commas: reset, refused, " +
			"short, delay and hang of connections in memory, or net for all of these; test for the faults of " +
			"explore.Fault; or all. The first half of the schedules has none"},
		{&o.leaks, "leaks", true, "if false, do not fail a test that leaves goroutines behind; -v shows them"},
		{&o.strict, "strict", false, "fail a test if some of its schedules are not controlled"},
		{&o.fresh, "fresh", false, "run each schedule in a process of its own, none as on a slow machine; " +
			"automatic if a test depends on earlier runs"},
		{&o.total, "for", time.Duration(0), "explore all tests in rounds, for this time `d` in total, and keep the " +
			"schedules that showed something new for the next run"},
		{&o.keep, "keep", "", "the directory `dir` where -for keeps schedules (default in the user's cache)"},
		{&o.save, "save", false, "write the schedule of each failure into testdata/coir, beside the test; coir test runs " +
			"those first"},
		{&o.emit, "emit", false, "write a test that repeats each failure: see package explore"},
		{&o.processes, "p", runtime.GOMAXPROCS(0), "run at most `n` processes at a time (default the number of processors)"},
		{&o.compile, "c", false, "with -o: build the tests of one package, and run nothing"},
		{&o.output, "o", "", "the `file` that -c writes"},
		{&o.html, "html", "", "write a chart of each failure into the directory `dir`, as an HTML file"},
		{&o.junit, "junit", "", "write a report in the format of JUnit, for CI systems, into the `file`"},
		{to: &o.step, name: "step", value: 0},
		{to: &o.run, name: "run", value: ""},
		{to: &o.skip, name: "skip", value: ""},
		{to: &o.list, name: "list", value: ""},
		{to: &o.short, name: "short", value: false},
		{to: &o.verbose, name: "v", value: false},
		{to: &o.json, name: "json", value: false},
		{to: &o.failfast, name: "failfast", value: false},
		{to: &o.fullpath, name: "fullpath", value: false},
		{to: &o.timeout, name: "timeout", value: 10 * time.Minute},
	}
}

// networks are the values of -network. The first is the default.
var networks = []string{"memory", onKernelNet}

// onKernelNet is the network of the kernel.
const onKernelNet = "kernel"

// define defines a flag.
func (d *flagOfCoir) define(f *flag.FlagSet) {
	switch to := d.to.(type) {
	case *bool:
		f.BoolVar(to, d.name, d.value.(bool), d.text)
	case *int:
		f.IntVar(to, d.name, d.value.(int), d.text)
	case *uint64:
		f.Uint64Var(to, d.name, d.value.(uint64), d.text)
	case *string:
		f.StringVar(to, d.name, d.value.(string), d.text)
	case *time.Duration:
		f.DurationVar(to, d.name, d.value.(time.Duration), d.text)
	default:
		panic("the flag " + d.name + " has no type")
	}
}

// flagColumn and flagWidth are the width of the names of flags in the help, and that of their texts.
const flagColumn, flagWidth = 19, 93

// flagTexts returns the lines of the help about the flags of coir.
func flagTexts() string {
	var b strings.Builder
	for _, d := range new(options).table() {
		if d.text == "" {
			continue
		}
		value, text := flag.UnquoteUsage(&flag.Flag{Name: d.name, Usage: d.text})
		name := "-" + d.name
		switch on := d.value == true; {
		case on:
			name += "=false"
			text = strings.TrimPrefix(text, "if false, ")
		case value != "" && strings.Contains(d.text, "`"):
			name += " " + value
		}
		text = strings.ReplaceAll(text, "{}", fmt.Sprint(d.value))
		for i, line := range report.Wrap(text, flagWidth) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "\t%-*s%s\n", flagColumn, name, line)
		}
	}
	return b.String()
}

// parse reads the arguments of coir test or coir debug.
func parse(args []string) (*options, error) {
	o := &options{given: map[string]bool{}}
	f := flag.NewFlagSet("coir test", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	for _, d := range o.table() {
		d.define(f)
	}
	var refused error
	defineOthers(f, &o.build, &refused)
	if err := o.read(f, args); err != nil {
		return nil, err
	}
	f.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
	for _, err := range []error{refused, o.checkValues(), o.checkTogether(), o.checkReplay()} {
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

// read sets the flags and the arguments.
func (o *options) read(f *flag.FlagSet, args []string) (err error) {
	if i := slices.IndexFunc(args, func(s string) bool { return s == "-args" || s == "--args" }); i >= 0 {
		args, o.args = args[:i], args[i+1:]
	}
	if o.chdir, args, err = changeDir(args); err != nil {
		return err
	}
	for len(args) > 0 { // as for go test, flags may come after packages
		if err := f.Parse(args); err != nil {
			return explained(err)
		}
		if args = f.Args(); len(args) > 0 {
			o.packages = append(o.packages, args[0])
			args = args[1:]
		}
	}
	if len(o.packages) == 0 {
		o.packages = []string{"."}
	}
	return nil
}

// checkValues checks the values of single flags.
func (o *options) checkValues() error {
	if _, ok := strategyNamed(o.strategy); !ok {
		return fmt.Errorf("unknown strategy %q: use %s", o.strategy, strategyNames())
	}
	if !slices.Contains(networks, o.network) {
		return fmt.Errorf("unknown network %q: use %s", o.network, strings.Join(networks, " or "))
	}
	if _, err := faultBits(o.faults); err != nil {
		return err
	}
	for _, f := range []struct{ name, value string }{{"run", o.run}, {"skip", o.skip}} {
		if _, err := parsePattern(f.value); err != nil {
			return fmt.Errorf("-%s: %w", f.name, err)
		}
	}
	if _, err := regexp.Compile(o.list); err != nil {
		return fmt.Errorf("-list: %q is not a regular expression: %w", o.list, err)
	}
	if o.schedules < 1 || o.processes < 1 {
		return errors.New("-schedules and -p must be positive")
	}
	if o.budget <= 0 {
		return errors.New("-budget must be positive")
	}
	if o.shrink < 0 {
		return errors.New("-shrink must not be below 0; with 0, failures are not shrunk")
	}
	if o.total < 0 {
		return errors.New("-for must not be negative; with 0, which is the default, coir test runs once")
	}
	return nil
}

// checkTogether checks flags that need or exclude others.
func (o *options) checkTogether() error {
	switch {
	case o.compile != (o.output != ""):
		return errors.New("-c needs -o with the name of the file to write, and -o needs -c")
	case o.junit != "" && (o.compile || o.list != ""):
		return errors.New("-junit cannot be combined with -c or -list, which run no tests")
	case o.atomics && o.setsGcflags():
		return errors.New("-atomics and -gcflags cannot be combined")
	case o.total > 0 && (o.replay != "" || o.fresh):
		return errors.New("-for cannot be combined with -replay or -fresh")
	}
	return nil
}

// checkReplay checks the token of -replay.
func (o *options) checkReplay() error {
	if o.replay == "" {
		return nil
	}
	if o.run == "" {
		return errors.New("-replay needs -run with the test of the token")
	}
	if _, ok := readToken(o.replay); !ok {
		return fmt.Errorf("the token %s is damaged: copy all of it from the line \"replay: ...\" of the report", o.replay)
	}
	return nil
}

// limit returns the time that a test may take. It is unlimited if only the number of schedules was given, so that the
// result is the same on every machine.
func (o *options) limit() time.Duration {
	if o.given["schedules"] && !o.given["budget"] && o.total == 0 {
		return math.MaxInt64
	}
	return o.budget
}

// mostProcessor limits the processor time to shrink a failure if there is no limit of real time.
const mostProcessor = 20 * time.Second

// shrinking returns the time that shrinking a failure may take, and whether that is processor time. It is so if only
// the number of schedules was given, so that the result does not depend on the load of the machine.
func (o *options) shrinking() (most time.Duration, processor bool) {
	if o.limit() == math.MaxInt64 && !o.given["shrink"] {
		return mostProcessor, true
	}
	return o.shrink, false
}

// atomicPoints reports whether goroutines are switched at atomic operations. Without that, the strategy dpor would miss
// interactions through atomics.
func (o *options) atomicPoints() bool { return o.atomics || o.strategy == "dpor" && !o.setsGcflags() }

// setsGcflags reports whether -gcflags was given.
func (o *options) setsGcflags() bool {
	return slices.ContainsFunc(o.build, func(f string) bool { return strings.HasPrefix(f, "-gcflags=") })
}

// printsAll reports whether to print something about each test. As for go test, -json implies that.
func (o *options) printsAll() bool { return o.verbose || o.json }

// withBuild returns the options with further flags for go build.
func (o *options) withBuild(flags ...string) *options {
	with := *o
	with.build = append(o.build[:len(o.build):len(o.build)], flags...)
	return &with
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
