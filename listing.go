package coir

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/snapshot"
)

// ListObjects sets whether snapshots show objects that no fiber waits for: channels, pools, subscriptions and desks
// that have a name and are made from now on. Then making one takes a little longer, and an allocation.
// The list does not keep an object alive. Snapshots of every runtime show it, with at most 10,000 such objects.
func ListObjects(on bool) { listing.on.Store(on) }

// List makes snapshots show an object, as long as the program keeps it, if [ListObjects] is on. It reports whether it
// is. describe sets the kind and the name of the object, and what else there is to show. Any goroutine may call it, at
// any time, so it must not wait. List is for authors of types with operations that wait.
func List[T any](x *T, describe func(x *T, o *snapshot.Object)) bool {
	if x == nil || !listing.on.Load() {
		return false
	}
	listing.add(&listed[T]{weak.Make(x), channel.NewID(), describe})
	return true
}

// listing has the objects that snapshots show although no fiber waits for them.
var listing struct {
	on atomic.Bool
	objectList
}

// objectList is a list of objects, without those that have gone.
type objectList struct {
	mu   sync.Mutex
	all  []interface{ show(o *snapshot.Object) bool }
	most int // how many there may be before those that have gone are looked for
}

// mostListed is how many listed objects a snapshot shows.
const mostListed = 10_000

// listed is an object of the list.
type listed[T any] struct {
	p        weak.Pointer[T]
	id       uint64
	describe func(x *T, o *snapshot.Object)
}

// show describes the object. It reports false if the object has gone.
func (l *listed[T]) show(o *snapshot.Object) bool {
	x := l.p.Value()
	if x == nil {
		return false
	}
	if o != nil {
		o.ID = l.id
		l.describe(x, o)
	}
	return true
}

// add adds an object. Now and then it removes those that have gone, so that the list is at most twice as long as it
// has to be.
//
//go:norace
func (l *objectList) add(x interface{ show(o *snapshot.Object) bool }) {
	race.Disable() // making an object orders nothing
	defer race.Enable()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) >= max(l.most, 64) {
		n := 0
		for _, x := range l.all {
			if x.show(nil) {
				l.all[n] = x
				n++
			}
		}
		clear(l.all[n:])
		l.all, l.most = l.all[:n], 2*n
	}
	l.all = append(l.all, x)
}

// objects returns the list.
//
//go:norace
func (l *objectList) objects() []interface{ show(o *snapshot.Object) bool } {
	race.Disable()
	defer race.Enable()
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]interface{ show(o *snapshot.Object) bool }(nil), l.all...)
}

// listChan adds a channel to the list.
func listChan(c *core) {
	listing.add(&listed[core]{weak.Make(c), c.ch.ID(), func(c *core, o *snapshot.Object) {
		o.Name = c.name
		c.describeTo(o)
	}})
}
