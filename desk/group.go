package desk

import (
	"context"
	"runtime"
	"sync/atomic"
	"weak"

	"github.com/coir-go/coir"
)

// A group is the open tickets of one shard that end with the same scope. It has one coir.Watch for all of them, so a
// ticket that is opened in the context of the last one only needs a place in a ring.
//
// Looking for the right group among many would need a hash. So a shard looks only at the group of its last ticket, and
// otherwise begins a new one, even if there is an older group for the same scope. A group that has become empty is
// stopped and reused, unless it is that of the last ticket.
//
// That group keeps watching, because starting a watch in a context of package context costs more than a ticket. The
// context refers to a link, and the link to an empty group only weakly, so the context does not keep a desk alive that
// is no longer used. When the shard is collected, a cleanup stops the watch: see kept.
//
// The lock of the shard guards all of it. It may be held while the watch is stopped: a scope calls Ended with nothing
// locked.
type group[T any] struct {
	link  *link[T]
	shard *shard[T]
	ctx   context.Context // of the first ticket; the others have the same scope
	first *Ticket[T]      // of the ring, in the order in which they were opened
	ended error           // not nil once the scope has ended: there will be no more tickets
	next  *group[T]       // of shard.spare
}

// link is the object that a context refers to for a group.
type link[T any] struct {
	watch coir.Watch
	open  atomic.Pointer[group[T]] // the group while it has tickets, which end with their context in any case
	idle  weak.Pointer[group[T]]   // the group
	self  weak.Pointer[link[T]]
}

// kept is the part of a shard that its cleanup needs: the link of shard.current, which may still watch.
type kept[T any] struct{ link weak.Pointer[link[T]] }

// stop stops the watch, if the context still has it. The groups of the shard, which used it, are gone.
func (k *kept[T]) stop() {
	if l := k.link.Value(); l != nil {
		l.watch.Stop()
	}
}

// newKept returns the kept of s, and registers the cleanup of s.
func newKept[T any](s *shard[T]) *kept[T] {
	k := new(kept[T])
	runtime.AddCleanup(s, (*kept[T]).stop, k)
	return k
}

func newGroup[T any](s *shard[T]) *group[T] {
	g := &group[T]{shard: s, link: new(link[T])}
	g.link.idle, g.link.self = weak.Make(g), weak.Make(g.link)
	return g
}

// groupFor returns the group for a ticket in ctx, and makes it that of the last ticket. It unlocks the shard while it
// begins a new group, which calls methods of ctx. The caller holds the lock, and holds it again if groupFor returns, or
// panics.
func (s *shard[T]) groupFor(ctx context.Context) (*group[T], error) {
	if g := s.current; g != nil && g.link.watch.Covers(ctx) {
		return g, nil
	}
	g := s.spare
	if g == nil {
		g = newGroup(s)
	} else {
		s.spare, g.next = g.next, nil
		s.spares--
	}
	if err := g.start(ctx); err != nil {
		return nil, err
	}
	if g.ended != nil {
		return nil, g.ended
	}
	g.ctx = ctx
	old := s.current
	s.current, s.kept.link = g, g.link.self
	if old != nil {
		old.leave()
	}
	return g, nil
}

func (g *group[T]) start(ctx context.Context) error {
	g.shard.lock.Unlock()
	defer g.shard.lock.Lock()
	return g.link.watch.Start(ctx, g.link)
}

func (g *group[T]) add(t *Ticket[T]) {
	t.group = g
	if g.first == nil {
		t.prev, t.next, g.first = t, t, t
		g.link.open.Store(g)
		return
	}
	t.prev, t.next = g.first.prev, g.first
	t.prev.next, g.first.prev = t, t
}

func (g *group[T]) remove(t *Ticket[T]) {
	if t.next == t {
		g.first = nil
		g.link.open.Store(nil)
	} else {
		t.prev.next, t.next.prev = t.next, t.prev
		if g.first == t {
			g.first = t.next
		}
	}
	t.prev, t.next = nil, nil
	g.leave()
}

// leave stops the watch of a group that is no longer needed.
func (g *group[T]) leave() {
	s := g.shard
	if g.first == nil && g != s.current && g.ended == nil && g.link.watch.Stop() && s.spares < chunk {
		g.ctx, g.next, s.spare = nil, s.spare, g
		s.spares++
	}
}

// Ended implements coir.Watcher.
func (l *link[T]) Ended(err error) {
	g := l.open.Load()
	if g == nil {
		g = l.idle.Value() // a ticket may be about to be opened
	}
	if g != nil {
		g.end(err)
	}
}

// end ends the tickets of a group whose context has ended.
//
// Spec: TK-13 (a ticket ends with its scope)
func (g *group[T]) end(err error) {
	s := g.shard
	s.lock.Lock()
	g.ended = err
	if s.current == g { // the shard must not keep a scope that has ended
		s.current = nil
	}
	for g.first != nil {
		t := g.first
		s.take(t.id.slot(), endingFor(err))
		s.lock.Unlock()
		t.ended(err)
		s.lock.Lock()
	}
	s.lock.Unlock()
}
