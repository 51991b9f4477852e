package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/snapshot"
)

// Desk is a table of open tickets, whose answers are values of type T. Create one with [New]. You need not close it: a
// desk without open tickets can be garbage collected when it is no longer used, even if the contexts of its tickets
// have not ended. Until then it may refer to the contexts in which the last tickets were opened, which makes further
// tickets in them cheaper.
type Desk[T any] struct {
	name   string
	number uint16 // the desk's part of its IDs
	over   coir.OverflowPolicy
	places *locks.Semaphore // has a permit for each ticket that may be open; nil without a limit
	listed bool             // reported in snapshots
	show   func(o *snapshot.Object)

	most   int // the largest number of shards
	active atomic.Uint32
	shards [maxShards]atomic.Pointer[shard[T]]

	refused                           atomic.Uint64
	late, duplicate, unknown, foreign failure
}

// notMade is the panic text of Open, Resolve and Reject of a zero Desk.
const notMade = "desk: use of a Desk that was not made by New"

// failure is a reason why a completion fails: its error, which is created once, and a counter.
type failure struct {
	err   error
	times atomic.Uint64
}

// The errors of Resolve and Reject. Check for them with errors.Is, because the returned errors also name the desk.
var (
	// ErrLate means that the ticket ended without an answer: by its deadline, by a cancel, or by FailAll.
	ErrLate = errors.New("desk: the ticket has ended before the answer came")
	// ErrDuplicate means that the ticket has already been completed.
	ErrDuplicate = errors.New("desk: the ticket has already been completed")
	// ErrUnknown means that no ticket has that ID: it was never issued, or its ticket ended long ago. A desk remembers
	// a ticket until at least 64 others have ended after it, and often longer; a desk with millions of open tickets may
	// forget earlier.
	ErrUnknown = errors.New("desk: no such ticket")
	// ErrForeign means that the ID belongs to another desk.
	ErrForeign = errors.New("desk: the ticket belongs to another desk")
)

// Option is an option of [New].
type Option func(*settings)

type settings struct {
	name  string
	limit int
	over  coir.OverflowPolicy
	show  func(o *snapshot.Object)
}

// WithName gives the desk a name, which errors and reports show. Tickets without a name of their own have it too.
func WithName(name string) Option { return func(o *settings) { o.name = name } }

// WithLimit bounds the number of tickets that may be open at the same time. Without it, memory is the only bound. n
// must be positive.
func WithLimit(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("desk: WithLimit(%d): at least one ticket must be allowed to be open", n))
	}
	return func(o *settings) { o.limit = n }
}

// WithOverflow sets what Open does when as many tickets are open as [WithLimit] allows. With [coir.OverflowWait], the
// default, it waits until one has ended. With [coir.OverflowFail] it returns an error that matches
// [coir.ErrWouldBlock]. Other policies are not allowed, because there is nothing to drop.
func WithOverflow(p coir.OverflowPolicy) Option {
	if p != coir.OverflowWait && p != coir.OverflowFail {
		panic(fmt.Sprintf("desk: WithOverflow(%v): a desk waits or fails", p))
	}
	return func(o *settings) { o.over = p }
}

// desks numbers the desks of the program, starting at a random number, so that the desks of two programs differ too.
var desks atomic.Uint32

func init() { desks.Store(rand.Uint32()) }

// WithShow makes snapshots call f with the object o that describes the desk, so that f can complete it. It is for types
// that are built on a desk: see [coir.Chan.Show]. Any goroutine may call f at any time, so it must not wait.
func WithShow(f func(o *snapshot.Object)) Option { return func(o *settings) { o.show = f } }

// New returns a desk without tickets.
func New[T any](opts ...Option) *Desk[T] {
	var o settings
	for _, opt := range opts {
		opt(&o)
	}
	d := &Desk[T]{name: o.name, number: uint16(desks.Add(1)), over: o.over, show: o.show}
	if o.limit > 0 {
		d.places = locks.NewSemaphore(o.limit, coir.WithName("places of "+cmp.Or(o.name, "a desk")))
	}
	procs := runtime.GOMAXPROCS(0)
	d.most = 1
	if procs > 1 {
		d.most = min(maxShards, 1<<bits.Len(uint(2*procs-1)))
	}
	d.active.Store(1)
	d.late.err = d.named(ErrLate)
	d.duplicate.err = d.named(ErrDuplicate)
	d.unknown.err = d.named(ErrUnknown)
	d.foreign.err = d.named(ErrForeign)
	d.listed = o.name != "" && coir.List(d, (*Desk[T]).describe)
	return d
}

// named returns err, whose text begins with "desk: ", with the desk's name inserted after that prefix.
func (d *Desk[T]) named(err error) error {
	if d.name == "" {
		return err
	}
	return &namedError{strings.Replace(err.Error(), "desk: ", "desk: "+d.name+": ", 1), err}
}

// namedError is an error of a desk with a name.
type namedError struct {
	text string
	err  error
}

func (e *namedError) Error() string { return e.text }

func (e *namedError) Unwrap() error { return e.err }

// Open opens a ticket, which ends when ctx ends, if not before. If the desk is full, Open waits or fails: see
// [WithOverflow]. It returns ctx's error if ctx has ended, or ends while Open waits. [coir.WithName] gives the ticket a
// name, which reports show.
//
// Open allocates the ticket. In a context that is neither coir's nor [context.Background] it allocates more, because it
// needs a [context.AfterFunc].
func (d *Desk[T]) Open(ctx context.Context, opts ...coir.NameOption) (*Ticket[T], error) {
	t := new(Ticket[T])
	if err := d.open(ctx, t, nil, 0, opts); err != nil {
		return nil, err
	}
	return t, nil
}

// OpenTimeout is like Open, but the ticket also ends when limit has passed on the caller's clock. The time spent
// waiting for a place in a full desk does not count. If limit is not positive, OpenTimeout returns [coir.ErrTimeout].
func (d *Desk[T]) OpenTimeout(ctx context.Context, limit time.Duration, opts ...coir.NameOption) (*Ticket[T], error) {
	t := new(timedTicket[T])
	if err := d.open(ctx, &t.Ticket, t, limit, opts); err != nil {
		return nil, err
	}
	return &t.Ticket, nil
}

// open opens the ticket t, which is a field of timed if timed is not nil.
func (d *Desk[T]) open(ctx context.Context, t *Ticket[T], timed *timedTicket[T], limit time.Duration,
	opts []coir.NameOption,
) error {
	if timed != nil && limit <= 0 {
		if err := coir.Ended(ctx); err != nil {
			return err
		}
		return coir.ErrTimeout
	}
	t.promise.Describe(answerVerb)
	t.promise.Init(coir.WithName(d.name))
	if len(opts) > 0 {
		t.promise.Init(opts...)
	}
	if d.places != nil {
		return d.openWithin(ctx, t, timed, limit)
	}
	return d.admit(ctx, t, timed, limit)
}

// openWithin opens a ticket of a desk with a limit.
func (d *Desk[T]) openWithin(ctx context.Context, t *Ticket[T], timed *timedTicket[T], limit time.Duration) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened {
			d.places.Release(1)
		}
	}()
	err := d.admit(ctx, t, timed, limit)
	opened = err == nil
	return err
}

// enter waits for a place in a desk with a limit, and takes it.
func (d *Desk[T]) enter(ctx context.Context) error {
	if d.over == coir.OverflowWait {
		return d.places.Acquire(ctx, 1)
	}
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	if !d.places.TryAcquire(1) {
		d.refused.Add(1)
		return d.named(&fullError{d.places.Cap()})
	}
	return nil
}

// fullError is the error of Open for a desk that does not wait.
type fullError struct{ limit int }

func (e *fullError) Error() string {
	return fmt.Sprintf("desk: full: it has reached its limit of %d", e.limit)
}

func (e *fullError) Unwrap() error { return coir.ErrWouldBlock }

// admit gives the ticket a slot.
func (d *Desk[T]) admit(ctx context.Context, t *Ticket[T], timed *timedTicket[T], limit time.Duration) error {
	s := d.lockOne()
	for i := 0; ; i++ {
		ok, err := s.admit(ctx, t, timed, limit)
		if ok || err != nil {
			return err
		}
		if i == maxShards { // all shards are full
			panic(d.named(errors.New("desk: more than 60 million tickets are open")).Error())
		}
		s = d.shard(i)
		s.lock.Lock()
	}
}

// admit gives the ticket a slot in this shard, if there is one left, and starts its clock. It unlocks the shard, even
// if a method of ctx panics.
func (s *shard[T]) admit(ctx context.Context, t *Ticket[T], timed *timedTicket[T], limit time.Duration) (bool, error) {
	defer s.lock.Unlock()
	g, err := s.groupFor(ctx)
	if err != nil || !s.put(t, g) {
		return false, err
	}
	if timed != nil {
		t.alarm = &timed.clock
		t.alarm.Start(ctx, timed, limit)
	}
	return true, nil
}

// lockOne locks one of the active shards. If that shard is locked, lockOne doubles their number.
func (d *Desk[T]) lockOne() *shard[T] {
	n, i := d.active.Load(), 0
	if n == 0 {
		panic(notMade)
	}
	if n > 1 {
		i = int(rand.Uint32() & (n - 1))
	}
	s := d.shard(i)
	if s.lock.TryLock() {
		return s
	}
	if int(n) < d.most {
		d.active.CompareAndSwap(n, 2*n)
	}
	s.lock.Lock()
	return s
}

// shard returns shard i. It creates the shard if there is none.
func (d *Desk[T]) shard(i int) *shard[T] {
	p := &d.shards[i]
	if s := p.Load(); s != nil {
		return s
	}
	p.CompareAndSwap(nil, newShard(d, i))
	return p.Load()
}

// Resolve completes the ticket with v, and returns nil. If it cannot, it changes nothing, and returns an error that
// matches [ErrLate], [ErrDuplicate], [ErrUnknown] or [ErrForeign].
func (d *Desk[T]) Resolve(id ID, v T) error {
	t, err := d.take(id, resolved)
	if err != nil {
		return err
	}
	t.promise.Resolve(v)
	return nil
}

// Reject completes the ticket with an error, which must not be nil. It returns the same errors as [Desk.Resolve].
func (d *Desk[T]) Reject(id ID, err error) error {
	if err == nil {
		panic("desk: Reject(nil): a ticket that has a value is completed by Resolve")
	}
	t, fault := d.take(id, rejected)
	if fault != nil {
		return fault
	}
	t.promise.Reject(err)
	return nil
}

// take removes the ticket of an ID from its slot, so that the caller can complete it.
func (d *Desk[T]) take(id ID, how ending) (*Ticket[T], error) {
	// Spec: TK-07 (an id is valid at its own Desk)
	// Spec: TK-08 (late, unknown and duplicate completions differ)
	if id == (ID{}) {
		return nil, d.unknown.count()
	}
	if id.desk() != d.number {
		return nil, d.foreign.count()
	}
	s := d.shards[id.shard()].Load()
	if s == nil {
		return nil, d.unknown.count()
	}
	s.lock.Lock()
	_, err := s.find(id)
	if err != nil {
		s.lock.Unlock()
		return nil, d.fails(err)
	}
	t := s.take(id.slot(), how)
	s.lock.Unlock()
	t.leave()
	return t, nil
}

// fails counts a failure of find, and returns the error for it.
func (d *Desk[T]) fails(err error) error {
	switch err { //nolint:errorlint // find returns no other
	case ErrLate:
		return d.late.count()
	case ErrDuplicate:
		return d.duplicate.count()
	}
	return d.unknown.count()
}

func (f *failure) count() error {
	if f.err == nil {
		panic(notMade)
	}
	f.times.Add(1)
	return f.err
}

// FailAll ends all open tickets with an error, which must not be nil, and returns how many it ended. Use it when a
// connection is lost. Tickets that are opened during the call may stay open. If a function of OnDone panics, FailAll
// ends the other tickets before the panic continues; if several panic, the first panic continues.
func (d *Desk[T]) FailAll(err error) int {
	// Spec: TK-14 (FailAll ends every open ticket)
	if err == nil {
		panic("desk: FailAll(nil): a ticket fails with an error")
	}
	var open []*Ticket[T]
	for t := range d.All() {
		open = append(open, t)
	}
	n := 0
	all := false
	defer func() {
		for !all { // a panic or a Goexit is in progress
			failRest(&open, err, &all)
		}
	}()
	for len(open) > 0 {
		t := open[0]
		open = open[1:]
		if t.end(failed, err) {
			n++
		}
	}
	all = true
	return n
}

// failRest ends tickets until there are none left, or a function of OnDone panics again. That panic is dropped, because
// the first panic continues.
func failRest[T any](open *[]*Ticket[T], err error, all *bool) {
	returned := false
	defer func() {
		if returned || recover() != nil {
			return
		}
		for !*all { // a Goexit: it cannot be stopped, but this call can continue
			failRest(open, err, all)
		}
	}()
	for len(*open) > 0 {
		t := (*open)[0]
		*open = (*open)[1:]
		t.end(failed, err)
	}
	*all, returned = true, true
}

// All iterates over the open tickets, in no particular order, for monitoring. It may or may not yield tickets that are
// opened or end during the loop. The body of the loop may use the desk.
func (d *Desk[T]) All() iter.Seq[*Ticket[T]] {
	return func(yield func(*Ticket[T]) bool) {
		var found []*Ticket[T]
		for i := range d.shards {
			s := d.shards[i].Load()
			if s == nil {
				continue
			}
			for from, more := 0, true; more; from++ {
				found, more = s.openIn(from, found[:0])
				for _, t := range found {
					if !yield(t) {
						return
					}
				}
			}
		}
	}
}

// openIn appends the open tickets of chunk i to found. It reports whether there are more chunks.
func (s *shard[T]) openIn(i int, found []*Ticket[T]) (_ []*Ticket[T], more bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if i >= len(s.slots) {
		return found, false
	}
	for j := range s.slots[i] {
		if t := s.slots[i][j].ticket; t != nil {
			found = append(found, t)
		}
	}
	return found, i+1 < len(s.slots)
}

// Name returns the name that [WithName] gave the desk.
func (d *Desk[T]) Name() string { return d.name }

// Len returns the number of open tickets.
func (d *Desk[T]) Len() int { return d.Stats().Open }

// Cap returns how many tickets may be open at the same time, or [coir.Unbounded].
func (d *Desk[T]) Cap() int {
	if d.places == nil {
		return coir.Unbounded
	}
	return d.places.Cap()
}

// Stats holds the counters of a desk. A desk with several shards reads each shard's counters at one moment, but
// different shards at different moments.
type Stats struct {
	Open   int // open tickets
	High   int // the most tickets open at the same time; an upper bound if there are several shards
	Shards int // tables of the desk; there is one at first, and more when callers contend

	Opened    uint64 // tickets opened: they are open, or ended in one of the next five ways
	Resolved  uint64
	Rejected  uint64
	Cancelled uint64 // by Cancel, or because their context was cancelled
	TimedOut  uint64 // by their deadline, or that of their context
	Failed    uint64 // by FailAll

	Late      uint64 // completions that failed with ErrLate
	Duplicate uint64 // completions that failed with ErrDuplicate
	Unknown   uint64 // completions that failed with ErrUnknown
	Foreign   uint64 // completions that failed with ErrForeign
	Refused   uint64 // calls of Open that failed because the desk was full
}

// Stats returns the desk's counters. It locks one shard after another.
func (d *Desk[T]) Stats() Stats {
	st := Stats{
		Late: d.late.times.Load(), Duplicate: d.duplicate.times.Load(), Unknown: d.unknown.times.Load(),
		Foreign: d.foreign.times.Load(), Refused: d.refused.Load(),
	}
	for i := range d.shards {
		if s := d.shards[i].Load(); s != nil {
			s.addTo(&st)
		}
	}
	if d.places != nil {
		st.High = min(st.High, d.places.Cap())
	}
	return st
}

func (s *shard[T]) addTo(st *Stats) {
	s.lock.Lock()
	defer s.lock.Unlock()
	st.Shards++
	st.Open += s.open
	st.High += s.high
	st.Opened += s.opened
	st.Resolved += s.ended[resolved]
	st.Rejected += s.ended[rejected]
	st.Cancelled += s.ended[cancelled]
	st.TimedOut += s.ended[timedOut]
	st.Failed += s.ended[failed]
}

// String returns a short description of the desk.
func (d *Desk[T]) String() string {
	if d.name == "" {
		return fmt.Sprintf("desk.Desk(%d open)", d.Len())
	}
	return fmt.Sprintf("desk.Desk(%s, %d open)", d.name, d.Len())
}
