package coir

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// Pool lends out values that are dear to make, such as connections: at most so many at a time, each made when it is first
// needed and then used again. It is a channel that makes what it hands out: Recv takes one, Send gives it back. It is a pool of resources,
// not of workers: for at most so many fibers at once there is [Nursery.Limit].
type Pool[T any] struct {
	// Spec: CH-60 (a pool lends idle values first, in order)
	// Spec: CH-61 (a value given back is reset or thrown away)

	permits *Chan[struct{}] // one for each value that may be lent
	create  func(context.Context) (T, error)
	reset   func(T) error
	discard func(T)

	mu   xatomic.Mutex
	idle []T // the one given back last is lent first: it is the warmest
	lent int
	shut bool
	out  map[any]int // in checked builds, the values that are lent, and how often each
}

// NewPool makes a pool of at most size values. create makes one; it may wait, and several may be under way at once. reset, unless it is nil, readies one that was
// given back; if it returns an error the value is thrown away, and another may be made in its place. What is thrown away goes to
// [OnUndelivered].
func NewPool[T any](size int, create func(context.Context) (T, error), reset func(T) error, opts ...ChanOption) *Pool[T] {
	if size < 1 {
		panic(fmt.Sprintf("coir: NewPool(%d): a pool has at least one place", size))
	}
	if create == nil {
		panic("coir: NewPool needs a function that makes values")
	}
	set := settingsOf(opts)
	if set.over != Wait {
		panic("coir: NewPool: a value that is given back always has its place, so there is no Overflow")
	}
	p := &Pool[T]{permits: NewChan[struct{}](size, Name(set.name)), create: create, reset: reset, discard: handler[T](set)}
	for range size {
		_ = p.permits.TrySend(struct{}{}) // there is room
	}
	return p
}

// Recv lends a value: one that was given back, or a new one if there may be more. Otherwise it waits until one is given back;
// those who wait are served in the order of arrival. The value goes back by [Pool.Send].
func (p *Pool[T]) Recv(ctx context.Context) (v T, err error) {
	if _, err = p.permits.Recv(ctx); err != nil {
		return v, err
	}
	return p.lend(ctx)
}

// TryRecv is Recv that does not wait for a value: if all are lent it returns [ErrWouldBlock]. It may have to make one, in ctx.
func (p *Pool[T]) TryRecv(ctx context.Context) (v T, err error) {
	if _, err = p.permits.TryRecv(); err != nil {
		return v, err
	}
	return p.lend(ctx)
}

// lend finds the value for a permit that was taken: there is an idle one, or one may be made.
func (p *Pool[T]) lend(ctx context.Context) (v T, err error) {
	p.permits.core.announce(policy.Point) // who comes first gets the value that was given back last
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		var zero T
		v, p.idle[n-1] = p.idle[n-1], zero
		p.idle = p.idle[:n-1]
		p.lending(v)
		p.mu.Unlock()
		return v, nil
	}
	p.mu.Unlock()
	made := false
	defer func() { // also if create panics
		if !made {
			_ = p.permits.TrySend(struct{}{}) // somebody else may try
		}
	}()
	value, err := p.create(ctx)
	if err != nil {
		return v, err
	}
	v, made = value, true
	p.mu.Lock()
	p.lending(v)
	p.mu.Unlock()
	return v, nil
}

// Send gives a value back that Recv has lent. It never waits. More values than were lent are an error: the value stays
// the caller's. To give one value back twice while others are lent is wrong too, because two would then share it.
// Builds with the tag coirinvariants look for that and return an error; they tell values apart that are pointers,
// channels, maps, numbers or strings, or interfaces that hold one. After Close the value is thrown away.
func (p *Pool[T]) Send(v T) error { return p.giveBack(v, p.reset) }

// Discard gives a value back that is of no more use: it is thrown away, and another may be made in its place.
func (p *Pool[T]) Discard(v T) error {
	return p.giveBack(v, func(T) error { return errBroken })
}

var errBroken = errors.New("discarded")

func (p *Pool[T]) giveBack(v T, reset func(T) error) error {
	p.permits.core.announce(policy.TrySend) // what follows is seen by others before the permit is there
	p.mu.Lock()
	if p.lent == 0 {
		p.mu.Unlock()
		return fmt.Errorf("coir: pool %q was given back more than it has lent", p.permits.core.name)
	}
	if invariant.Enabled && !p.wasLent(v) {
		p.mu.Unlock()
		return fmt.Errorf("coir: pool %q was given back a value that it has not lent, or a second time", p.permits.core.name)
	}
	p.lent--
	p.mu.Unlock()
	defer p.permits.TrySend(struct{}{}) //nolint:errcheck // there is room for as many as were lent; after Close nobody wants it
	kept := false
	defer func() { // also if reset panics
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

// lending counts a value that is lent. The caller has the lock.
func (p *Pool[T]) lending(v T) {
	p.lent++
	if !invariant.Enabled {
		return
	}
	if id, ok := identity(v); ok {
		if p.out == nil {
			p.out = make(map[any]int)
		}
		p.out[id]++
	}
}

// wasLent takes a value off those that are lent. It reports false if it was not one. The caller has the lock.
func (p *Pool[T]) wasLent(v T) bool {
	id, ok := identity(v)
	if !ok {
		return true
	}
	if p.out[id] == 0 {
		return false
	}
	if p.out[id]--; p.out[id] == 0 {
		delete(p.out, id)
	}
	return true
}

// identity is what tells a value from others, if anything does: a struct may be changed while it is lent, and a slice
// may grow.
func identity(v any) (id any, ok bool) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Map:
		return r.Pointer(), true
	case reflect.Invalid, reflect.Struct, reflect.Array, reflect.Slice, reflect.Func:
		return nil, false
	}
	return v, v == v //nolint:gocritic,staticcheck // a NaN is not
}

// Close ends the pool: whoever waits or comes later gets an error that is [ErrClosed], idle values are thrown away at
// once, and those that are lent when they are given back. Every value goes to [OnUndelivered], even if that panics for
// one of them. It reports whether this call has closed the pool.
func (p *Pool[T]) Close() bool {
	if !p.permits.Abort(nil) {
		return false
	}
	p.mu.Lock()
	idle := p.idle
	p.idle, p.shut = nil, true
	p.mu.Unlock()
	toEnd(func() bool {
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

// String describes the pool in a few words: its name, or its number if it has none, and how many values it has.
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

// Len returns how many values are idle.
func (p *Pool[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
