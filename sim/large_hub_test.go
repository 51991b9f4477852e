package sim

import (
	"context"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
)

// A hub of events. A subscriber names the last event that it has seen, gets the events since then out of the log, and
// then each new one. The hub sends heartbeats to quiet subscribers, and drops those that do not read.

type hubEvent struct {
	seq  int // from 1; 0: a heartbeat
	text string
}

type subscription struct {
	name   string
	inbox  *coir.Chan[hubEvent]
	missed int // heartbeats that did not fit
}

// eventHub keeps a log of all events, and the subscriptions.
type eventHub struct {
	mu     *locks.RWMutex
	log    []hubEvent
	subs   []*subscription
	closed *coir.Event
}

func newEventHub() *eventHub {
	return &eventHub{
		mu: locks.NewRWMutex(coir.WithName("hub.mu")), closed: coir.NewEvent(coir.WithName("closed")),
	}
}

// publish adds an event to the log, and gives it to all subscribers. It drops a subscriber that has no room.
func (h *eventHub) publish(ctx context.Context, text string) error {
	if err := h.mu.Lock(ctx); err != nil {
		return err
	}
	defer h.mu.Unlock()
	e := hubEvent{len(h.log) + 1, text}
	h.log = append(h.log, e)
	kept := h.subs[:0]
	for _, sub := range h.subs {
		if err := sub.inbox.TrySend(e); err != nil {
			sub.inbox.Close()
			continue
		}
		kept = append(kept, sub)
	}
	h.subs = kept
	return nil
}

// since returns the events after one.
func (h *eventHub) since(ctx context.Context, seq int) ([]hubEvent, error) {
	if err := h.mu.RLock(ctx); err != nil {
		return nil, err
	}
	defer h.mu.RUnlock()
	return append([]hubEvent(nil), h.log[seq:]...), nil
}

// subscribe returns a subscription that has all events after one.
func (h *eventHub) subscribe(ctx context.Context, name string, seq int) (*subscription, error) {
	old, err := h.since(ctx, seq)
	if err != nil {
		return nil, err
	}
	sub := &subscription{name: name, inbox: coir.NewChan[hubEvent](len(old)+16, coir.WithName("inbox "+name))}
	for _, e := range old {
		if err := sub.inbox.Send(ctx, e); err != nil {
			return nil, err
		}
	}
	if err := h.mu.Lock(ctx); err != nil {
		return nil, err
	}
	h.subs = append(h.subs, sub)
	h.mu.Unlock()
	return sub, nil
}

// unsubscribe ends a subscription.
func (h *eventHub) unsubscribe(ctx context.Context, sub *subscription) error {
	if err := h.mu.Lock(ctx); err != nil {
		return err
	}
	defer h.mu.Unlock()
	for i, other := range h.subs {
		if other == sub {
			h.subs = append(h.subs[:i], h.subs[i+1:]...)
			break
		}
	}
	return nil
}

// beat sends heartbeats until the hub is closed.
func (h *eventHub) beat(ctx context.Context) error {
	tick := pace.NewTicker(20*time.Millisecond, coir.WithName("heartbeat"))
	for {
		which, err := coir.Select(ctx, tick.WaitCase(nil), h.closed.DoneCase())
		if err != nil || which == 1 {
			return err
		}
		if err := h.mu.RLock(ctx); err != nil {
			return err
		}
		for _, sub := range h.subs {
			if sub.inbox.TrySend(hubEvent{}) != nil {
				sub.missed++
			}
		}
		h.mu.RUnlock()
	}
}

// follow reads a subscription until it has seen event last, and checks that no event is missing.
func follow(ctx context.Context, s *Sim, sub *subscription, seen, last int) (int, error) {
	for seen < last {
		var e hubEvent
		which, err := coir.Select(ctx, sub.inbox.RecvCase(&e), coir.After(time.Second))
		switch {
		case err != nil:
			return seen, err
		case which == 1:
			s.Errorf("%s has seen event %d of %d, and then nothing for a second", sub.name, seen, last)
			return last, nil
		case e.seq == 0: // a heartbeat
			continue
		case e.seq != seen+1:
			s.Errorf("%s got event %d after event %d", sub.name, e.seq, seen)
		}
		seen = e.seq
	}
	return seen, nil
}

// hubService is a hub with publishers, followers, and readers that come and go.
func hubService(ctx context.Context, s *Sim) {
	const publishers, each, followers, visitors = 3, 5, 4, 3
	h := newEventHub()
	alarm := coir.NewChan[string](8, coir.WithName("alarm"))
	nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
		n.Go("beat", h.beat)
		n.Go("monitor", func(ctx context.Context) error {
			tick := pace.NewTicker(35*time.Millisecond, coir.WithName("check"))
			for {
				var name string
				which, err := coir.Select(ctx, tick.WaitCase(nil), alarm.RecvCase(&name), h.closed.DoneCase())
				if err != nil || which == 2 {
					return err
				}
			}
		})
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for i := range publishers {
				n.Go("publisher", func(ctx context.Context) error {
					for range each {
						if err := coir.Sleep(ctx, time.Duration(10+i)*time.Millisecond); err != nil {
							return err
						}
						if err := h.publish(ctx, "news"); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
			for i := range followers {
				n.Go("follower", func(ctx context.Context) error {
					sub, err := h.subscribe(ctx, "follower", 0)
					if err != nil {
						return err
					}
					if _, err := follow(ctx, s, sub, 0, publishers*each); err != nil {
						return err
					}
					return h.unsubscribe(ctx, sub)
				}, coir.WithIndex(i))
			}
			for i := range visitors {
				n.Go("visitor", func(ctx context.Context) error {
					seen := 0
					for _, last := range []int{4 + i, publishers * each} { // it reads, goes away, and comes back
						sub, err := h.subscribe(ctx, "visitor", seen)
						if err != nil {
							return err
						}
						if seen, err = follow(ctx, s, sub, seen, last); err != nil {
							return err
						}
						if err := h.unsubscribe(ctx, sub); err != nil {
							return err
						}
						if err := coir.Sleep(ctx, time.Duration(7+i)*time.Millisecond); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
		h.closed.Set()
	})
}
