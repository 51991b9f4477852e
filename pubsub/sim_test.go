package pubsub_test

// The properties that involve several fibers, each tested under schedules of package sim. A program checks what must
// hold in all schedules, and uses Sometimes for what must occur in at least one.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/sim"
)

const schedules = 2_500

// program runs fn in a nursery, under many schedules. When all fibers have ended, it runs the check that fn returned.
func program(t *testing.T, fn func(*sim.Sim, context.Context, *coir.Nursery) (check func(context.Context))) {
	t.Helper()
	n := schedules
	if testing.Short() {
		n /= 10
	}
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		check := func(context.Context) {}
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			check = fn(s, ctx, n)
			return nil
		})
		if err != nil {
			s.Errorf("Run: %v", err)
		}
		check(ctx)
	}, sim.WithSchedules(n))
}

// collect starts a fiber that receives from sub until the end, and appends the values to *got.
func collect(s *sim.Sim, n *coir.Nursery, sub *pubsub.Subscription[int], got *[]int) {
	n.Go("subscriber", func(ctx context.Context) error {
		for v, err := range sub.All(ctx) {
			if err != nil {
				s.Errorf("All: %v", err)
				return nil
			}
			*got = append(*got, v)
		}
		return nil
	})
}

// Two publishers have two subscribers for which they wait: both subscribers get all values, in the same order.
func TestSubscribersSeeOneOrder(t *testing.T) {
	for _, capacity := range []int{0, 1, 2} {
		program(t, func(s *sim.Sim, _ context.Context, n *coir.Nursery) func(ctx context.Context) {
			b := pubsub.NewBroadcast[int](coir.WithName("prices"))
			var got [2][]int
			for i := range got {
				collect(s, n, b.Subscribe(capacity), &got[i])
			}
			var left atomic.Int32
			left.Store(2)
			for i := range 2 {
				n.Go("publisher", func(ctx context.Context) error {
					for j := range 2 {
						if err := b.Publish(ctx, 10*i+j); err != nil {
							s.Errorf("Publish: %v", err)
						}
					}
					if left.Add(-1) == 0 {
						b.Close()
					}
					return nil
				}, coir.WithIndex(i))
			}
			return func(ctx context.Context) {
				if !slices.Equal(got[0], got[1]) || len(got[0]) != 4 {
					s.Errorf("the subscribers got %v and %v", got[0], got[1])
				}
				if slices.Index(got[0], 0) > slices.Index(got[0], 1) || slices.Index(got[0], 10) > slices.Index(got[0], 11) {
					s.Errorf("values of one publisher out of order: %v", got[0])
				}
				first := got[0][0] + got[0][1]
				s.Sometimes(first != 1 && first != 21, "the publishers take turns")
				s.Sometimes(got[0][0] == 10, "the second publisher is first")
			}
		})
	}
}

// A subscriber leaves while a publisher waits for it: the publisher continues, and the other subscriber gets the value.
func TestSubscriberThatLeavesIsNotWaitedFor(t *testing.T) {
	program(t, func(s *sim.Sim, _ context.Context, n *coir.Nursery) func(ctx context.Context) {
		b := pubsub.NewBroadcast[int]()
		var got []int
		left := b.Subscribe(1)
		collect(s, n, b.Subscribe(0), &got)
		var done atomic.Int32
		n.Go("publisher", func(ctx context.Context) error {
			for i := range 3 {
				if err := b.Publish(ctx, i); err != nil {
					s.Errorf("Publish: %v", err)
				}
				done.Add(1)
			}
			b.Close()
			return nil
		})
		n.Go("leaver", func(context.Context) error {
			s.Sometimes(done.Load() == 0, "it leaves before the first value")
			s.Sometimes(done.Load() == 1, "it leaves while it is waited for")
			if done.Load() > 1 {
				s.Errorf("Publish did not wait")
			}
			left.Close()
			left.Close()
			return nil
		})
		return func(ctx context.Context) {
			if !slices.Equal(got, []int{0, 1, 2}) {
				s.Errorf("the other subscriber got %v", got)
			}
			if n := left.Lagged(); n > 1 {
				s.Errorf("lagged %d", n)
			}
		}
	})
}

// Close runs while values are published: each subscriber gets a prefix of the same sequence. A Publish that returned
// nil has passed its value to all subscribers, and one that returned ErrClosed is the last.
func TestCloseWhilePublishing(t *testing.T) {
	program(t, func(s *sim.Sim, _ context.Context, n *coir.Nursery) func(ctx context.Context) {
		b := pubsub.NewBroadcast[int]()
		var got [2][]int
		for i := range got {
			collect(s, n, b.Subscribe(1), &got[i])
		}
		published := 0
		n.Go("publisher", func(ctx context.Context) error {
			for i := range 3 {
				err := b.Publish(ctx, i)
				if err != nil && !errors.Is(err, coir.ErrClosed) {
					s.Errorf("Publish: %v", err)
				}
				if err != nil {
					return nil
				}
				published++
			}
			return nil
		})
		n.Go("closer", func(context.Context) error {
			b.Close()
			b.Close()
			return nil
		})
		return func(context.Context) {
			for _, g := range got {
				if !slices.Equal(g, []int{0, 1, 2}[:len(g)]) || len(g) < published || len(g) > published+1 {
					s.Errorf("got %v, published %d", g, published)
				}
			}
			s.Sometimes(published == 0, "nothing is published")
			s.Sometimes(published == 3, "all is published")
			s.Sometimes(len(got[0]) != len(got[1]), "Close comes in the middle of a Publish")
		}
	})
}

// Subscribe runs while values are published and the Broadcast is closed: the new subscriber gets a suffix of the
// sequence.
func TestSubscribeWhilePublishing(t *testing.T) {
	program(t, func(s *sim.Sim, _ context.Context, n *coir.Nursery) func(ctx context.Context) {
		b := pubsub.NewBroadcast[int]()
		var got []int
		var closed atomic.Bool
		n.Go("publisher", func(ctx context.Context) error {
			for i := range 3 {
				if err := b.Publish(ctx, i); err != nil {
					s.Errorf("Publish: %v", err)
				}
			}
			b.Close()
			closed.Store(true)
			return nil
		})
		n.Go("subscriber", func(ctx context.Context) error {
			after := closed.Load()
			sub := b.Subscribe(0)
			for v, err := range sub.All(ctx) {
				if err != nil {
					s.Errorf("All: %v", err)
				}
				got = append(got, v)
			}
			if after && len(got) > 0 {
				s.Errorf("a subscriber of a closed Broadcast got %v", got)
			}
			return nil
		})
		return func(ctx context.Context) {
			if !slices.Equal(got, []int{0, 1, 2}[3-len(got):]) {
				s.Errorf("got %v", got)
			}
			for n := range 4 {
				s.Sometimes(len(got) == n, string(rune('0'+n))+" values")
			}
		}
	})
}

// A Publish is cancelled while it waits for a subscriber or for another Publish: it returns the error, and the next
// Publish works. A subscriber that had room has the value.
func TestCancelOfAWaitingPublish(t *testing.T) {
	program(t, func(s *sim.Sim, ctx context.Context, n *coir.Nursery) func(ctx context.Context) {
		b := pubsub.NewBroadcast[int]()
		slow, quick := b.Subscribe(1), b.Subscribe(8)
		cancelled, cancel := coir.WithCancel(ctx)
		var errs [2]error
		for i := range errs {
			n.Go("publisher", func(context.Context) error {
				_ = b.Publish(cancelled, 2*i)
				errs[i] = b.Publish(cancelled, 2*i+1)
				return nil
			}, coir.WithIndex(i))
		}
		n.Go("canceller", func(context.Context) error { cancel(); return nil })
		return func(ctx context.Context) {
			failed := 0
			for _, err := range errs {
				if err != nil && !errors.Is(err, context.Canceled) {
					s.Errorf("Publish: %v", err)
				}
				if err != nil {
					failed++
				}
			}
			if failed == 0 {
				s.Errorf("more was published than there is room for")
			}
			kept := slow.Lagged()
			slow.Close()
			if slow.Lagged()-kept > 1 {
				s.Errorf("the slow subscriber holds more than it has room for")
			}
			var had []int
			for {
				v, err := quick.TryRecv()
				if err != nil {
					break
				}
				had = append(had, v)
			}
			s.Sometimes(len(had) == 0, "the cancel comes first")
			s.Sometimes(len(had) == 2, "the cancel comes while a Publish waits")
			if len(had) > 2 {
				s.Errorf("got %v, but the second Publish must have waited", had)
			}
			if err := b.Publish(ctx, 9); err != nil {
				s.Errorf("Publish: %v", err)
			}
			if v, err := quick.TryRecv(); v != 9 || err != nil {
				s.Errorf("got %d, %v", v, err)
			}
		}
	})
}

// Subscriptions in selects: no value is lost or received twice, and the values of each subscription are in order.
func TestSubscriptionsInASelect(t *testing.T) {
	program(t, func(s *sim.Sim, _ context.Context, n *coir.Nursery) func(ctx context.Context) {
		b := pubsub.NewBroadcast[int]()
		l := pubsub.NewLatest(0)
		sub, watcher := b.Subscribe(0), l.Watch()
		n.Go("publisher", func(ctx context.Context) error {
			defer b.Close()
			for i := range 2 {
				if err := b.Publish(ctx, i); err != nil {
					s.Errorf("Publish: %v", err)
				}
			}
			return nil
		})
		n.Go("setter", func(context.Context) error {
			defer l.Close()
			for i := range 2 {
				if err := l.Set(i + 1); err != nil {
					s.Errorf("Set: %v", err)
				}
			}
			return nil
		})
		var got, seen []int
		n.Go("subscriber", func(ctx context.Context) error {
			for {
				var v, w int
				at, err := coir.Select(ctx, sub.RecvCase(&v), watcher.RecvCase(&w))
				switch {
				case errors.Is(err, coir.ErrClosed) && at == 0:
					return rest(ctx, s, watcher, &seen)
				case errors.Is(err, coir.ErrClosed):
					return rest(ctx, s, sub, &got)
				case err != nil:
					s.Errorf("Select: %v", err)
				case at == 0:
					got = append(got, v)
				default:
					seen = append(seen, w)
				}
			}
		})
		return func(ctx context.Context) {
			if !slices.Equal(got, []int{0, 1}) {
				s.Errorf("got %v", got)
			}
			if !slices.IsSorted(seen) || seen[len(seen)-1] != 2 || len(slices.Compact(seen)) != len(seen) {
				s.Errorf("seen %v", seen)
			}
			s.Sometimes(len(seen) == 3, "all is seen")
			s.Sometimes(len(seen) == 1, "only the last is seen")
		}
	})
}

// rest receives the remaining values.
func rest(ctx context.Context, s *sim.Sim, sub *pubsub.Subscription[int], into *[]int) error {
	for v, err := range sub.All(ctx) {
		if err != nil {
			s.Errorf("All: %v", err)
		}
		*into = append(*into, v)
	}
	return nil
}

// Two fibers set values and two watch, one of them from the middle on. A watcher receives values in the order in which
// they were set, and last of all the final value.
func TestWatcherNeverMissesTheNewest(t *testing.T) {
	program(t, func(s *sim.Sim, _ context.Context, n *coir.Nursery) func(ctx context.Context) {
		l := pubsub.NewLatest(0, coir.WithName("config"))
		var early, late []int
		collect(s, n, l.Watch(), &early)
		var left atomic.Int32
		left.Store(2)
		for i := range 2 {
			n.Go("setter", func(context.Context) error {
				for j := range 2 {
					if err := l.Set(10*(i+1) + j); err != nil {
						s.Errorf("Set: %v", err)
					}
				}
				if left.Add(-1) == 0 {
					l.Close()
				}
				return nil
			}, coir.WithIndex(i))
		}
		n.Go("late", func(context.Context) error {
			before := l.Get()
			sub := l.Watch()
			n.Go("watcher", func(ctx context.Context) error {
				if err := rest(ctx, s, sub, &late); err != nil {
					return err
				}
				if before/10 == late[0]/10 && late[0] < before || before != 0 && late[0] == 0 {
					s.Errorf("it watched %v after Get had returned %d", late, before)
				}
				return nil
			})
			return nil
		})
		return func(ctx context.Context) {
			last := l.Get()
			for _, got := range [][]int{early, late} {
				if len(got) == 0 || got[len(got)-1] != last {
					s.Errorf("watched %v; the last is %d", got, last)
				}
				for i := range 2 { // the values of each setter increase
					part := slices.DeleteFunc(slices.Clone(got), func(v int) bool { return v/10 != i+1 })
					if !slices.IsSorted(part) {
						s.Errorf("watched %v", got)
					}
				}
				if at := slices.Index(got, 0); at > 0 {
					s.Errorf("watched %v: it went back", got)
				}
			}
			for i, v := range late { // the values that both have seen are in the same order
				at := slices.Index(early, v)
				for _, w := range late[i+1:] {
					if b := slices.Index(early, w); at >= 0 && b >= 0 && b < at {
						s.Errorf("watched %v and %v", early, late)
					}
				}
			}
			s.Sometimes(len(early) == 5, "a watcher sees all")
			s.Sometimes(len(early) == 1, "a watcher sees only the last")
			s.Sometimes(len(late) == 1 && len(early) == 5, "a watcher comes last")
		}
	})
}

// Close races with Set: the final result of Get is the last value that a watcher receives.
func TestCloseWhileSetting(t *testing.T) {
	program(t, func(s *sim.Sim, ctx context.Context, n *coir.Nursery) func(ctx context.Context) {
		l := pubsub.NewLatest(0)
		var seen []int
		collect(s, n, l.Watch(), &seen)
		set := 0
		n.Go("setter", func(context.Context) error {
			for i := range 2 {
				err := l.Set(i + 1)
				if err != nil && !errors.Is(err, coir.ErrClosed) {
					s.Errorf("Set: %v", err)
				}
				if err == nil {
					set = i + 1
				}
			}
			return nil
		})
		n.Go("closer", func(context.Context) error { l.Close(); return nil })
		return func(ctx context.Context) {
			if l.Get() != set || seen[len(seen)-1] != set {
				s.Errorf("set to %d; got %d, watched %v", set, l.Get(), seen)
			}
			late := l.Watch()
			if v, err := late.Recv(ctx); v != set || err != nil {
				s.Errorf("a watcher after Close got %d, %v", v, err)
			}
			if _, err := late.Recv(ctx); !errors.Is(err, coir.ErrClosed) {
				s.Errorf("a watcher after Close: %v", err)
			}
			for n := range 3 {
				s.Sometimes(set == n, "set to "+string(rune('0'+n)))
			}
		}
	})
}

// The report of a deadlock names the topic.
func TestReportsNameTheTopic(t *testing.T) {
	for _, c := range []struct {
		name string
		fn   func(ctx context.Context, n *coir.Nursery)
		want []string
	}{
		{"publishers", func(_ context.Context, n *coir.Nursery) {
			b := pubsub.NewBroadcast[int](coir.WithName("prices"))
			b.Subscribe(0)
			for i := range 2 {
				n.Go("publisher", func(ctx context.Context) error { return b.Publish(ctx, i) }, coir.WithIndex(i))
			}
		}, []string{"waits in Broadcast.Publish to send to prices", "waits in Broadcast.Publish to lock prices, held by publisher["}},
		{"subscriber", func(ctx context.Context, _ *coir.Nursery) {
			b := pubsub.NewBroadcast[int](coir.WithName("prices"))
			_, _ = b.Subscribe(0).Recv(ctx)
		}, []string{"waits in Subscription.Recv to receive from prices"}},
		{"watcher", func(ctx context.Context, _ *coir.Nursery) {
			w := pubsub.NewLatest(1, coir.WithName("config")).Watch()
			_, _ = w.Recv(ctx)
			_, _ = w.Recv(ctx)
		}, []string{"waits in Subscription.Recv to receive from config"}},
	} {
		res := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
			_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error { c.fn(ctx, n); return nil })
		}, sim.WithSchedules(100))
		if res.Failure == nil {
			t.Fatalf("%s: no deadlock", c.name)
		}
		for _, want := range c.want {
			if text := res.Failure.Error(); !strings.Contains(text, want) {
				t.Errorf("%s: the report does not say %q:\n%s", c.name, want, text)
			}
		}
	}
}

// A handler that calls the Latest to which it belongs waits for itself. The report of that deadlock does not contain a
// panic of a fiber that continued without the lock.
func TestDeadlockInAHandlerIsTheReport(t *testing.T) {
	for name, call := range map[string]func(l *pubsub.Latest[int]){
		"Set":   func(l *pubsub.Latest[int]) { _ = l.Set(3) },
		"Get":   func(l *pubsub.Latest[int]) { l.Get() },
		"Watch": func(l *pubsub.Latest[int]) { l.Watch() },
		"Close": func(l *pubsub.Latest[int]) { l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			res := sim.Explore(func(context.Context, *sim.Sim) {
				limits := pubsub.NewLatest(1, coir.WithName("limits"))
				limits.Watch(coir.OnUndelivered(func(int) { call(limits) }))
				_ = limits.Set(2)
			})
			if f := res.Failure; f == nil || f.Kind != sim.KindDeadlock || strings.Contains(f.Error(), "panic") {
				t.Errorf("want a deadlock and nothing else, got: %v", f)
			}
		})
	}
}
