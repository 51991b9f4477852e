package coir

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
	"github.com/coir-go/coir/snapshot"
)

// Pool lends values that are expensive to create, such as connections. It lends at most a fixed number of values at a
// time, creates each value when it is first needed, and then reuses it. Get takes a value from the pool, and Put gives
// it back. Pool is a pool of resources, not of workers: to bound how many fibers run, use [Nursery.Limit].
type Pool[T any] struct {
	// Spec: CH-60 (a pool lends idle values first, in order)
	// Spec: CH-61 (a value given back is reset or thrown away)

	permits *Chan[struct{}] // one for each value that may be lent
	create  func(context.Context) (T, error)
	reset   func(T) error
	discard func(T)

	mu    xatomic.Mutex
	idle  []T // a stack: the value given back last is reused first
	lent  int
	shut  bool
	loans invariant.Loans
	known bool   // out has all borrowers
	out   []loan // who has each value, for snapshots, in the order of Get
}

// loan is a value of a pool that is lent, or being made. A caller that gives a value back is the borrower if it is the
// same goroutine: that is quicker to find out than which fiber it is. The Go runtime may use the record of a goroutine
// again after the borrower has ended, so the newest loan of a goroutine is the right one.
type loan struct {
	g  uintptr // the goroutine, as coro.G returns it
	by uint64  // the number of the fiber or goroutine
}

// mostLoans is the largest size of a pool that records its borrowers, because Put searches them.
const mostLoans = 64

var verbGet = &policy.Verb{Name: "get", Waits: "for a value of", Ends: "give a value back to", Of: snapshot.KindPool}

// maxPool is the largest size of a pool. The pool makes all its permits in advance.
const maxPool = 1 << 24

// NewPool makes a pool of at most size values; size is at most 16,777,216. create makes one value. It may wait, and
// several calls may run at the same time. reset, if not nil, prepares a value that was given back for reuse. If reset
// returns an error, the pool discards the value, and may create another instead. Discarded values are passed to
// [OnUndelivered].
func NewPool[T any](size int, create func(context.Context) (T, error), reset func(T) error,
	opts ...ChanOption) *Pool[T] {
	if size < 1 {
		panic("coir: NewPool(" + number(size) + "): a pool has at least one place")
	}
	if size > maxPool {
		panic("coir: NewPool(" + number(size) + "): a pool has at most " + strconv.Itoa(maxPool) + " places")
	}
	if create == nil {
		panic("coir: NewPool needs a function that makes values")
	}
	set := settingsOf(opts)
	if set.over != OverflowWait {
		panic("coir: NewPool: a value that is given back always has its place, so WithOverflow is not allowed")
	}
	permits := NewChan[struct{}](size, WithName(set.name))
	p := &Pool[T]{permits: permits, create: create, reset: reset, discard: handler[T](set), known: size <= mostLoans}
	permits.Describe((*Verb)(verbGet))
	permits.core.alsoShow(p.show)
	for range size {
		_ = p.permits.TrySend(struct{}{}) // there is room
	}
	return p
}

// Get returns a value that was given back, or a new one if the pool has fewer than size values. Otherwise it waits
// until a value is given back. Waiting callers are served in the order of arrival. Give the value back with [Pool.Put].
func (p *Pool[T]) Get(ctx context.Context) (v T, err error) {
	if _, err = p.permits.Recv(ctx); err != nil {
		return v, err
	}
	return p.lend(ctx)
}

// TryGet is like Get, but neither waits for a value nor creates one: if no value is idle, it returns [ErrWouldBlock].
func (p *Pool[T]) TryGet() (v T, err error) {
	if _, err = p.permits.TryRecv(); err != nil {
		return v, err
	}
	if v, ok := p.takeIdle(loan{coro.G(), numberHere()}, false); ok {
		return v, nil
	}
	_ = p.permits.TrySend(struct{}{}) // there is room for the permit that it has taken
	return v, p.permits.core.resultErr(receiving, park.None)
}

// takeIdle returns an idle value, if there is one. If makes is set, the caller makes a value if there is none.
func (p *Pool[T]) takeIdle(by loan, makes bool) (v T, ok bool) {
	p.permits.core.announce(policy.Point) // the first caller to continue gets the value that was given back last
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n > 0 || makes {
		p.permits.core.holds(1)
		if p.known {
			p.out = append(p.out, by)
		}
	}
	if n == 0 {
		return v, false
	}
	var zero T
	v, p.idle[n-1] = p.idle[n-1], zero
	p.idle = p.idle[:n-1]
	p.lent++
	if invariant.Enabled {
		p.loans.Lend(v)
	}
	return v, true
}

// lend returns a value to a caller that has taken a permit: an idle value, or a new one.
func (p *Pool[T]) lend(ctx context.Context) (v T, err error) {
	by := loan{g: coro.G()}
	if f, _ := scopeOf(ctx); f != nil && f.task.Here() {
		by.by = f.id
	} else {
		by.by = numberHere() // a goroutine, or a fiber with the context of another
	}
	if v, ok := p.takeIdle(by, true); ok {
		return v, nil
	}
	made := false
	defer func() { // runs even if create panics
		if !made {
			p.mu.Lock()
			p.ended(by.g)
			p.mu.Unlock()
			_ = p.permits.TrySend(struct{}{}) // another caller may try
		}
	}()
	value, err := p.create(ctx)
	if err != nil {
		return v, err
	}
	v, made = value, true
	p.mu.Lock()
	p.lent++
	if invariant.Enabled {
		p.loans.Lend(v)
	}
	p.mu.Unlock()
	return v, nil
}

// Put gives back a value that Get or TryGet returned. It never waits. If more values are given back than were lent, Put
// returns an error, and the value still belongs to the caller. It is also an error to give one value back twice while
// others are lent, because two callers would then share it. Builds with the tag coirinvariants detect this and return
// an error, for values that are pointers, channels, maps, numbers or strings, or interfaces that hold one of these.
// After Close, the pool discards the value.
func (p *Pool[T]) Put(v T) error { return p.giveBack(v, p.reset) }

// Discard gives back a value that can no longer be used. The pool discards it, and may create another instead.
func (p *Pool[T]) Discard(v T) error {
	return p.giveBack(v, func(T) error { return errBroken })
}

var errBroken = errors.New("discarded")

func (p *Pool[T]) giveBack(v T, reset func(T) error) error {
	p.permits.core.announce(policy.TrySend) // other fibers see the value given back before they see the permit
	p.mu.Lock()
	if p.lent == 0 {
		p.mu.Unlock()
		return fmt.Errorf("coir: pool %q was given back more than it has lent", p.permits.core.name)
	}
	if invariant.Enabled && !p.loans.GiveBack(v) {
		p.mu.Unlock()
		return fmt.Errorf("coir: pool %q was given back a value that it has not lent, or a second time", p.permits.core.name)
	}
	p.lent--
	p.ended(coro.G())
	p.mu.Unlock()
	defer p.permits.TrySend(struct{}{}) //nolint:errcheck // there is room for each permit; after Close none is needed
	kept := false
	defer func() { // runs even if reset panics
		if !kept && p.discard != nil {
			p.discard(v)
		}
	}()
	if reset == nil || reset(v) == nil {
		p.mu.Lock()
		if kept = !p.shut; kept {
			p.idle = append(p.idle, v)
		}
		p.mu.Unlock()
	}
	return nil
}

// holds tells the policy, if there is one, that the calling fiber has taken n values of the pool c, or has given back
// -n if n is negative.
//
//go:norace
func (c *core) holds(n int) {
	if simulating.Load() == 0 {
		return
	}
	if f := currentFiber(); f != nil && f.simulated {
		race.Disable()
		f.nursery.rt.policy.Holds(f, c.ch.ID(), n)
		race.Enable()
	}
}

// ended records that the goroutine g gives back what it has borrowed last. If it has borrowed nothing, the program
// passes values between fibers, and the pool forgets the borrowers, because it no longer knows who has which value. The
// caller has locked p.mu.
func (p *Pool[T]) ended(g uintptr) {
	p.permits.core.holds(-1)
	if !p.known {
		return
	}
	for i := len(p.out) - 1; i >= 0; i-- {
		if p.out[i].g == g {
			p.out = append(p.out[:i], p.out[i+1:]...)
			return
		}
	}
	p.known, p.out = false, nil
}

// show makes the description of the permits that of the pool, with its borrowers.
func (p *Pool[T]) show(o *snapshot.Object) {
	o.Len = o.Cap - o.Len // the channel holds what is not lent
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.out {
		o.Holders = append(o.Holders, x.by)
	}
}

// Close closes the pool. Waiting and later calls of Get return an error that is [ErrClosed]. The pool discards idle
// values now, and lent values when they are given back. A Get that is creating a value when Close is called may still
// return it, and that value is lent. Every value is passed to [OnUndelivered], even if the handler panics for one of
// them. Close reports whether this call closed the pool.
func (p *Pool[T]) Close() bool {
	if !p.permits.Abort(nil) {
		return false
	}
	p.mu.Lock()
	idle := p.idle
	p.idle, p.shut = nil, true
	p.mu.Unlock()
	callAll(func() bool {
		if p.discard == nil || len(idle) == 0 {
			return false
		}
		v := idle[0]
		idle = idle[1:]
		p.discard(v)
		return true
	})
	return true
}

// String returns a short description of the pool: its name, or its number if it has none, and how many values it has.
//
//go:norace
func (p *Pool[T]) String() string {
	c := &p.permits.core
	race.Disable()
	p.mu.Lock()
	idle, lent, shut := len(p.idle), p.lent, p.shut
	p.mu.Unlock()
	race.Enable()
	s := "coir.Pool[" + typeName[T]() + "](" + c.title() + ", " +
		strconv.Itoa(lent) + " of " + strconv.Itoa(c.ch.Limit()) + " lent, " + strconv.Itoa(idle) + " idle"
	if shut {
		s += ", closed"
	}
	return s + ")"
}

// Len returns the number of idle values: those that have been created and are not lent. So it is 0 for a new pool,
// which can still lend all its values. A snapshot shows how many values are lent, as the Len of its [snapshot.Object].
func (p *Pool[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
