package interleave

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"time"
	"unsafe"
)

// Config limits an exploration.
type Config struct {
	Bound      int // preemptions; 0 means no bound, and source-DPOR
	Executions int // the most executions; 0 means all
	Steps      int // the most steps of one execution, more is a failure; 0 means 10,000
}

// Result summarises an exploration.
type Result struct {
	Executions int // including redundant ones
	Redundant  int // executions of a trace that was already known
	Longest    int // in steps
	Complete   bool
	Took       time.Duration
}

func (r Result) String() string {
	how := "complete"
	if !r.Complete {
		how = "not complete"
	}
	return fmt.Sprintf("%d executions (%d redundant), up to %d steps, %s, %.1f s", r.Executions, r.Redundant, r.Longest,
		how, r.Took.Seconds())
}

// Explore runs program, which is a thread itself and starts others with [Go], in every order that cfg requires. The
// error describes the first execution that fails, by Failf, by a panic, or because no thread can continue, and lists
// its steps. The threads of a failed execution are left suspended.
func Explore(cfg Config, program func()) (Result, error) {
	s := &search{Config: cfg}
	err := s.explore(program)
	return s.Result, err
}

// search is the state of an exploration.
type search struct {
	Config
	Result
	nodes   []node
	depth   int  // nodes that the run has passed
	turned  int  // the node whose choice is new
	blind   bool // the rest of the run belongs to a known trace
	all     bool // no reduction
	unwinds bool // an execution in which no thread can continue is not a failure
	seen    func(*run)

	// For races.
	clocks []clock
	prev   []int32 // for each event, the event before it on the same object, or -1
	lastOn []int32 // for each object, its last event
	racing []int32 // the events with which the current event races
}

// node is the point before an event.
type node struct {
	chosen    int
	can       uint32 // threads that are enabled
	try       uint32 // of those, the threads that were tried or are still to be tried
	done      uint32
	asleep    uint32
	preempted int // preemptions before it
	ops       [maxThreads]op
}

// clock is the set of events that are ordered before an event: for each thread, one more than the index of the last of
// them.
type clock [maxThreads]int32

func (c *clock) join(d *clock) {
	for i := range c {
		c[i] = max(c[i], d[i])
	}
}

func (s *search) explore(program func()) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one thread runs at a time, so more would not help
	if s.Steps == 0 {
		s.Steps = 10_000
	}
	began := time.Now()
	defer func() { s.Took = time.Since(began) }()
	for {
		r := s.run(program, false)
		s.Result.Executions++
		s.Longest = max(s.Longest, len(r.events))
		if s.blind {
			s.Redundant++
		} else if s.seen != nil {
			s.seen(r)
		}
		if r.failure != "" {
			return s.report(r, program)
		}
		if !s.all && s.Bound == 0 {
			s.races(r)
		}
		if !s.next() {
			s.Complete = true
			return nil
		}
		if s.Config.Executions > 0 && s.Result.Executions >= s.Config.Executions {
			return nil
		}
	}
}

var runs uint64

func (s *search) run(program func(), placed bool) *run {
	runs++
	r := &run{x: s, number: runs, words: map[unsafe.Pointer]int32{}, over: make(chan struct{}), placed: placed}
	s.depth, s.blind = 0, false
	r.execute(program)
	return r
}

// report runs the failed execution again to record the source positions of its steps.
func (s *search) report(r *run, program func()) error {
	again := s.run(program, true)
	text := fmt.Sprintf("execution %d: %s\n%v", s.Result.Executions, r.failure, again)
	if again.failure == "" {
		text += "a second run of the same order did not fail: the program depends on something that is not announced\n"
	}
	return errors.New(text)
}

// choose returns the next thread of the run, one of can.
func (s *search) choose(r *run, can uint32) int {
	i := s.depth
	s.depth++
	if i < len(s.nodes) {
		x := &s.nodes[i]
		same := x.can == can
		for c := can; same && c != 0; c &= c - 1 {
			t := bits.TrailingZeros32(c)
			same = x.ops[t] == r.threads[t].op
		}
		if !same {
			panic(fmt.Sprintf("interleave: the program does not repeat itself in the same order, at step %d:\n%v", i, r))
		}
		return x.chosen
	}
	if s.blind {
		return bits.TrailingZeros32(can)
	}
	x := node{can: can}
	for _, t := range r.threads {
		x.ops[t.id] = t.op
	}
	last := -1 // the thread that ran
	if i > 0 {
		last = r.events[i-1].thread
		x.preempted = s.nodes[i-1].preempted
		if i > 1 && r.events[i-2].thread != last && s.nodes[i-1].can>>r.events[i-2].thread&1 != 0 {
			x.preempted++
		}
	}
	stays := last >= 0 && can>>last&1 != 0
	switch {
	case s.all || s.Bound > 0 && !(stays && x.preempted >= s.Bound):
		x.try = can
	case s.Bound > 0:
		x.try = 1 << last
	default:
		if x.asleep = s.inherited(r, i); can&^x.asleep == 0 {
			s.blind = true
			r.noteBlocked(can)
			return bits.TrailingZeros32(can)
		}
	}
	if x.chosen = last; !stays || x.asleep>>last&1 != 0 {
		x.chosen = bits.TrailingZeros32(can &^ x.asleep)
	}
	x.try |= 1 << x.chosen
	s.nodes = append(s.nodes, x)
	return x.chosen
}

// inherited returns the threads that sleep before event i: those that slept before the last event, or had been tried
// there, and do not conflict with it.
func (s *search) inherited(r *run, i int) (asleep uint32) {
	if i == 0 {
		return 0
	}
	b := &s.nodes[i-1]
	for q := (b.asleep | b.done) &^ (1 << b.chosen); q != 0; q &= q - 1 {
		if t := bits.TrailingZeros32(q); !conflict(b.ops[t], r.events[i-1].op) {
			asleep |= 1 << t
		}
	}
	return asleep
}

// next advances the last node that has something left to try to its next choice. It returns false if there is no such
// node.
func (s *search) next() bool {
	for n := len(s.nodes); n > 0; n-- {
		x := &s.nodes[n-1]
		x.done |= 1 << x.chosen
		if left := x.try &^ x.done &^ x.asleep; left != 0 {
			x.chosen = bits.TrailingZeros32(left)
			s.nodes = s.nodes[:n]
			s.turned = n - 1
			return true
		}
	}
	return false
}

// races finds the races of the run, and marks the threads that must be tried because of them.
func (s *search) races(r *run) {
	n := min(len(r.events), len(s.nodes))
	s.clocks = s.clocks[:0]
	s.prev = s.prev[:0]
	s.lastOn = s.lastOn[:0]
	for range r.objects {
		s.lastOn = append(s.lastOn, -1)
	}
	var own [maxThreads]clock
	var begun uint32
	begin := func(t int) *clock {
		if begun>>t&1 == 0 { // it is ordered after what its parent, which ran last, did before
			begun |= 1 << t
			if b := r.born[t]; b > 0 {
				own[t].join(&s.clocks[b-1])
			}
		}
		return &own[t]
	}
	for i := range n {
		e := &r.events[i]
		c := begin(e.thread)
		if e.op.kind == Join {
			for t := range r.threads {
				if r.born[t] <= i { // otherwise it was started later
					c.join(begin(t))
				}
			}
			s.prev = append(s.prev, -1)
			s.racing = s.racing[:0] // it races with nothing
		} else {
			s.meet(r, i, e.thread, e.op, c)
			s.prev = append(s.prev, s.lastOn[e.op.object])
			s.lastOn[e.op.object] = int32(i)
		}
		c[e.thread] = int32(i) + 1
		s.clocks = append(s.clocks, *c)
		for _, j := range s.racing {
			s.reverse(r, j, i, e.thread)
		}
	}
	for _, e := range r.blocked { // what blocked threads wait to do races too
		if e.op.kind == Join {
			continue
		}
		c := *begin(e.thread)
		s.meet(r, n, e.thread, e.op, &c)
		s.clocks = append(s.clocks[:n], c)
		for _, j := range s.racing {
			s.reverse(r, j, n, e.thread)
		}
	}
}

// meet adds to c, the clock of thread t, the events before its access o. It collects the events with which o races:
// those that conflict with o and are not otherwise ordered before it. The event that enables o (the unlock before a
// lock) is ordered before it, but does not race with it.
func (s *search) meet(r *run, i, t int, o op, c *clock) {
	s.racing = s.racing[:0]
	known := *c
	shut := i == len(s.nodes) // o is not enabled where the walk is: at a stuck end, or before the event that enables it
	for j := s.lastOn[o.object]; j >= 0; j = s.prev[j] {
		e := &r.events[j]
		if !conflict(e.op, o) {
			continue
		}
		c.join(&s.clocks[j])
		if o.kind.acquires() && (e.op.kind == Unlock || e.op.kind == Post) {
			shut = true
			continue
		}
		if shut && e.op.kind == Read {
			continue // a read of a held lock: o is enabled only before the event that took it
		}
		if e.thread != t && known[e.thread] <= j && i >= s.turned { // other races were found before
			s.racing = append(s.racing, j)
		}
		known.join(&s.clocks[j])
		if e.op.kind != Read {
			break // all earlier events come before that
		}
	}
}

// reverse ensures that, before event j, the search tries a thread that makes event i, of thread t, happen first: one of
// the initials of the events since j that do not depend on j, followed by i.
func (s *search) reverse(r *run, j int32, i, t int) {
	var first [maxThreads]int32 // of the thread in there, and one more; 0: none
	var initials uint32
	of := r.events[j].thread
	for k := int(j) + 1; k <= i; k++ {
		c := &s.clocks[k]
		who := t
		if k < i {
			if who = r.events[k].thread; c[of] > j {
				continue
			}
		}
		initial := first[who] == 0
		for u, f := range first {
			if f != 0 && c[u] >= f {
				initial = false
			}
		}
		if initial {
			initials |= 1 << who
		}
		if first[who] == 0 {
			first[who] = int32(k) + 1
		}
	}
	x := &s.nodes[j]
	if initials&(x.try|x.asleep) != 0 { // a sleeping thread was tried earlier, with the same continuation
		return
	}
	if can := initials & x.can; can != 0 {
		x.try |= can & -can
	} else { // impossible, unless an operation synchronises but is not announced
		panic("interleave: no thread can run first: an operation synchronises but is not announced")
	}
}

// T is a test.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Check explores a program for a test, and logs the number of executions. The test also fails if the exploration should
// have been complete and was not.
func Check(t T, cfg Config, program func()) {
	t.Helper()
	res, err := Explore(cfg, program)
	if err != nil {
		t.Fatalf("%v\n%v", res, err)
	}
	if !res.Complete && cfg.Executions == 0 {
		t.Fatalf("%v", res)
	}
	how := "source-DPOR"
	if cfg.Bound > 0 {
		how = fmt.Sprintf("at most %d preemptions", cfg.Bound)
	}
	t.Logf("%s: %v", how, res)
}
