package supervise

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir"
)

// A round is one call of Run. One fiber makes all decisions: it waits for the exit of a child, for the time of the next
// restart, and for the end of Run's context. So the state needs no lock.
//
// Each child runs in a fiber that catches its panic and always returns nil, so that a failure does not cancel the
// siblings. That fiber creates the child's scope itself, because waiting in its own scope costs a fiber nothing extra,
// and passes the cancel function to the round through a promise.
//
// Invariants, while the round waits:
//
//	S1 one:   a child is running, or waits for its restart, or has ended for good.
//	S2 exits: each run of a child puts exactly one exit into exits, and a child is not started before the exit of its
//	          last run has been taken out.

// round is one call of Run.
type round struct {
	*Supervisor
	in      context.Context // the context of the children's nursery, which only the round cancels
	n       *coir.Nursery
	kids    []kid
	exits   *coir.Chan[exit]
	late    []exit          // exits of children that ended while others were being stopped
	starts  int             // number of starts so far
	history []time.Duration // when the recent restarts, within the period, were decided
	also    []error         // errors of children that failed while they were stopped at the end
}

// kid is a child in a round.
type kid struct {
	Child
	running bool
	waiting bool // for its restart, at the time due
	due     time.Duration
	cancel  *coir.Promise[context.CancelCauseFunc]
	order   int           // number of its start
	since   time.Duration // time of its start
	fails   int           // failures in a row
}

// exit is the end of one run of a child.
type exit struct {
	child int
	err   error
}

// errStopped is the cause for which a child is cancelled.
var errStopped = errors.New("supervise: the supervisor stops the child")

func newRound(in context.Context, s *Supervisor, n *coir.Nursery) *round {
	r := &round{Supervisor: s, in: in, n: n, kids: make([]kid, len(s.children))}
	r.exits = coir.NewChan[exit](coir.Unbounded, coir.WithName(s.name))
	r.exits.Describe(childVerb)
	r.exits.Show(s.shown.show)
	for i, c := range s.children {
		r.kids[i].Child = c
	}
	return r
}

// run supervises the children until they have ended.
func (r *round) run(ctx context.Context) error {
	err := r.supervise(ctx)
	r.also = nil // only the errors of the final stop count
	r.stop(func(int) bool { return true })
	if len(r.also) > 0 {
		err = errors.Join(append([]error{err}, r.also...)...)
	}
	return err
}

func (r *round) supervise(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range r.kids {
		r.start(i)
	}
	for {
		e, err := r.next(ctx)
		switch {
		case err != nil:
			return err
		case e.child < 0:
			return nil
		}
		if err := r.ended(e); err != nil {
			return err
		}
	}
}

// next waits for the next exit. In the meantime it starts the children that are due. It returns a child of -1 if there
// is nothing left to wait for.
func (r *round) next(ctx context.Context) (exit, error) {
	for len(r.late) == 0 {
		running, waiting, soonest := false, false, time.Duration(0)
		for i := range r.kids {
			k := &r.kids[i]
			running = running || k.running
			if k.waiting && (!waiting || k.due < soonest) {
				waiting, soonest = true, k.due
			}
		}
		var e exit
		var alarm coir.Case
		switch {
		case waiting:
			alarm = coir.After(max(soonest-coir.Now(ctx), 0))
		case !running:
			return exit{child: -1}, nil
		}
		switch which, err := coir.SelectPriority(ctx, r.exits.RecvCase(&e), alarm); {
		case err != nil:
			return e, err
		case which == 0:
			return e, nil
		}
		now := coir.Now(ctx)
		for i := range r.kids {
			if k := &r.kids[i]; k.waiting && k.due <= now {
				r.start(i)
			}
		}
	}
	e := r.late[0]
	r.late = r.late[1:]
	return e, nil
}

// start starts child i.
func (r *round) start(i int) {
	k := &r.kids[i]
	k.running, k.waiting, k.since, k.order = true, false, coir.Now(r.in), r.starts
	r.starts++
	cancel := coir.NewPromise[context.CancelCauseFunc](coir.WithName(k.Name + " starts"))
	k.cancel = cancel
	r.tell(Event{Kind: KindStarted, Child: k.Name})
	run := k.Run
	r.n.Go(k.Name, func(ctx context.Context) error {
		e := exit{child: i, err: coir.ErrGoexit}
		defer func() {
			if v := recover(); v != nil {
				e.err = panicError(ctx, v)
			}
			_ = r.exits.TrySend(e) // an unbounded channel that is never closed
		}()
		in, stop := coir.WithCancelCause(ctx)
		defer stop(nil)
		cancel.Resolve(stop)
		e.err = run(in)
		return nil
	}, r.site)
}

// panicError returns the error of a child that panicked with v. A panic of an inner nursery already has its stack.
func panicError(ctx context.Context, v any) error {
	if pe, ok := v.(*coir.PanicError); ok && pe != nil {
		return pe
	}
	return &coir.PanicError{Fiber: coir.Self(ctx).Name(), Value: v, Stack: debug.Stack()}
}

// ended handles the end of a child, and schedules restarts if they are needed. It returns an error if the supervisor
// gives up.
func (r *round) ended(e exit) error {
	k := &r.kids[e.child]
	k.running = false
	if e.err != nil {
		r.tell(Event{Kind: KindFailed, Child: k.Name, Err: e.err})
	} else {
		r.tell(Event{Kind: KindEnded, Child: k.Name})
	}
	if k.Restart == RestartTemporary || k.Restart == RestartTransient && e.err == nil {
		return nil
	}
	now := coir.Now(r.in)
	r.history = slices.DeleteFunc(r.history, func(at time.Duration) bool { return at <= now-r.within })
	if len(r.history) >= r.most {
		r.tell(Event{Kind: KindGaveUp, Child: k.Name, Err: e.err})
		return &GaveUpError{Supervisor: r.name, Child: k.Name, Restarts: len(r.history), Within: r.within, Err: e.err}
	}
	r.history = append(r.history, now)
	if now-k.since > r.longest {
		k.fails = 0
	}
	k.fails++
	wait := r.backoff(k.fails)
	r.tell(Event{Kind: KindRestarting, Child: k.Name, Restarts: len(r.history), After: wait})
	k.waiting, k.due = true, now+wait
	switch r.strategy {
	case StrategyOneForAll:
		r.with(e.child, func(int) bool { return true }, now+wait)
	case StrategyRestForOne:
		r.with(e.child, func(i int) bool { return i > e.child }, now+wait)
	}
	return nil
}

// with stops the children that are restarted together with another one, and sets the time of their restart.
func (r *round) with(child int, which func(i int) bool, due time.Duration) {
	for _, i := range r.stop(func(i int) bool { return i != child && which(i) }) {
		r.kids[i].waiting = r.kids[i].Restart != RestartTemporary
	}
	for i := range r.kids {
		if k := &r.kids[i]; k.waiting && which(i) {
			k.due = due
		}
	}
}

// backoff returns how long to wait before a restart after the given number of failures in a row.
func (r *round) backoff(fails int) time.Duration {
	d := r.first
	for range fails - 1 {
		if d >= r.longest/2 {
			d = r.longest
			break
		}
		d *= 2
	}
	return d/2 + coir.Jitter(r.in, d-d/2)
}

// stop stops the selected children one by one, the last started first. It returns those that were running. It keeps
// exits of other children for later.
func (r *round) stop(which func(i int) bool) (stopped []int) {
	for i := range r.kids {
		if r.kids[i].running && which(i) {
			stopped = append(stopped, i)
		}
	}
	slices.SortFunc(stopped, func(a, b int) int { return r.kids[b].order - r.kids[a].order })
	for _, i := range stopped {
		k := &r.kids[i]
		if cancel, err := k.cancel.Wait(r.in); err == nil {
			cancel(errStopped)
		}
		r.join(i)
	}
	return stopped
}

// join waits for the end of child i, which has been cancelled.
func (r *round) join(i int) {
	at := slices.IndexFunc(r.late, func(e exit) bool { return e.child == i })
	for at < 0 {
		e, err := r.exits.Recv(r.in)
		if err != nil {
			return // a failed simulation ends the wait
		}
		if r.late = append(r.late, e); e.child == i {
			at = len(r.late) - 1
		}
	}
	e, k := r.late[at], &r.kids[i]
	r.late = slices.Delete(r.late, at, at+1)
	k.running = false
	if e.err == nil || errors.Is(e.err, context.Canceled) {
		r.tell(Event{Kind: KindStopped, Child: k.Name})
		return
	}
	r.tell(Event{Kind: KindFailed, Child: k.Name, Err: e.err})
	r.also = append(r.also, e.err)
}

// tell puts an event into the channel of events without waiting.
func (r *round) tell(e Event) {
	e.Supervisor, e.At = r.name, coir.Now(r.in)
	r.shown.add(&e)
	_ = r.events.TrySend(e)
}

// firstLine returns the text of an error up to the stack of a panic.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
