package programs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir"
)

// world is a running program, and the ledger of its operations.
type world struct {
	p   *Program
	env Env

	goroutines sync.WaitGroup

	mu        sync.Mutex // guards the following fields; never held during an operation
	contexts  []*node    // by number; nil if not made yet
	made      []*node    // all of them
	nurseries []*nursery // by number
	fibers    []*fiber   // by number
	chans     []*channel
	queues    []*queue
	pools     []*pool
	values    []*sentValue
	errs      int
}

// at returns an element of a list that the lock guards.
func at[E any](w *world, list []*E, i int) *E {
	w.mu.Lock()
	defer w.mu.Unlock()
	return list[i]
}

// failf reports a fault.
func (w *world) failf(format string, args ...any) { w.env.Failf(format, args...) }

// ownError is an error of the program. No two ownErrors are the same.
type ownError struct{ n int }

func (e *ownError) Error() string { return fmt.Sprintf("error %d of the program", e.n) }

func (w *world) newError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs++
	return &ownError{w.errs}
}

// node is a context, and its recorded history.
type node struct {
	w       *world
	name    string
	ctx     context.Context
	up      *node // its parent, whose cancellation reaches it; nil if none
	bounded bool  // the reaper or a deadline ends it
	nur     *nursery
	stop    func(error)
	bare    bool // stop takes no cause

	timed   bool
	from, d time.Duration // begin and length of its time limit
	expires error         // the cause when it expires; nil if none

	// Under w.mu.
	cancels  []error // the causes of all cancels that have begun
	underway int     // cancels that have begun and not returned
	open     bool    // there are cancels whose end is unknown
	done     bool    // a cancel has returned
	doneAt   time.Duration
}

// begin records that the context is about to be cancelled.
func (n *node) begin(cause error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.cancels = append(n.cancels, cause)
	n.underway++
}

// cancelled records that the cancel has returned.
func (n *node) cancelled() {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.underway--
	if !n.done {
		n.done, n.doneAt = true, n.w.env.Now()
	}
}

// fails records that the context will be cancelled for err some time later. The lock is held.
func (n *node) fails(err error) {
	n.cancels = append(n.cancels, err)
	n.open = true
}

// over reports whether an operation that begins now must find the context cancelled.
func (n *node) over() bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for x := n; x != nil; x = x.up {
		if x.done && (x == n || x.quiet()) {
			return true
		}
	}
	return false
}

// quiet reports whether no cancel of the context is in progress on another thread and still on its way down.
func (n *node) quiet() bool {
	if n.w.p.Sim {
		return true
	}
	for x := n; x != nil; x = x.up {
		if x.underway > 0 || x.open || x.timed && x.d < Long || x.nur != nil && x.nur.over() {
			return false
		}
	}
	return true
}

// mayBeCancelled reports whether any cancel has begun that reaches the context.
func (n *node) mayBeCancelled() bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for x := n; x != nil; x = x.up {
		if len(x.cancels) > 0 || x.nur != nil && x.nur.over() {
			return true
		}
	}
	return false
}

// mayHaveCause reports whether the context may have been cancelled for the cause.
func (n *node) mayHaveCause(cause error) bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for x := n; x != nil; x = x.up {
		for _, c := range x.cancels {
			if c == cause || c == nil && cause == context.Canceled {
				return true
			}
		}
		if x.nur != nil && x.nur.mayCause(cause) {
			return true
		}
	}
	return false
}

// mayBeExpired reports whether a deadline with that cause, of the context or one above it, may have passed.
func (n *node) mayBeExpired(cause error) bool {
	now := n.w.env.Now()
	if !n.w.p.Sim {
		now += time.Millisecond // clocks differ
	}
	for x := n; x != nil; x = x.up {
		if !x.timed || now-x.from < x.d {
			continue
		}
		if cause == x.expires || cause == context.DeadlineExceeded && x.expires == nil {
			return true
		}
	}
	return false
}

// endedBy returns the time by which, in a simulation, the context has certainly ended. A waiting operation must then
// end.
func (n *node) endedBy() (at time.Duration, ok bool) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	at = 1 << 62
	for x := n; x != nil; x = x.up {
		if x.done {
			at = min(at, x.doneAt)
		}
		if x.timed {
			at = min(at, x.from+x.d)
		}
	}
	return at, at < 1<<62
}

// certainlyLive reports whether, in a simulation, the context had not ended at that time.
func (n *node) certainlyLive(at time.Duration) bool {
	if end, ok := n.endedBy(); !ok || end <= at {
		return false
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for x := n; x != nil; x = x.up {
		if x.open || x.nur != nil && x.nur.over() {
			return false
		}
	}
	return true
}

// nursery is a call of Run.
type nursery struct {
	w     *world
	g     *Group
	name  string
	n     *coir.Nursery
	node  *node
	other bool // on the other runtime

	// Under w.mu.
	live      int // children that have not ended
	running   int // those that have begun
	bodyEnded bool
	closed    bool    // Run has returned
	returned  []error // the errors that its function and its children have returned
	froms     []*node // the contexts of these errors, nil if unknown
	musts     []must  // other things that Run must report
	purpose   int     // calls of Cancel(nil) that have begun
	reasons   int     // of Cancel with a cause
	exits     int     // children that may have failed by a Goexit out of another nursery
}

// must is something that Run must report.
type must struct {
	err   error
	value any // of a panic
	panic bool
	fiber string // the fiber that panicked; empty for any
}

func (m must) String() string {
	if m.panic {
		return fmt.Sprintf("panic of %s with %T", m.fiber, m.value)
	}
	return fmt.Sprintf("error %q", m.err)
}

// over reports whether the nursery may have ended. The lock is held.
func (n *nursery) over() bool { return n.bodyEnded && n.live == 0 }

// mayCause reports whether the nursery may have been cancelled for a cause that was not recorded. The lock is held.
func (n *nursery) mayCause(cause error) bool {
	if n.over() && cause == context.Canceled {
		return true
	}
	for _, x := range tree(cause) {
		if pe, ok := x.(*coir.PanicError); ok && pe != nil {
			for _, m := range n.musts {
				if m.panic {
					return true
				}
			}
		}
		if x == coir.ErrGoexit && n.exits > 0 {
			return true
		}
	}
	return n.exits > 0
}

// fiber is a child of a nursery.
type fiber struct {
	name string
	f    *coir.Fiber
	nur  *nursery

	// Under w.mu.
	ended  bool
	goexit bool // or it has panicked
	err    error
}

// channel is a channel or a pipe.
type channel struct {
	d    *ChanDecl
	name string
	ch   *coir.Chan[int] // nil for a pipe
	ends [2]*endpoint    // the first endpoints of a pipe, by side

	// Under w.mu.
	closes   []*ended
	all      [2][]*endpoint // of a pipe, by side
	dropped  int
	handled  int
	fuzzy    bool // some operations are not seen one by one
	failed   [2]failures
	unknown  bool // a handler has panicked in the middle of several sends
	closedAt time.Duration
	closed   bool
	abortAt  time.Duration
	aborted  bool
}

// ended is a call of Close or Abort that has begun.
type ended struct {
	abort bool
	cause error
}

// failures counts operations that have failed.
type failures struct{ closed, timedOut, cancelled, wouldBlock uint64 }

// endpoint is a writer or a reader of a pipe.
type endpoint struct {
	w    *coir.Writer[int]
	r    *coir.Reader[int]
	shut bool // it may be closed
	gone bool // it is closed
}

func (x *endpoint) mayBeUsed() bool { return !x.shut }
func (x *endpoint) isLeft() bool    { return !x.gone }

// count returns the number of elements for which is returns true.
func count[E any](all []E, is func(E) bool) (n int) {
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

// mayBeClosed reports whether an operation may find the channel closed. The lock is held.
func (c *channel) mayBeClosed() bool {
	if len(c.closes) > 0 {
		return true
	}
	return c.d.Pipe &&
		(count(c.all[sending], (*endpoint).mayBeUsed) == 0 || count(c.all[receiving], (*endpoint).mayBeUsed) == 0)
}

// leaves records when the last endpoint of a side has been closed. The lock is held.
func (c *channel) leaves(now time.Duration) {
	writers, readers := count(c.all[sending], (*endpoint).isLeft), count(c.all[receiving], (*endpoint).isLeft)
	if (writers == 0 || readers == 0) && !c.closed {
		c.closed, c.closedAt = true, now
	}
	if readers == 0 && !c.aborted {
		c.aborted, c.abortAt = true, now
	}
}

// sentValue is a value that was offered to a channel.
type sentValue struct {
	c        *channel
	sender   int
	state    valueState
	loose    bool // it has no place in the order of its sender
	received int
	dropped  int
}

type valueState uint8

const (
	offered valueState = iota
	sent
	back    // its sender still has it
	unknown // a handler has panicked
)

func (w *world) offer(c *channel, sender int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values = append(w.values, &sentValue{c: c, sender: sender})
	return len(w.values)
}

func (w *world) settleValue(id int, s valueState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[id-1].state = s
	if s == unknown {
		w.values[id-1].c.unknown = true
	}
}

// queue is an Ordered.
type queue struct {
	d    *QueueDecl
	name string
	o    *coir.Ordered[int]

	// Under w.mu.
	closes   []*ended
	closed   bool
	closedAt time.Duration
	tasks    []*task
	blind    int // results of tasks that panicked or called Goexit
}

// task is a task of a queue.
type task struct {
	producer int
	accepted bool
	refused  bool
	ended    bool
	ok       bool // it has returned
	out      int
	dropped  int
}

// pool is a Pool.
type pool struct {
	d    *PoolDecl
	name string
	p    *coir.Pool[int]

	// Under w.mu.
	values  []poolValue
	creates int
	resets  int
	handled int
	ending  bool
}

type poolValue struct {
	lent    bool
	dropped int
}

// errHandler is the value that handlers panic with.
var errHandler = errors.New("the handler panics")

// tree returns err and all its parts, following the joins that Run makes.
func tree(err error) []error {
	if err == nil {
		return nil
	}
	all := []error{err}
	switch x := err.(type) {
	case *coir.PanicError:
		if x == nil {
			return all
		}
		if in, ok := x.Value.(error); ok {
			all = append(all, tree(in)...)
		}
		return append(all, tree(x.Also)...)
	case *wrapped:
		return append(all, tree(x.err)...)
	case interface{ Unwrap() []error }:
		for _, in := range x.Unwrap() {
			all = append(all, tree(in)...)
		}
	}
	return all
}

// wrapped is an error that the program has wrapped.
type wrapped struct{ err error }

func (e *wrapped) Error() string { return "wrapped: " + e.err.Error() }
func (e *wrapped) Unwrap() error { return e.err }

// opText returns the text that an error must have.
func opText(verb, what string, cause error) string {
	s := "coir: "
	if verb != "" {
		s += verb + ": "
	}
	s += what
	if cause != nil {
		text := cause.Error()
		for _, x := range tree(cause) {
			if _, ok := x.(*coir.PanicError); ok {
				text, _, _ = strings.Cut(text, "\n")
				break
			}
		}
		s += ": " + text
	}
	return s
}
