package coir

import (
	"context"
	"errors"
	"fmt"

	"github.com/coir-go/coir/internal/xatomic"
)

// Pool lends out values that are dear to make, such as connections: at most so many at a time, each made when it is first
// needed and then used again. It is a channel that makes what it hands out: Recv takes one, Send gives it back. It is a pool of resources,
// not of workers: for at most so many fibers at once there is [Nursery.Limit].
//
// Spec: CH-60, CH-61
type Pool[T any] struct {
	permits *Chan[struct{}] // one for each value that may be lent
	create  func(context.Context) (T, error)
	reset   func(T) error
	discard func(T)

	mu   xatomic.Mutex
	idle []T // the one given back last is lent first: it is the warmest
	lent int
	shut bool
}

// NewPool makes a pool of at most size values. create makes one; it may wait, and several may be under way at once. reset, unless it is nil, readies one that was
// given back; if it returns an error the value is thrown away, and another may be made in its place. What is thrown away goes to
// [OnUndelivered].
func NewPool[T any](size int, create func(context.Context) (T, error), reset func(T) error, opts ...ChanOption) *Pool[T] {
	if size < 1 {
		panic(fmt.Sprintf("coir: NewPool(%d): a pool has at least one place", size))
	}
	set := settingsOf(opts)
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
	p.permits.announce(OpPoint) // who comes first gets the value that was given back last
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		var zero T
		v, p.idle[n-1] = p.idle[n-1], zero
		p.idle = p.idle[:n-1]
		p.lent++
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
	p.lent++
	p.mu.Unlock()
	return v, nil
}

// Send gives a value back that Recv has lent. It never waits. More values than were lent are an error. After Close the value is
// thrown away.
func (p *Pool[T]) Send(v T) error { return p.giveBack(v, p.reset) }

// Discard gives a value back that is of no more use: it is thrown away, and another may be made in its place.
func (p *Pool[T]) Discard(v T) error {
	return p.giveBack(v, func(T) error { return errBroken })
}

var errBroken = errors.New("discarded")

func (p *Pool[T]) giveBack(v T, reset func(T) error) error {
	p.permits.announce(OpTrySend) // what follows is seen by others before the permit is there
	p.mu.Lock()
	if p.lent == 0 {
		p.mu.Unlock()
		return fmt.Errorf("coir: pool %q was given back more than it has lent", p.permits.name)
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

// Close ends the pool: whoever waits or comes later gets an error that is [ErrClosed], idle values are thrown away at once, and
// those that are lent when they are given back. It reports whether this call has closed the pool.
func (p *Pool[T]) Close() bool {
	if !p.permits.Abort(nil) {
		return false
	}
	p.mu.Lock()
	idle := p.idle
	p.idle, p.shut = nil, true
	p.mu.Unlock()
	if p.discard != nil {
		for _, v := range idle {
			p.discard(v)
		}
	}
	return true
}

// Len returns how many values are idle.
func (p *Pool[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
