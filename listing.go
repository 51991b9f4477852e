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
// whether x was listed. describe sets the kind and the name of the object, and its other properties. Any goroutine
// may call describe at any time, so it must not wait. List is for types with operations that wait.
func List[T any](x *T, describe func(x *T, o *snapshot.Object)) bool {
	if x == nil || !listing.on.Load() {
		return false
	}
	addListed(&listed[T]{weak.Make(x), channel.NewObjectID(), describe})
	return true
}

// listing holds the objects that snapshots show even if no fiber waits for them.
var listing struct {
	on atomic.Bool
	weakList[listable]
}

// mostListed is the largest number of listed objects that a snapshot shows.
const mostListed = 10_000

type listable interface {
	mortal
	show(o *snapshot.Object) bool
}

// mortal is an entry of a weakList: a weak pointer.
type mortal interface {
	gone() bool // what it points to has been collected
}

// weakList is a list that keeps nothing alive, the newest entry first. Its length is at most the larger of 64 and twice
// the number of entries that were not gone when add last removed entries. It may be read while it changes: an entry
// that is removed meanwhile still leads to the next.
type weakList[T mortal] struct {
	mu    sync.Mutex // of those who change it
	first atomic.Pointer[weakNode[T]]
	n     int
	most  int // the length at which entries that are gone are removed
}

type weakNode[T mortal] struct {
	x    T
	next atomic.Pointer[weakNode[T]]
}

// add adds an entry.
//
//go:norace
func (l *weakList[T]) add(node *weakNode[T]) {
	race.Disable()
	defer race.Enable()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= max(l.most, 64) {
		at := &l.first
		for node := at.Load(); node != nil; node = at.Load() {
			if node.x.gone() {
				at.Store(node.next.Load())
				l.n--
			} else {
				at = &node.next
			}
		}
		l.most = 2 * l.n
	}
	node.next.Store(l.first.Load())
	l.first.Store(node)
	l.n++
}

// after returns the node after the given one, or the first if that is nil.
//
//go:norace
func (l *weakList[T]) after(node *weakNode[T]) *weakNode[T] {
	race.Disable()
	defer race.Enable()
	if node == nil {
		return l.first.Load()
	}
	return node.next.Load()
}

// addListed adds an object. Creating it is ordered before each reading of the list, and nothing else is ordered.
//
//go:norace
func addListed(x listable) {
	node := &weakNode[listable]{x: x}
	race.Release(unsafe.Pointer(node))
	listing.add(node)
}

// showListed describes the object. It returns false if the object has been collected.
//
//go:norace
func showListed(node *weakNode[listable], o *snapshot.Object) bool {
	race.Acquire(unsafe.Pointer(node))
	return node.x.show(o)
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
	addListed(&listed[core]{weak.Make(c), c.ch.ID(), func(c *core, o *snapshot.Object) {
		o.Name = c.name
		c.describeTo(o)
	}})
}
