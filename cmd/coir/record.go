package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/report"
)

// record is what is known about a schedule of a test: its steps, its goroutines, and how it ended. The methods below
// interpret it; report.go writes the report.
type record struct {
	*tested
	part          string        // the name of the explored part of the test; empty: the whole test
	failure       *failure      // nil: it does not fail
	idle          []int         // the indexes of its faults that are not needed for the failure
	unshrunk      bool          // the user asked not to shrink it
	stoppedAt     time.Duration // shrinking it was stopped after this time; 0: it was not
	processor     bool          // stoppedAt is processor time
	goesOn        time.Duration // the time for -shrink that continues it
	foundWith     int           // the number of its switches before shrinking that was stopped
	saved         bool          // it is the schedule of an earlier failure, and was run as it was saved
	twin          *twin         // nil: none was searched
	log           string        // what the test has logged
	shown         string        // what it has printed
	message       string        // with which the test failed; see findMessage
	helper        place         // the line of t.Errorf, if that is in a function that calls t.Helper
	withoutFaults int           // the number of schedules without faults that passed before it
	recovered     *recovered    // nil: no handler panicked
	waitsIn       int           // the code of what it waits for outside, such as coir.ForCall
	steps         int           // the number of its steps, of which only the last may be known

	known    []step            // its steps, as far as they are known
	actors   map[int]*actor    // its goroutines, by number
	requests map[int][]request // the requests of connections that serve several, by goroutine
	made     map[int]channel   // its channels, by number

	// The results of the methods. A zero value means that the result is not known yet.
	named    *naming       // the names of its objects; see name
	end      *report.Trace // see ending and traced
	columnOf []*actor      // the goroutine of each actor of end
	rows     map[*step]int // the rows of steps in end
	diverged *divergence   // see diverge
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
	panicked int           // the goroutine that panicked
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
	aside        bool         // a text leaves it out, unless it decides something; see setAside
	missed       bool         // a signal that a goroutine that waits at the end may have missed; see missSignals
	closes       int          // the channel that its call of package context closes; 0: none
	last         bool         // whether it is the last shown step of its goroutine
	waited       bool         // it is a lock or read that certainly waited
	from         *step        // the write of the first byte that it read
	bytes        int          // the number of bytes that it read or wrote
	second       bool         // whether that was at the second end of the connection
	on           int          // the goroutine that it was done for; 0: unknown
	serviced     bool         // whether a service library did it for itself
	note         string       // what net/http did it for, in words
	name         string       // the expression for the object in the source; empty: not known
	stack        []place      // of a step that fails the test
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

// actor is a goroutine.
type actor struct {
	id, parent int
	of         int // its goroutine, if it is an earlier request on a connection; 0: it is a goroutine itself
	op         int // the operation of its last point
	state      int
	wait       int    // what it waits for, such as coir.WaitSend
	reason     string // the same in the words of package runtime
	object     int
	step       int
	since      time.Duration
	made, at   place
	madeBy     string  // the function that started it
	birth      []place // the stack of the go statement; empty: not known
	via        string  // the function of the standard library in which it waits
	call       string  // the call in which it waits in the kernel, such as "net read"; or empty
	fiber      string  // the name of the fiber that it runs, or ran last
	fiberID    uint64  // the number of that fiber
	waits      string  // what the fiber waits for, in words that follow "waits"
	role       string  // its role in net/http, such as "http conn"
	serviced   bool    // it waits in a library for services, or runs
	name       string  // the expression in the source for what it waits for; empty: not known

	holders []uint64 // the numbers of the fibers that hold what it waits for
}

// twin is a passing schedule that has as many of its first decisions as possible in common with a failure.
type twin struct {
	*record       // nil: none was found
	step      int // the step before which the twin and the failure diverge
	kind      int // the kind of the decision at which they diverge
	tried     int // the number of schedules tried
	sure      bool
	decisions int // the number of decisions of the failure, if no twin was found
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

// plumbing marks a service library's internal lock and channel operations. It does not mark network operations, because
// the report of a service shows connections and the user's own functions.
const plumbing = "plumbing"

// firstStep returns the number of the first recorded step.
func (r *record) firstStep() int {
	if len(r.known) == 0 {
		return 1
	}
	return r.known[0].n
}

// helps reports whether a goroutine of net/http only works for other goroutines. The report then has no column for it.
// A goroutine that runs or waits in the user's code, or is left behind, has a column.
func (r *record) helps(g int) bool {
	a := r.actors[g]
	if a == nil || !strings.HasPrefix(a.role, "http ") || a.role == "http conn" {
		return false
	}
	f := r.failure
	return f != nil && g != f.panicked && (a.state == coir.Ended || a.serviced && f.kind != coir.KindLeak)
}

// pair finds, for each read from a connection or a pipe, the write of its first byte. It counts bytes, so it does
// nothing if the first steps were not recorded.
func (r *record) pair() {
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
func (r *record) settle() {
	r.splitConnections()
	before := map[int]int{} // the last shown step of a goroutine
	ends := map[int]int{}   // its last step
	latest := -1            // the last shown step of all goroutines
	for i, s := range r.known {
		ends[s.g] = i
	}
	for i := range r.known {
		s := &r.known[i]
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
		if shown := &r.known[last]; ok && last == latest && coirs(s.via) && s.inner == "" && s.note == "" &&
			s.via == shown.via && s.place == shown.place {
			s.inner = plumbing // it belongs to the same call of coir as the shown step
		}
		if shown := &r.known[last]; ok && s.joins(shown) {
			s.inner = plumbing
			if s.op == coir.OpClose && shown.closes == 0 {
				shown.closes = s.object
			}
		}
		if s.inner == "" {
			before[s.g], latest = i, i
			continue
		}
		if !ok {
			continue
		}
		if s.op == coir.OpLock && s.inner == "rwmutex" {
			r.known[last].done = s.done
		}
		if s.switches > 0 {
			r.known[last].switches += s.switches
			r.known[last].kind = s.kind
		}
	}
	for _, i := range before {
		r.known[i].last = true
	}
	r.locks() // marks the steps that waited, as pair does
	r.pair()
	r.setAside()
	r.missSignals()
	for i := range r.known { // the compiler puts the receives of a select last, in reverse order
		slices.SortFunc(r.known[i].cases, func(a, b selectCase) int {
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
func (r *record) pattern(run string) string {
	if r.part != "" {
		return "^" + strings.ReplaceAll(regexp.QuoteMeta(r.part), "/", "$/^") + "$"
	}
	selected, _ := parsePattern(run) // parse has checked it
	return selected.narrowed(r.test)
}
