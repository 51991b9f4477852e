package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/report"
)

// result is the result of a test.
type result struct {
	test   string
	goroot string
	path   string // the path of the package

	modulePath, moduleDir string // the path and the directory of the user's module; empty: unknown

	outcome coir.Verdict
	elapsed time.Duration
	output  string // the output of the process
	shown   string // the part of the output that comes from the reported schedule
	broken  string // the reason why coir could not run the test

	timedOut bool // whether it did not end within -timeout
	seeds    bool // whether it is a fuzz test, whose seeds were run once
	told     bool // whether the user has seen the result
	failed   bool

	schedules int    // without those of racing
	racing    int    // the number of schedules in which timers fired early, as on a slow machine
	timeUp    bool   // whether the budget has ended the search
	decided   bool   // whether there is more than one schedule
	left      int    // the number of schedules that left goroutines behind
	all       int    // the number of schedules with at most -bound preemptions, if all of them were run; or 0
	complete  bool   // whether the strategy has run all its schedules
	trace     string // a hash of what all schedules did

	failure  *failure
	twin     *twin             // nil: none was searched
	parted   *parting          // see diverge; nil: not known yet, or there is no twin
	end      *report.Trace     // see ending and traced; nil: not yet
	columnOf []*actor          // the goroutine of each actor of end
	rows     map[*step]int     // the rows of steps in end
	stepsOf  []step            // the steps of the reported schedule
	actors   map[int]*actor    // its goroutines, by number
	requests map[int][]request // the requests of connections that serve several, by goroutine
	made     map[int]channel   // its channels, by number
	named    *naming           // the names of its objects; nil: not known yet
	built    time.Time         // when the test was built
	log      string            // the log of the test in it
	token    string            // the token of a failure that must be run again in another process
	found    int               // the number of the schedule in which token was found
	part     string            // the name of the explored part of the test; empty: the whole test
	steps    int               // the number of steps of a schedule that was given up
	busy     bool              // whether it was given up because all goroutines never waited at the same moment

	skips        int           // the number of schedules in which the test called Skip
	outside      int           // the number of schedules in which something came from outside
	onKernel     string        // the reason why the test ran on the kernel's network; empty: it did not
	uncontrolled int           // the number of schedules that were not controlled
	waiting      *result       // the last schedule that was not controlled
	waitsIn      int           // the code of what the schedule waits for, such as coir.ForCall
	never        []string      // the conditions of explore.Sometimes that were never true
	next         int           // the schedule with which another process continues; negative: each needs its own process
	used         time.Duration // the used part of the budget, without the schedule that was not controlled
	once         *result       // a failure that did not happen again, so that the test passes
	slow         *result       // the failure on a slow machine of a test that passes
	stopped      bool          // whether the strategy could not continue in another process
}

// dependsOnOthers reports whether other tests that ran at the same time may have made a test fail. Such a failure needs
// no switch of goroutines, and is not about goroutines only, as a deadlock is.
func (r *result) dependsOnOthers() bool {
	return r.outcome == coir.VerdictDied || r.outcome == coir.VerdictFail && r.failure.switches == 0 &&
		(r.failure.kind == coir.KindFail || r.failure.kind == coir.KindPanic)
}

// failure is a schedule that failed.
type failure struct {
	kind     coir.Kind
	text     string
	schedule int // the number of the schedule that found it
	seed     uint64
	switches int
	token    string
	stable   bool // the same decisions led to the same failure again
	outside  int
	panicked int // the goroutine that panicked
	steps    int
	now      time.Duration // the virtual time since the schedule began
	replayed bool
}

// step is a step of a goroutine: the operation that it was about to do.
type step struct {
	n, g, object int // the numbers of the step, the goroutine and the object
	op           int
	at           time.Duration
	place        place
	via          string       // the function of the standard library that was called there
	switches     int          // the number of decisions at this step that were not 0
	kind         int          // the kind of the last of these decisions
	done         int          // rank among all operations, or 0 if it did not begin
	chose        int          // the case that a select took, counted from 1; -1: the default
	cases        []selectCase // the cases of a select
	inner        string       // the operation that contains it, if it is not shown; or plumbing
	last         bool         // whether it is the last shown step of its goroutine
	waited       bool         // it is a lock or read that certainly waited
	from         *step        // the write of the first byte that it read
	bytes        int          // the number of bytes that it read or wrote
	second       bool         // whether that was at the second end of the connection
	on           int          // the goroutine that it was done for; 0: unknown
	serviced     bool         // whether a service library did it for itself
	note         string       // what net/http did it for, in words
	name         string       // the expression for the object in the source; empty: not known
}

// selectCase is a case of a select.
type selectCase struct {
	n, object int
	send      bool
	name      string // the expression for the channel in the source; empty: not known
}

// channel describes a channel, and where it was made.
type channel struct {
	place place
	via   string
	timer bool
	room  int // its capacity
}

// place is a line of the program.
type place struct {
	file     string
	line     int
	function string
}

// String returns the file and the line, or "" if they are not known.
func (p place) String() string {
	if p.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

// said replaces %s in a text by the place: the file, relative to dir if it is in dir, and the line. If the place is not
// known, said returns "".
func (p place) said(text, dir string) string {
	if p.file == "" {
		return ""
	}
	return fmt.Sprintf(text, fmt.Sprintf("%s:%d", short(p.file, dir), p.line))
}

// actor is a goroutine.
type actor struct {
	id, parent int
	of         int // its goroutine, if it is an earlier request on a connection; 0: it is a goroutine itself
	op         int // the operation of its last point
	state      int
	reason     string
	object     int
	step       int
	since      time.Duration
	made, at   place
	madeBy     string  // the function that started it
	birth      []place // the stack of the go statement; empty: not known
	via        string  // the function of the standard library in which it waits
	call       string  // the call in which it waits in the kernel, such as "net read"; or empty
	fiber      string  // the name of the fiber that it runs, or ran last
	fiberID    int     // the number of that fiber
	waits      string  // what the fiber waits for, in words that follow "waits"
	holders    []int   // the numbers of the fibers that hold what it waits for
	role       string  // its role in net/http, such as "http conn"
	serviced   bool    // it waits in a library for services, or runs
	name       string  // the expression in the source for what it waits for; empty: not known
}

// twin is a passing schedule that has as many of its first decisions as possible in common with a failure.
type twin struct {
	*result       // nil: none was found
	step      int // the step before which the twin and the failure part
	kind      int // the kind of the decision at which they part
	tried     int // the number of schedules tried
	sure      bool
	decisions int // the number of decisions of the failure, if no twin was found
}

// read reads a record that the overlay's package testing wrote.
func (r *result) read(text string) {
	r.actors, r.made = map[int]*actor{}, map[int]channel{}
	stacks := map[int][]place{0: nil}
	stack := func(f *fields) []place {
		stack, ok := stacks[f.int()]
		if !ok && f.bad == nil {
			f.bad = errors.New("unknown stack")
		}
		return stack
	}
	of := r // lines about a schedule belong to r, or to its twin
	at := func(f *fields) (place, string) { return r.own(stack(f)) }
	for line := range strings.Lines(text) {
		f := &fields{in: strings.Split(strings.TrimSuffix(line, "\n"), "\t")}
		switch f.text() {
		case "summary":
			r.outcome = coir.Verdict(f.quoted())
			r.schedules, r.left, r.all = f.int(), f.int(), f.int()
			r.complete, r.trace = f.text() == "true", f.quoted()
		case "racing":
			r.racing = f.int()
		case "time":
			r.timeUp, r.decided = f.text() == "true", f.text() == "true"
		case "failure":
			r.failure = &failure{
				kind: coir.Kind(f.quoted()), text: f.quoted(), schedule: f.int(), seed: uint64(f.int()), switches: f.int(),
				token: f.quoted(), stable: f.text() == "true", outside: f.int(), panicked: f.int(),
				steps: f.int(), now: time.Duration(f.int()),
			}
		case "alone":
			r.twin = &twin{decisions: f.int(), tried: f.int(), sure: f.text() == "true"}
		case "twin": // the lines up to "end" belong to the twin
			r.twin = &twin{step: f.int(), kind: f.int(), tried: f.int(), sure: f.text() == "true"}
			r.twin.result = &result{
				test: r.test, goroot: r.goroot, path: r.path, modulePath: r.modulePath, moduleDir: r.moduleDir,
				failure: &failure{steps: f.int()}, built: r.built,
				actors: map[int]*actor{}, made: map[int]channel{},
			}
			of = r.twin.result
		case "end":
			of.settle()
			of = r
		case "at":
			n := f.int()
			stacks[n] = []place{}
			for len(f.in) > 0 {
				stacks[n] = append(stacks[n], f.place())
			}
		case "step":
			x := step{n: f.int(), g: f.int(), op: f.int(), object: f.int(), at: time.Duration(f.int())}
			frames := stack(f)
			x.place, x.via = r.own(frames)
			x.serviced = r.serviced(frames)
			if x.inner = within(x.op, frames); x.inner == "" && x.serviced && !coir.OnNetwork(x.op) && x.op != coir.OpFail {
				x.inner = plumbing
			}
			x.switches, x.kind, x.done, x.chose = f.int(), f.int(), f.int(), f.int()
			x.bytes, x.second, x.on = f.int(), f.text() == "true", f.int()
			of.stepsOf = append(of.stepsOf, x)
		case "case":
			n, c := f.int(), selectCase{object: f.int(), n: f.int(), send: f.text() == "true"}
			if i := n - of.firstStep(); i >= 0 && i < len(of.stepsOf) {
				of.stepsOf[i].cases = append(of.stepsOf[i].cases, c)
			}
		case "note":
			if i := f.int() - of.firstStep(); i >= 0 && i < len(of.stepsOf) {
				of.stepsOf[i].note, of.stepsOf[i].inner = f.quoted(), ""
			}
		case "channel":
			id, c := f.int(), channel{timer: f.text() == "true", room: f.int()}
			c.place, c.via = at(f)
			of.made[id] = c
		case "actor":
			a := &actor{
				id: f.int(), parent: f.int(), op: f.int(), state: f.int(), reason: f.quoted(), object: f.int(),
				step: f.int(), since: time.Duration(f.int()),
			}
			a.made, a.madeBy = at(f)
			frames := stack(f)
			a.at, a.via = r.own(frames)
			a.serviced = len(frames) == 0 || r.serviced(frames)
			a.call = kernelCall(frames)
			a.fiber, a.fiberID, a.waits, a.holders, a.role = f.quoted(), f.int(), f.quoted(), f.ints(), f.quoted()
			a.birth = stack(f)
			of.actors[a.id] = a
		case "output":
			r.log = f.quoted()
		case "outside":
			r.outside = f.int()
		case "skips":
			r.skips = f.int()
		case "network":
			r.onKernel = f.quoted()
		case "uncontrolled":
			r.waitsIn, r.next, r.used = f.int(), f.int(), time.Duration(f.int())
		case "more":
			r.next, r.used = f.int(), time.Duration(f.int())
		case "steps":
			r.steps, r.busy = f.int(), f.text() == "true"
		case "again":
			r.token, r.found = f.quoted(), f.int()
		case "part":
			r.part = f.quoted()
		case "never":
			for len(f.in) > 0 {
				r.never = append(r.never, f.quoted())
			}
		case "error":
			r.broken = f.quoted()
		default:
			f.bad = errors.New("unknown first word")
		}
		if f.bad != nil {
			r.broken = fmt.Sprintf("the record has a bad line %q: %v", line, f.bad)
		}
	}
	if of != r {
		r.broken = "the twin in the record has no end"
	}
	if r.outcome == coir.VerdictFail && r.failure == nil {
		r.broken = "the record has no failure"
	}
	if r.broken != "" && r.outcome != "" && r.outcome != coir.VerdictError { // the report would be wrong
		r.outcome = coir.VerdictError
		r.broken = "internal error in coir test: " + r.broken +
			"; report it with the output below and the output of `go version`"
	}
	r.settle()
	r.name()
}

// own returns the innermost place of a stack that is not in the standard library, and the function of the library that
// was called there. If the whole stack is in the library, own returns the innermost place outside the packages that
// implement the operations, or none.
func (r *result) own(stack []place) (at place, via string) {
	panics := false // the operation is in a deferred call, and the place is that of the panic
	ofCoir := ""
	for _, p := range stack {
		if coirs(p.function) && r.ofCoir(p) {
			ofCoir = p.function
		}
		if !r.standard(p) && !r.ofCoir(p) {
			if panics {
				via = "panic."
			}
			return p, via
		}
		panics = panics || p.function == "runtime.gopanic"
		if !inlined(p) { // otherwise via keeps the operation that the iterator does
			via = p.function
		}
	}
	if ofCoir != "" {
		return place{}, ofCoir
	}
	for _, p := range stack {
		if library(p.function) != "" {
			return p, via
		}
	}
	return place{}, via
}

// library returns the package of a function of the standard library, unless that package implements the operations.
func library(function string) string {
	name, _, _ := strings.Cut(function, ".")
	switch {
	case name == "sync", name == "runtime", name == "net", name == "syscall", strings.HasPrefix(name, "internal/"):
		return ""
	}
	return name
}

// standard reports whether a place is in the standard library. With -trimpath its files begin with the package's path.
func (r *result) standard(p place) bool {
	if filepath.IsAbs(p.file) {
		in, err := filepath.Rel(filepath.Join(r.goroot, "src"), p.file)
		return r.goroot != "" && err == nil && filepath.IsLocal(in)
	}
	first, _, _ := strings.Cut(p.file, "/")
	mine, _, _ := strings.Cut(r.path, "/")
	return first != mine && !strings.ContainsAny(first, ".@")
}

// within returns the operation that contains an operation, or "" if it is a step of its own. For example, an RWMutex
// and a Once lock and unlock the Mutex that they contain, and package time looks up its settings once.
func within(op int, stack []place) string {
	for _, p := range stack {
		switch p.function {
		case "sync.(*RWMutex).Lock", "sync.(*RWMutex).Unlock", "sync.(*RWMutex).TryLock":
			if op == coir.OpLock || op == coir.OpUnlock || op == coir.OpTryLock {
				return "rwmutex"
			}
		case "sync.(*Once).doSlow":
			if op == coir.OpLock || op == coir.OpUnlock {
				return "once"
			}
		case "internal/godebug.(*Setting).Value", "internal/godebug.(*Setting).register":
			return "setting"
		}
		if !strings.HasPrefix(p.function, "sync.") && !strings.HasPrefix(p.function, "internal/") {
			break
		}
	}
	return ""
}

// plumbing marks a service library's internal lock and channel operations. It does not mark network operations: the
// report of a service is about connections, and about what the user's own functions do.
const plumbing = "plumbing"

// serviced reports whether a service library does an operation for itself.
func (r *result) serviced(stack []place) bool {
	for _, p := range stack {
		switch library := r.service(p.function); {
		case library:
			return true
		case !r.standard(p):
			return false
		}
	}
	return false
}

// service reports whether a function belongs to a service library, and not to the user's module.
func (r *result) service(function string) bool {
	for _, path := range []string{"net/http", "crypto/tls.", "golang.org/x/net/http2", "google.golang.org/grpc"} {
		if strings.HasPrefix(function, path) {
			return r.modulePath == "" || !strings.HasPrefix(function, r.modulePath)
		}
	}
	return false
}

// firstStep returns the number of the first recorded step.
func (r *result) firstStep() int {
	if len(r.stepsOf) == 0 {
		return 1
	}
	return r.stepsOf[0].n
}

// helps reports whether a goroutine of net/http only works for other goroutines. The report then has no column for it.
// A goroutine that runs or waits in the user's code, or is left behind, has a column.
func (r *result) helps(g int) bool {
	a := r.actors[g]
	if a == nil || !strings.HasPrefix(a.role, "http ") || a.role == "http conn" {
		return false
	}
	f := r.failure
	return f != nil && g != f.panicked && (a.state == coir.Ended || a.serviced && f.kind != coir.KindLeak)
}

// pair finds, for each read from a connection or a pipe, the write of its first byte. It counts bytes, so it does
// nothing if the first steps were not recorded.
func (r *result) pair() {
	if r.firstStep() > 1 {
		return
	}
	type direction struct {
		object int
		second bool // the second end writes
	}
	type written struct {
		by  *step
		end int // the number of bytes written, including its own
	}
	writes, read := map[direction][]written{}, map[direction]int{}
	order := r.inOrder()
	for _, s := range order {
		if s.bytes > 0 && (s.op == coir.OpNetWrite || s.op == coir.OpPipeWrite) {
			d, end := direction{s.object, s.second}, s.bytes
			if n := len(writes[d]); n > 0 {
				end += writes[d][n-1].end
			}
			writes[d] = append(writes[d], written{s, end})
		}
	}
	for _, s := range order {
		if s.bytes == 0 || s.op != coir.OpNetRead && s.op != coir.OpPipeRead {
			continue
		}
		d := direction{s.object, !s.second}
		i := slices.IndexFunc(writes[d], func(w written) bool { return w.end > read[d] })
		read[d] += s.bytes
		if i >= 0 {
			s.from = writes[d][i].by
			s.waited = s.from.done > s.done
		}
	}
}

// settle merges steps that are part of another step into that step.
func (r *result) settle() {
	r.splitConnections()
	before := map[int]int{} // the last shown step of a goroutine
	ends := map[int]int{}   // its last step
	latest := -1            // the last shown step of all goroutines
	for i, s := range r.stepsOf {
		ends[s.g] = i
	}
	for i := range r.stepsOf {
		s := &r.stepsOf[i]
		helps := r.helps(s.g)
		if helps && r.actors[s.g].role == "http dialer" {
			s.on = r.actors[s.g].parent
		}
		switch {
		case helps && s.serviced && s.op != coir.OpNetWrite && s.op != coir.OpDial:
			s.inner = plumbing
		case !helps && s.inner == plumbing && ends[s.g] == i:
			s.inner = ""
		}
		last, ok := before[s.g]
		if !ok && s.switches > 0 && !helps {
			s.inner = ""
		}
		if shown := &r.stepsOf[last]; ok && last == latest && coirs(s.via) && s.inner == "" && s.note == "" &&
			s.via == shown.via && s.place == shown.place {
			s.inner = plumbing // it belongs to the same call of coir as the shown step
		}
		if s.inner == "" {
			before[s.g], latest = i, i
			continue
		}
		if !ok {
			continue
		}
		if s.op == coir.OpLock && s.inner == "rwmutex" {
			r.stepsOf[last].done = s.done
		}
		if s.switches > 0 {
			r.stepsOf[last].switches += s.switches
			r.stepsOf[last].kind = s.kind
		}
	}
	for _, i := range before {
		r.stepsOf[i].last = true
	}
	r.locks() // marks the steps that waited, as pair does
	r.pair()
	for i := range r.stepsOf { // the compiler puts the receives of a select last, in reverse order
		slices.SortFunc(r.stepsOf[i].cases, func(a, b selectCase) int {
			switch {
			case a.send && b.send:
				return a.n - b.n
			case a.send != b.send:
				return map[bool]int{false: 1, true: -1}[a.send]
			}
			return b.n - a.n
		})
	}
}

// pattern returns the argument of -run for the test, or for its explored part. run is the value of -run, which may
// exclude subtests.
func (r *result) pattern(run string) string {
	if r.part != "" {
		return "^" + strings.ReplaceAll(regexp.QuoteMeta(r.part), "/", "$/^") + "$"
	}
	selected, _ := parsePattern(run) // parse has checked it
	return selected.narrowed(r.test)
}

// fields reads the fields of a line.
type fields struct {
	in  []string
	bad error
}

func (f *fields) text() string {
	if len(f.in) == 0 {
		f.bad = errors.New("too few fields")
		return ""
	}
	s := f.in[0]
	f.in = f.in[1:]
	return s
}

func (f *fields) int() int {
	n, err := strconv.Atoi(f.text())
	if err != nil && f.bad == nil {
		f.bad = err
	}
	return n
}

func (f *fields) ints() (all []int) {
	for text := range strings.FieldsSeq(strings.Trim(f.quoted(), "[]")) {
		n, err := strconv.Atoi(text)
		if err != nil && f.bad == nil {
			f.bad = err
		}
		all = append(all, n)
	}
	return all
}

func (f *fields) quoted() string {
	s, err := strconv.Unquote(f.text())
	if err != nil && f.bad == nil {
		f.bad = err
	}
	return s
}

func (f *fields) place() place { return place{f.quoted(), f.int(), f.quoted()} }

// died records how a process without a summary ended.
func (r *result) died(err error) {
	r.outcome = coir.VerdictDied
	var exit *exec.ExitError
	switch {
	case strings.Contains(r.output, "panic: test timed out"):
		r.broken, r.timedOut = "it did not end within -timeout", true
	case r.crash() == ours:
		r.broken = "internal error in coir test: report it with the output below and the output of `go version`"
	case r.crash() == theirs:
		r.broken = "the program crashed outside the explored schedule (a fatal error, or a panic that nothing recovered); " +
			"see the output below"
	case r.crash() == unclear:
		r.broken = "the Go runtime ended the process. If it does not do so under go test, this is a bug in coir test: " +
			"report it with the output below and the output of `go version`"
	case err == nil:
		r.broken = "the process ended with exit code 0 before the test did: does it call os.Exit?"
	case errors.As(err, &exit):
		r.broken = "the process ended before the test did: " + exit.String() + "; does it call os.Exit?"
	default:
		r.broken = err.Error()
	}
}

// The causes of a crash.
const (
	none   = iota // there was no crash
	ours          // a bug in coir test
	theirs        // a bug in the program
	unclear
)

// crash returns the cause of the crash of a process.
func (r *result) crash() int {
	if _, crash, ok := strings.Cut("\n"+r.output, "\nfatal error: "); ok {
		why, _, _ := strings.Cut(crash, "\n")
		begins := func(with string) bool { return strings.HasPrefix(why, with) }
		switch {
		case slices.ContainsFunc(fatalErrors, begins):
			return theirs
		case slices.ContainsFunc(exhausted, begins) && !ownCode(crash):
			return unclear
		}
		return ours
	}
	if _, crash, ok := strings.Cut("\n"+r.output, "\npanic: "); ok {
		if ownCode(crash) {
			return ours
		}
		return theirs
	}
	return none
}

// fatalErrors are the fatal errors with which the runtime and package sync report a bug in the program. exhausted are
// those that may have another cause, or can come from C code. A program without C code causes no others.
var (
	fatalErrors = []string{"sync: ", "concurrent map ", "small map with no empty slot", "stack overflow", "checkptr: "}
	exhausted   = []string{
		"all goroutines are asleep", "no goroutines", "out of memory", "runtime: out of memory", "thread exhaustion",
		"runtime: cannot allocate memory", "runtime: cannot map pages", "unexpected signal", "fault", "found bad pointer",
	}
)

// ownCode reports whether the innermost function of a crash belongs to coir. It ignores functions that are on the stack
// of every crash.
func ownCode(crash string) bool {
	call := regexp.MustCompile(`^[\w./-]+\.[\w.()*\[\]-]+\(`) // a line of a stack with the name of a function
	for line := range strings.Lines(crash) {
		begins := func(with string) bool { return strings.HasPrefix(line, with) }
		switch {
		case begins("runtime.coir"), begins("runtime.(*coir"), begins("testing.coir"), begins("testing.(*coir"):
			return true
		case begins("runtime."), begins("testing.tRunner"), begins("internal/synctest."):
		case call.MatchString(line):
			return false
		}
	}
	return false
}
