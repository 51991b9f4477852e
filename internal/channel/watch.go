package channel

import "github.com/coir-go/coir/internal/park"

// Watcher is told when a side of a channel may have become ready. It is called with the channel's lock held.
type Watcher interface {
	// BecameReady returns a parker to ready after unlocking, or nil. It reports true if the watcher is gone, and need
	// not be told again.
	BecameReady() (ready *park.Parker, gone bool)
	// Gone reports whether the watcher is gone.
	Gone() bool
}

// Watch is a watcher's place in the list of a channel.
type Watch struct {
	Watcher
	prev, next *Watch
	ended      bool // it was taken out of the list, for good
}

// Ended reports whether the watch was taken out of its list.
//
//go:norace
func (w *Watch) Ended() bool { return w.ended }

// watchers are the watches of a channel, by side.
type watchers struct {
	first  [2]*Watch
	n      [2]int
	enough [2]int // at so many look for those whose watcher is gone
	more   []*park.Parker
}

// Watch puts a watch into the list of one side. Now and then it takes out those whose watcher is gone: as often as their
// number could have doubled, so that a channel to which nothing happens does not collect them.
//
//go:norace
func (c *Core) Watch(side Side, w *Watch) {
	if c.watch == nil {
		c.watch = new(watchers)
		c.noted = true
	}
	l := c.watch
	if l.n[side] >= l.enough[side] {
		for old := l.first[side]; old != nil; {
			next := old.next
			if old.Gone() {
				l.withdraw(side, old)
			}
			old = next
		}
		l.enough[side] = max(2*l.n[side], 16)
	}
	if w.next = l.first[side]; w.next != nil {
		w.next.prev = w
	}
	l.first[side] = w
	l.n[side]++
}

// WithdrawWatch takes a watch out of the list of one side, for good.
//
//go:norace
func (c *Core) WithdrawWatch(side Side, w *Watch) { c.watch.withdraw(side, w) }

//go:norace
func (l *watchers) withdraw(side Side, w *Watch) {
	if w.ended {
		return
	}
	w.ended = true
	if w.prev == nil {
		l.first[side] = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.n[side]--
}

// tell tells the watchers of one side that it may have become ready. It returns a parker to ready after unlocking. If
// there are more, TakeMore has them.
//
// Spec: SE-21 (a Selector's events do not cost its size)
//
//go:norace
func (c *Core) tell(side Side) (ready *park.Parker) {
	l := c.watch
	if l == nil {
		return nil
	}
	for w := l.first[side]; w != nil; {
		next := w.next
		p, gone := w.BecameReady()
		switch {
		case gone:
			l.withdraw(side, w)
		case p != nil && ready == nil:
			ready = p
		case p != nil:
			l.addMore(p) // one Selector a channel is usual
		}
		w = next
	}
	return ready
}

// addMore keeps a parker for TakeMore. It is written out because the race detector would see what append does.
//
//go:norace
func (l *watchers) addMore(p *park.Parker) {
	more := make([]*park.Parker, len(l.more)+1)
	for i, old := range l.more { //nolint:staticcheck // the race detector would see a copy
		more[i] = old
	}
	more[len(l.more)] = p
	l.more = more
}

// TellBoth tells all watchers, and returns a parker as tell does.
//
//go:norace
func (c *Core) TellBoth() (ready *park.Parker) {
	ready = c.tell(Sending)
	if p := c.tell(Receiving); ready == nil {
		ready = p
	} else if p != nil {
		c.watch.addMore(p)
	}
	return ready
}

// TakeMore returns the parkers to ready beyond the one that was returned. It is called before unlocking.
//
//go:norace
func (c *Core) TakeMore() (more []*park.Parker) {
	if c.watch != nil {
		more, c.watch.more = c.watch.more, nil
	}
	return more
}
