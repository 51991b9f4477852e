package desk

import (
	"context"
	"runtime"
	"sync/atomic"
	"weak"

	"github.com/coir-go/coir"
)

// A group holds the open tickets of one shard that end with the same scope. It has one coir.Watch for all of them, so
// opening another ticket in the same context only links it into a ring.
//
// Finding the right group among many would need a hash table. So a shard checks only the group of its last ticket. If
// that group has another scope, the shard starts a new group, even if an older group has the ticket's scope. A group
// that becomes empty is stopped and reused, unless it is the group of the last ticket.
//
// The group of the last ticket keeps watching even when it is empty, because starting a watch in a context of package
// context costs more than a ticket. The context refers to a link, and the link refers to an empty group only weakly, so
// the context does not keep an unused desk alive. When the shard is collected, a cleanup stops the watch: see kept.
//
// The lock of the shard guards all of this. It may be held while the watch is stopped, because a scope holds no lock
// when it calls Ended.
type group[T any] struct {
	link  *link[T]
	shard *shard[T]
	ctx   context.Context // the context of the first ticket; the others have the same scope
	first *Ticket[T]      // the first ticket in the ring, which is in the order of opening
	ended error           // not nil once the scope has ended; then no more tickets are added
	next  *group[T]       // in the list shard.spare
}

// link is the object through which a context refers to a group.
type link[T any] struct {
	watch coir.Watch
	open  atomic.Pointer[group[T]] // the group while it has tickets: the context may keep those alive
	idle  weak.Pointer[group[T]]   // the group
	self  weak.Pointer[link[T]]
}

// kept is the part of a shard that its cleanup needs: the link of shard.current, which may still be watching.
type kept[T any] struct{ link weak.Pointer[link[T]] }

// stop stops the watch, if the context still has it. The shard and its groups have been collected.
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

// groupFor returns the group for a ticket in ctx, and makes it the shard's current group. To start a new group it
// unlocks the shard, because that calls methods of ctx. The caller holds the lock, and holds it again when groupFor
// returns or panics.
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
		g = l.idle.Value() // a ticket may be about to be added
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
	if s.current == g { // the shard must not keep a reference to an ended scope
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
