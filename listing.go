package coir

import (
	"sync"
	"sync/atomic"
	"unsafe"
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

// mostListed is how many listed objects a snapshot shows.
const mostListed = 10_000

// objectList is a list of objects, the newest first. It is at most twice as long as there are objects, or 64.
type objectList struct {
	mu    sync.Mutex
	first *listNode
	n     int
	most  int // how many nodes there may be before those of objects that have gone are removed
}

type listNode struct {
	object listable
	next   *listNode
}

type listable interface {
	gone() bool
	show(o *snapshot.Object) bool
}

// add adds an object. Its making is ordered before a look at the list, and nothing else: the lock is hidden.
//
//go:norace
func (l *objectList) add(x listable) {
	node := &listNode{object: x}
	race.Release(unsafe.Pointer(node))
	race.Disable()
	defer race.Enable()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= max(l.most, 64) {
		at := &l.first
		for *at != nil {
			if (*at).object.gone() {
				*at = (*at).next
				l.n--
			} else {
				at = &(*at).next
			}
		}
		l.most = 2 * l.n
	}
	node.next, l.first = l.first, node
	l.n++
}

// nodes returns the nodes of the list.
//
//go:norace
func (l *objectList) nodes() (all []*listNode) {
	race.Disable()
	defer race.Enable()
	l.mu.Lock()
	defer l.mu.Unlock()
	for x := l.first; x != nil; x = x.next {
		all = append(all, x)
	}
	return all
}

// show describes the object. It reports false if the object has gone.
//
//go:norace
func (x *listNode) show(o *snapshot.Object) bool {
	race.Acquire(unsafe.Pointer(x))
	return x.object.show(o)
}

// listed is an object of the list.
type listed[T any] struct {
	p        weak.Pointer[T]
	id       uint64
	describe func(x *T, o *snapshot.Object)
}

//go:norace
func (l *listed[T]) gone() bool { return l.p.Value() == nil }

func (l *listed[T]) show(o *snapshot.Object) bool {
	x := l.p.Value()
	if x == nil {
		return false
	}
	o.ID = l.id
	l.describe(x, o)
	return true
}

// listChan adds a channel to the list.
func listChan(c *core) {
	listing.add(&listed[core]{weak.Make(c), c.ch.ID(), func(c *core, o *snapshot.Object) {
		o.Name = c.name
		c.describeTo(o)
	}})
}
