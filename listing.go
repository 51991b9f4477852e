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

// ListObjects sets whether snapshots show objects that no fiber waits for. It applies to channels, pools, subscriptions
// and desks that have a name and are made after the call. Making such an object then takes a little longer, and one
// allocation. The list of objects does not keep them alive. Snapshots of every runtime show at most 10,000 of them.
func ListObjects(on bool) { listing.on.Store(on) }

// List makes snapshots show the object x as long as the program keeps it alive, if [ListObjects] is on. It reports
// whether ListObjects is on. describe sets the kind and the name of the object, and its other properties. Any goroutine
// may call describe at any time, so it must not wait. List is for types with operations that wait.
func List[T any](x *T, describe func(x *T, o *snapshot.Object)) bool {
	if x == nil || !listing.on.Load() {
		return false
	}
	listing.add(&listed[T]{weak.Make(x), channel.NewID(), describe})
	return true
}

// listing holds the objects that snapshots show even if no fiber waits for them.
var listing struct {
	on atomic.Bool
	objectList
}

// mostListed is the largest number of listed objects that a snapshot shows.
const mostListed = 10_000

// objectList is a list of objects, the newest first. Its length is at most the larger of 64 and twice the number of
// live objects.
type objectList struct {
	mu    sync.Mutex
	first *listNode
	n     int
	most  int // the length at which nodes of collected objects are removed
}

type listNode struct {
	object listable
	next   *listNode
}

type listable interface {
	gone() bool
	show(o *snapshot.Object) bool
}

// add adds an object. Creating the object is ordered before each reading of the list, and nothing else is ordered,
// because the lock is hidden.
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

// show describes the object. It returns false if the object has been collected.
//
//go:norace
func (x *listNode) show(o *snapshot.Object) bool {
	race.Acquire(unsafe.Pointer(x))
	return x.object.show(o)
}

// listed is an object in the list.
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
