package remote_test

// What snapshots show of channels and desks.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
	"github.com/coir-go/coir/snapshot"
)

// leaky is a transport that cannot be reached while it is down.
type leaky struct {
	remote.Transport
	down *atomic.Bool
}

func (l leaky) err() error {
	if l.down.Load() {
		return fmt.Errorf("%w: connection refused", remote.ErrUnavailable)
	}
	return nil
}

func (l leaky) Publish(ctx context.Context, queue string, m remote.Msg) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.Transport.Publish(ctx, queue, m)
}

func (l leaky) Pull(ctx context.Context, queue string, credit int) ([]remote.Delivery, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Transport.Pull(ctx, queue, credit)
}

func (l leaky) Open(ctx context.Context, queue string, capacity int) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.Transport.Open(ctx, queue, capacity)
}

func (l leaky) Get(ctx context.Context, key string) ([]byte, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Transport.Get(ctx, key)
}

func (l leaky) Len(ctx context.Context, queue string) (int, error) {
	if err := l.err(); err != nil {
		return 0, err
	}
	return l.Transport.Len(ctx, queue)
}

func (l leaky) Ready(ctx context.Context) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.Transport.Ready(ctx)
}

// patient is a transport whose Pull waits while the transport is down.
type patient struct{ leaky }

func (p patient) Pull(ctx context.Context, queue string, credit int) ([]remote.Delivery, error) {
	return p.Transport.Pull(ctx, queue, credit)
}

// sure is a transport that knows since when its connection is lost.
type sure struct{ leaky }

func (s sure) Lost() (since time.Time, err error) {
	if err := s.err(); err != nil {
		return time.Unix(1, 0), err
	}
	return time.Time{}, nil
}

// A lost connection is shown as certain, without a request, and is no longer shown when it is back.
func TestALostConnectionIsCertain(t *testing.T) {
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		down := new(atomic.Bool)
		tr := sure{leaky{memory.New().Node("a"), down}}
		keys, err := ticket.NewKeys(1, make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		err = rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			names := []string{fresh("news"), fresh("orders"), fresh("replies")}
			_, err1 := remote.Volatile[int](ctx, n, tr, names[0], 4)
			_, err2 := remote.Durable[int](ctx, n, tr, names[1], 4)
			_, err3 := ticket.New[int](ctx, n, tr, names[2], keys)
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			for _, lost := range []bool{false, true, false} {
				down.Store(lost)
				s := rt.Snapshot(snapshot.Options{})
				for _, name := range names {
					o := object(s, name)
					// An operation that failed while the connection was lost may still be shown, as likely, until one succeeds.
					if o.TroubleCertain != lost || lost && !strings.Contains(o.Trouble, "connection refused") ||
						o.TroubleSince.Equal(time.Unix(1, 0)) != lost {
						t.Errorf("the connection is lost: %v, and %s is shown with %q since %v", lost, name, o.Trouble, o.TroubleSince)
					}
				}
			}
			n.Cancel(nil)
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A desk without open tickets shows that the broker is away, and that the broker has returned.
func TestTroubleOfAnIdleDesk(t *testing.T) {
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		down := new(atomic.Bool)
		keys, err := ticket.NewKeys(1, make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		err = rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			name := fresh("replies")
			d, err := ticket.New[int](ctx, n, patient{leaky{memory.New().Node("a"), down}}, name, keys)
			if err != nil {
				return err
			}
			defer d.Close()
			for _, away := range []bool{false, true, false} {
				down.Store(away)
				if err := coir.Sleep(ctx, time.Minute); err != nil {
					return err
				}
				o := object(rt.Snapshot(snapshot.Options{}), name)
				if got := strings.HasPrefix(o.Trouble, "the broker is away"); got != away {
					t.Errorf("the broker is away: %v, and the desk is shown with the trouble %q", away, o.Trouble)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

var made atomic.Int64

// fresh returns a name that no other object has: a listed object may be shown for some time after its test.
func fresh(name string) string { return fmt.Sprint(name, made.Add(1)) }

// object returns the object with the name, or an empty one.
func object(s *snapshot.Snapshot, name string) snapshot.Object {
	i := slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.Name == name })
	if i < 0 {
		return snapshot.Object{}
	}
	return s.Objects[i]
}

// waitOf returns the only wait of the fiber with the name, or an empty one.
func waitOf(s *snapshot.Snapshot, fiber string) snapshot.Wait {
	i := slices.IndexFunc(s.Fibers, func(f snapshot.Fiber) bool { return f.Name == fiber })
	if i < 0 || len(s.Fibers[i].Wait) != 1 {
		return snapshot.Wait{}
	}
	return s.Fibers[i].Wait[0]
}

// shown takes snapshots until one is as wanted.
func shown(t *testing.T, rt *coir.Runtime, what string, ok func(s *snapshot.Snapshot) bool) *snapshot.Snapshot {
	t.Helper()
	for began := time.Now(); ; runtime.Gosched() {
		s := rt.Snapshot(snapshot.Options{})
		if ok(s) {
			return s
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("not %s: %+v\n%+v", what, s.Objects, s.Fibers)
		}
	}
}

// running runs f until the test ends it.
func running(t *testing.T, f func(ctx context.Context, n *coir.Nursery) error) (rt *coir.Runtime, end func()) {
	t.Helper()
	rt = coir.NewRuntime()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, f) }()
	return rt, func() {
		cancel()
		<-done
		_ = rt.Close(context.Background())
	}
}

// A sender that waits for room and a receiver that waits for a value are shown with the channel, in words.
func TestSnapshotShowsWhoWaits(t *testing.T) {
	for _, kind := range []string{"durable", "volatile"} {
		t.Run(kind, func(t *testing.T) {
			open := remote.Durable[int]
			if kind == "volatile" {
				open = remote.Volatile[int]
			}
			b := memory.New()
			rt, end := running(t, func(ctx context.Context, n *coir.Nursery) error {
				full, err := open(ctx, n, b.Node("a"), "orders", 2)
				if err != nil {
					return err
				}
				empty, err := open(ctx, n, b.Node("a"), "answers", 2)
				if err != nil {
					return err
				}
				if kind == "volatile" { // a receiving process that receives only one value
					other, err := open(ctx, n, b.Node("b"), "orders", 2)
					if err != nil {
						return err
					}
					n.Go("begin", func(ctx context.Context) error {
						_, err := other.Recv(ctx)
						return err
					})
				}
				n.Go("sender", func(ctx context.Context) error {
					for {
						if err := full.Send(ctx, 1); err != nil {
							return err
						}
					}
				})
				n.Go("receiver", func(ctx context.Context) error {
					_, err := empty.Recv(ctx)
					return err
				})
				return nil
			})
			defer end()
			// On a volatile channel, the sender first waits for a receiving process, and that wait is shown otherwise.
			s := shown(t, rt, "the sender waits for room", func(s *snapshot.Snapshot) bool {
				return waitOf(s, "sender").Text == "to send on remote orders ("+kind+", full, 2 of 2)" &&
					strings.HasPrefix(waitOf(s, "receiver").Text, "to receive from remote answers ("+kind+", ")
			})
			id := waitOf(s, "sender").Object
			o := s.Objects[slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.ID == id })]
			if o.Kind != "remote channel" || o.Name != "orders" || o.Senders != 1 || o.Len != 2 || o.Cap != 2 ||
				o.Trouble != "" ||
				o.Oldest.IsZero() || !strings.Contains(o.Made, "sight_test.go:") {
				t.Errorf("with a sender that waits, orders is %+v; want a full remote channel with one sender", o)
			}
			if o := object(s, "answers"); o.Receivers != 1 || o.Senders != 0 {
				t.Errorf("with a receiver that waits, answers is %+v; want one receiver and no sender", o)
			}
		})
	}
}

// While the broker is away, snapshots say so, an explanation names those who wait, and both end when it returns.
func TestSnapshotShowsTrouble(t *testing.T) {
	var down atomic.Bool
	b := memory.New()
	sent := make(chan error, 1)
	rt, end := running(t, func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, leaky{b.Node("a"), &down}, "orders", 2)
		if err != nil {
			return err
		}
		down.Store(true)
		n.Go("sender", func(ctx context.Context) error {
			sent <- c.Send(ctx, 1)
			_, err := c.Recv(ctx)
			if err == nil {
				_, err = c.Recv(ctx)
			}
			return err
		})
		return nil
	})
	defer end()
	away := func(s *snapshot.Snapshot) bool {
		o := object(s, "orders")
		return strings.HasPrefix(o.Trouble, "the broker is away: ") &&
			strings.HasPrefix(waitOf(s, "sender").Text, "to send on remote")
	}
	earlier := shown(t, rt, "in trouble", away)
	later := shown(t, rt, "in trouble later", func(s *snapshot.Snapshot) bool {
		return away(s) && s.Taken.After(earlier.Taken.Add(earlier.Took))
	})
	later.Taken = later.Taken.Add(time.Minute) // as if the trouble had lasted
	why := snapshot.Explain(earlier, later)
	i := slices.IndexFunc(why, func(e snapshot.Explanation) bool { return e.Kind == snapshot.ProblemTrouble })
	if i < 0 || !strings.Contains(why[i].Text, "remote channel orders has trouble for ") || len(why[i].Fibers) != 1 ||
		!strings.Contains(why[i].Text, "connection refused; sender waits to send on remote orders (durable, ") {
		t.Errorf("Explain returned %+v; want the trouble of orders, with the sender", why)
	}
	down.Store(false)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	shown(t, rt, "well", func(s *snapshot.Snapshot) bool {
		return waitOf(s, "sender").Text == "to receive from remote orders (durable, 1 of 2 in the broker)" &&
			object(s, "orders").Trouble == ""
	})
	down.Store(true) // nothing is sent: the pulls find out
	shown(t, rt, "in trouble again", func(s *snapshot.Snapshot) bool { return object(s, "orders").Trouble != "" })
	down.Store(false)
	shown(t, rt, "well again", func(s *snapshot.Snapshot) bool {
		o := object(s, "orders")
		return o.Name != "" && o.Trouble == "" && o.TroubleSince.IsZero()
	})
}

// A wait for a promise is one wait in snapshots, however often it polls, and has the trouble of its broker. It is not
// listed when it is over.
func TestSnapshotShowsPromises(t *testing.T) {
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	var down atomic.Bool
	b := memory.New()
	p, err := remote.NewPromise[int](leaky{b.Node("a"), &down}, fresh("result"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	rt, end := running(t, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("waiter", func(ctx context.Context) error {
			if _, err := p.Wait(ctx); err != nil {
				return err
			}
			return coir.WaitCancel(ctx)
		})
		return nil
	})
	defer end()
	waits := func(trouble bool) func(s *snapshot.Snapshot) bool {
		return func(s *snapshot.Snapshot) bool {
			o := object(s, p.Key())
			return waitOf(s, "waiter").Text == "for promise "+p.Key() && o.Kind == "remote promise" && o.Waiters == 1 &&
				o.Senders == 0 && (o.Trouble != "") == trouble
		}
	}
	first := shown(t, rt, "waiting", waits(false))
	down.Store(true)
	s := shown(t, rt, "waiting in trouble", waits(true)) // at the next poll
	if o := object(s, p.Key()); !strings.Contains(o.Trouble, "the broker is away: ") ||
		o.Oldest.Sub(object(first, p.Key()).Oldest).Abs() > 50*time.Millisecond || o.Oldest.Before(began) {
		t.Errorf("the wait is shown as %+v", o)
	}
	down.Store(false)
	shown(t, rt, "waiting again", waits(false))
	if _, err := p.Resolve(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s = shown(t, rt, "over", func(s *snapshot.Snapshot) bool { return waitOf(s, "waiter").Kind == snapshot.WaitCancel })
	for _, o := range s.Objects {
		if strings.Contains(o.Name, p.Key()) {
			t.Errorf("after the wait, snapshots show %+v", o)
		}
	}
}

// While the broker is away, the opening of a channel is shown with the trouble, which has gone when it is open.
func TestSnapshotShowsOpening(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	rt, end := running(t, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("opener", func(ctx context.Context) error {
			c, err := remote.Durable[int](ctx, n, leaky{memory.New().Node("a"), &down}, "new", 2)
			if err == nil {
				_, err = c.Recv(ctx)
			}
			return err
		})
		return nil
	})
	defer end()
	shown(t, rt, "opening", func(s *snapshot.Snapshot) bool {
		o := object(s, "new")
		return waitOf(s, "opener").Text == "to open remote new (durable, capacity 2)" && o.Senders == 0 &&
			strings.Contains(o.Trouble, "connection refused")
	})
	down.Store(false)
	shown(t, rt, "open", func(s *snapshot.Snapshot) bool {
		return strings.HasPrefix(waitOf(s, "opener").Text, "to receive from remote new") && object(s, "new").Trouble == ""
	})
}

// A listed channel is shown while nothing waits for it, and its backlog and trouble are those that the broker says. A
// channel that is no longer used is collected.
func TestListedChannels(t *testing.T) {
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	var down atomic.Bool
	b := memory.New()
	opened := make(chan struct{})
	rt, end := running(t, func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, leaky{b.Node("a"), &down}, "listed", 10)
		if err != nil {
			return err
		}
		for i := range 3 {
			if err := c.Send(ctx, i); err != nil {
				return err
			}
		}
		close(opened)
		err = coir.WaitCancel(ctx)
		c.Leave()
		return err
	})
	<-opened
	shown(t, rt, "asked", func(s *snapshot.Snapshot) bool {
		o := object(s, "listed")
		return o.Note == "durable, 3 of 10 in the broker" && o.Len == 3 && o.Cap == 10 && o.Sent == 3
	})
	down.Store(true)
	shown(t, rt, "in trouble", func(s *snapshot.Snapshot) bool { return object(s, "listed").Trouble != "" })
	down.Store(false)
	shown(t, rt, "well", func(s *snapshot.Snapshot) bool { return object(s, "listed").Trouble == "" })
	end()
	other := coir.NewRuntime()
	defer func() { _ = other.Close(context.Background()) }()
	shown(t, other, "collected", func(s *snapshot.Snapshot) bool {
		runtime.GC()
		return object(s, "listed").ID == 0
	})
}

// A desk of tickets says that its broker is away.
func TestListedDesks(t *testing.T) {
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	keys, err := ticket.NewKeys(1, []byte("the key of Monday, with 32 bytes"))
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	b := memory.New()
	rt, end := running(t, func(ctx context.Context, n *coir.Nursery) error {
		d, err := ticket.New[int](ctx, n, leaky{b.Node("a"), &down}, "payments", keys, ticket.WithNode(7))
		if err != nil {
			return err
		}
		if _, err := d.Open(ctx, time.Hour, coir.WithName("payment 1")); err != nil {
			return err
		}
		return coir.WaitCancel(ctx)
	})
	defer end()
	desk := func(s *snapshot.Snapshot) snapshot.Object {
		i := slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.Kind == "desk" && o.Name == "payments" })
		if i < 0 {
			return snapshot.Object{}
		}
		return s.Objects[i]
	}
	shown(t, rt, "listed", func(s *snapshot.Snapshot) bool {
		o := desk(s)
		return o.Note == "across replicas, node 7" && len(o.Tickets) == 1 && o.Trouble == ""
	})
	down.Store(true)
	shown(t, rt, "in trouble", func(s *snapshot.Snapshot) bool { return desk(s).Trouble != "" })
	down.Store(false)
	shown(t, rt, "well", func(s *snapshot.Snapshot) bool { return desk(s).Name != "" && desk(s).Trouble == "" })
}
