package coir_test

// How snapshots describe the types that are built on this package, and objects for which no fiber waits.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/snapshot"
	"github.com/coir-go/coir/stream"
	"github.com/coir-go/coir/supervise"
)

// Spec: OB-01 (every park has a readable reason)
func TestSnapshotNamesWhatIsBuiltOnIt(t *testing.T) {
	rt := coir.NewRuntime()
	pool := coir.NewPool(1, func(context.Context) (int, error) { return 1, nil }, nil, coir.WithName("connections"))
	if _, err := pool.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	payments := desk.New[int](desk.WithName("payments"))
	named, err := payments.Open(t.Context(), coir.WithName("order 7"))
	if err != nil {
		t.Fatal(err)
	}
	news := pubsub.NewBroadcast[int](coir.WithName("news")).Subscribe(1)
	idle := stream.From(coir.NewChan[int](0, coir.WithName("numbers")))
	listener, err := netio.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	peer, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, x := range []struct {
		name string
		do   func(ctx context.Context) error
		want string // the wait
		kind string // of the object
	}{
		{"pool", func(ctx context.Context) error { _, err := pool.Get(ctx); return err },
			"recv for a value of connections", "pool"},
		{"ticket", func(ctx context.Context) error { _, err := named.Wait(ctx); return err },
			"use for the answer of ticket order 7", "ticket"},
		{"ticket in a select", func(ctx context.Context) error { _, err := coir.Select(ctx, named.DoneCase(nil, nil)); return err },
			"use for the answer of ticket order 7", "ticket"},
		{"subscription", func(ctx context.Context) error { _, err := news.Recv(ctx); return err },
			"recv to receive from news", "subscription"},
		{"accept", func(ctx context.Context) error { _, err := listener.(*netio.Listener).AcceptContext(ctx); return err },
			"use for a connection to " + address, "listener"},
		{"read", func(ctx context.Context) error {
			_, err := conn.(*netio.Conn).ReadContext(ctx, make([]byte, 1))
			return err
		},
			"use to read from " + peer.LocalAddr().String(), "connection"},
		{"input of buffer", func(ctx context.Context) error {
			return stream.ForEach(ctx, stream.Buffer(idle, 1), func(context.Context, int) error { return nil })
		},
			"recv to receive from numbers", "channel"},
	} {
		t.Run(x.name, func(t *testing.T) {
			end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
				name := x.name
				if strings.HasPrefix(name, "input") {
					name = "consumer"
				}
				n.Go(name, x.do)
				return nil
			})
			s := snapshotWhen(t, rt, "it waits", waiting(x.name))
			f := fiberIn(s, x.name)
			if got := string(f.Wait[0].Kind) + " " + f.Wait[0].Text; got != x.want {
				t.Errorf("it waits %q, want %q", got, x.want)
			}
			i := slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.ID == f.Wait[0].Object })
			if s.Objects[i].Kind != x.kind {
				t.Errorf("for %+v, not a %s", s.Objects[i], x.kind)
			}
			if file, _, _ := strings.Cut(filepath.Base(f.Spawned), ":"); f.System || file != "snapshot_words_test.go" {
				t.Errorf("spawned at %s, system %v", f.Spawned, f.System)
			}
			if x.kind == "pool" && (s.Objects[i].Len != 1 || s.Objects[i].Cap != 1) {
				t.Errorf("the pool is %+v, want Len 1, Cap 1", s.Objects[i])
			}
			_ = end()
		})
	}
}

func TestSnapshotShowsWhoLockedByACase(t *testing.T) {
	rt := coir.NewRuntime()
	mutex := locks.NewMutex(coir.WithName("accounts"))
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("holder", func(ctx context.Context) error {
			if _, err := coir.Select(ctx, mutex.LockCase(), coir.NewEvent().DoneCase()); err != nil {
				return err
			}
			n.Go("waiter", mutex.Lock)
			return coir.WaitCancel(ctx)
		})
		return nil
	})
	s := snapshotWhen(t, rt, "they wait", waiting("holder", "waiter"))
	if o := objectIn(s, "accounts"); !slices.Equal(o.Holders, []uint64{fiberIn(s, "holder").ID}) {
		t.Errorf("objectIn(s, \"accounts\") = %+v, want Holders holder", o)
	}
	_ = end()
}

// TestSnapshotSaysWhoUsedAChannel: the last two fibers on each side, and whether it was a goroutine.
func TestSnapshotSaysWhoUsedAChannel(t *testing.T) {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	c := coir.NewChan[int](8, coir.WithName("c"))
	send := func(ctx context.Context) error { return c.Send(ctx, 1) }
	ids := map[string]uint64{}
	go1 := func(n *coir.Nursery, name string, fn func(ctx context.Context) error) {
		f := n.Go(name, fn)
		ids[name] = f.ID()
		_ = f.Wait(t.Context())
	}
	for _, x := range []struct {
		name    string
		do      func(ctx context.Context, n *coir.Nursery)
		by, was string // of the senders
		outside bool
	}{
		{"none", func(context.Context, *coir.Nursery) {}, "", "", false},
		{"one", func(_ context.Context, n *coir.Nursery) { go1(n, "a", send) }, "a", "", false},
		{"two", func(_ context.Context, n *coir.Nursery) { go1(n, "b", send) }, "b", "a", false},
		{"the same again", func(ctx context.Context, n *coir.Nursery) {
			go1(n, "c", func(ctx context.Context) error { return errors.Join(send(ctx), send(ctx)) })
		}, "c", "b", false},
		{"a try", func(context.Context, *coir.Nursery) { _ = c.TrySend(1) }, "", "c", false},
		{"a goroutine", func(ctx context.Context, _ *coir.Nursery) { goroutine(ctx, func() { _ = send(t.Context()) }) }, "", "", true},
		{"an async send", func(ctx context.Context, n *coir.Nursery) { _, _ = c.SendAsync(n, 1).Wait(ctx) }, "", "", false},
	} {
		end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
			x.do(ctx, n)
			n.Go("reader", func(ctx context.Context) error {
				for {
					if _, err := c.Recv(ctx); err != nil {
						return err
					}
				}
			})
			return nil
		})
		s := snapshotWhen(t, rt, "it waits", waiting("reader", "main"))
		_ = end()
		o := objectIn(s, "c")
		if o.Sender != ids[x.by] || o.SenderBefore != ids[x.was] || o.FromOutside != x.outside {
			t.Errorf("%s: sender %d, before %d, from outside %v; fibers are %v", x.name, o.Sender, o.SenderBefore, o.FromOutside, ids)
		}
		if r := fiberIn(s, "reader").ID; o.Receiver != r || o.ReceiverBefore == r || o.ToOutside {
			t.Errorf("%s: receiver %d, before %d, and it is %d", x.name, o.Receiver, o.ReceiverBefore, r)
		}
	}
}

// TestSnapshotSaysWhereSupervisedFibersComeFrom: what a supervisor runs belongs to the program.
func TestSnapshotSaysWhereSupervisedFibersComeFrom(t *testing.T) {
	rt := coir.NewRuntime()
	never := coir.NewEvent()
	_, file, line, _ := runtime.Caller(0)
	s := supervise.New([]supervise.Child{{Name: "child", Run: never.Wait}})
	end := inBackground(rt, func(ctx context.Context, _ *coir.Nursery) error { return s.Run(ctx) })
	f := fiberIn(snapshotWhen(t, rt, "it waits", waiting("child")), "child")
	_ = end()
	if want := fmt.Sprint(file, ":", line+1); f.System || f.Spawned != want {
		t.Errorf("system %v, spawned at %s, not %s", f.System, f.Spawned, want)
	}
}

func TestListObjects(t *testing.T) {
	rt := coir.NewRuntime()
	shown := func(name string) *snapshot.Object { return objectIn(rt.Snapshot(snapshot.Options{}), name) }
	before := coir.NewChan[int](1, coir.WithName("before"))
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	orders := coir.NewChan[int](4, coir.WithName("orders"))
	unnamed := coir.NewChan[int](4)
	payments := desk.New[int](desk.WithName("payments"), desk.WithLimit(200))
	pool := coir.NewPool(2, func(context.Context) (int, error) { return 1, nil }, nil, coir.WithName("connections"))
	if _, err := pool.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = orders.TrySend(1)
	for i := range 150 {
		if _, err := payments.Open(t.Context(), coir.WithName(fmt.Sprint("order ", i))); err != nil {
			t.Fatal(err)
		}
	}
	if o := shown("orders"); o == nil || o.Kind != "channel" || o.Len != 1 || o.Cap != 4 || o.Sent != 1 {
		t.Errorf("shown(\"orders\") = %+v, want Kind \"channel\", Len 1, Cap 4, Sent 1", o)
	}
	if o := shown("connections"); o == nil || o.Kind != "pool" || o.Len != 1 || o.Cap != 2 {
		t.Errorf("shown(\"connections\") = %+v, want Kind \"pool\", Len 1, Cap 2", o)
	}
	o := shown("payments")
	if o == nil || o.Kind != "desk" || o.Len != 150 || o.Cap != 200 || len(o.Tickets) != 100 || o.Oldest.IsZero() {
		t.Fatalf("the desk is %+v, want Kind \"desk\", Len 150, Cap 200, len(Tickets) 100, and Oldest set", o)
	}
	for i, x := range o.Tickets {
		if x.Name != fmt.Sprint("order ", i) || i > 0 && x.Opened.Before(o.Tickets[i-1].Opened) {
			t.Fatalf("ticket %d: %+v", i, x)
		}
	}
	if o := shown("before"); o != nil {
		t.Errorf("shown(\"before\") = %+v, want nil", o)
	}
	if s := rt.Snapshot(snapshot.Options{}); slices.ContainsFunc(s.Objects, func(o snapshot.Object) bool { return o.Name == "" }) {
		t.Errorf("s.Objects = %+v, want only objects with names", s.Objects)
	}

	// An object is shown once, also while a fiber waits for it.
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("receiver", func(ctx context.Context) error {
			_, _ = orders.Recv(ctx)
			_, err := orders.Recv(ctx)
			return err
		})
		return nil
	})
	s := snapshotWhen(t, rt, "it waits", waiting("receiver"))
	n := 0
	for _, o := range s.Objects {
		if o.Name == "orders" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("orders is shown %d times", n)
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	runtime.KeepAlive(before)
	runtime.KeepAlive(unnamed)
	runtime.KeepAlive(payments)
	runtime.KeepAlive(pool)

	// The list keeps nothing alive.
	for i := range 10_000 {
		_ = coir.NewChan[[1 << 10]byte](8, coir.WithName("short"))
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	runtime.GC()
	short := 0
	for _, o := range rt.Snapshot(snapshot.Options{}).Objects {
		if o.Name == "short" {
			short++
		}
	}
	if short > 100 {
		t.Errorf("%d channels are shown that the program has dropped", short)
	}
}
