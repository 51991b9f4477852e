package pubsub

import (
	"context"
	"fmt"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// Latest is a value that changes, such as a configuration. A watcher gets the newest value that it has not seen yet: it
// may miss values that were replaced before it received them, but not the last one. Create one with [NewLatest].
type Latest[T any] struct {
	guard *locks.RWMutex // guards value; no operation waits for a watcher while it holds this
	value T
	topic[T]
}

// NewLatest returns a Latest whose value is v. [coir.WithName] gives it a name, which reports show.
func NewLatest[T any](v T, opts ...coir.NameOption) *Latest[T] {
	l := &Latest[T]{value: v, guard: locks.NewRWMutex(opts...)}
	l.init(opts)
	return l
}

// Set replaces the value, and passes it to the watchers. It does not wait for them. After Close it changes nothing, and
// returns an error that matches [coir.ErrClosed].
//
// The call of Set is ordered before the return of a receive or a Get of the value.
func (l *Latest[T]) Set(v T) error {
	l.lockValue()
	defer l.guard.Unlock()
	subs, err := l.all()
	if err != nil {
		return err
	}
	l.value = v
	pass(subs, v)
	return nil
}

// pass passes v to all of subs, even if a handler of [coir.OnUndelivered] panics.
func pass[T any](subs []*Subscription[T], v T) {
	at := 0
	defer func() {
		if at < len(subs) {
			pass(subs[at+1:], v)
		}
	}()
	for ; at < len(subs); at++ {
		_ = subs[at].ch.TrySend(v) // replaces an unseen value; an error means that the watcher has left
	}
}

// Get returns the value.
func (l *Latest[T]) Get() T {
	must(l.guard.RLock(context.Background()))
	defer l.guard.RUnlock()
	return l.value
}

// Watch adds a watcher. The first value that it receives is the current one, or a newer one. The options are those of
// its channel, which is [coir.Conflated]. The function of [coir.OnUndelivered] gets the values that are replaced before
// the watcher has received them; it must not call methods of the Latest. After Close, a new watcher receives the last
// value, and then an error that matches [coir.ErrClosed].
func (l *Latest[T]) Watch(opts ...coir.ChanOption) *Subscription[T] {
	l.lockValue()
	defer l.guard.Unlock()
	return l.add(coir.Conflated, opts, l.value)
}

// Close ends the Latest: watchers get the last value, if they have not received it, and then [coir.ErrClosed].
// Close reports whether this call ended the Latest.
func (l *Latest[T]) Close() bool {
	l.lockValue()
	defer l.guard.Unlock()
	return l.close()
}

func (l *Latest[T]) lockValue() { must(l.guard.Lock(context.Background())) }

// Len returns the number of watchers.
func (l *Latest[T]) Len() int { return l.len() }

// String returns a short description of the Latest.
func (l *Latest[T]) String() string {
	return fmt.Sprintf("pubsub.Latest(%s, %d watchers)", l.name, l.len())
}
