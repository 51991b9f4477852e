package coir_test

// Snapshots of a running program: they say what each fiber waits for, while it waits for that, and change nothing.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/snapshot"
	"github.com/coir-go/coir/stream"
)

// fiberIn returns the fiber of a snapshot with that name.
func fiberIn(s *snapshot.Snapshot, name string) *snapshot.Fiber {
	i := slices.IndexFunc(s.Fibers, func(f snapshot.Fiber) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Fibers[i]
}

// objectIn returns the object of a snapshot with that name.
func objectIn(s *snapshot.Snapshot, name string) *snapshot.Object {
	i := slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Objects[i]
}

// snapshotWhen takes snapshots until one is as wanted.
func snapshotWhen(t *testing.T, rt *coir.Runtime, what string, ok func(*snapshot.Snapshot) bool) *snapshot.Snapshot {
	t.Helper()
	for begin := time.Now(); ; runtime.Gosched() {
		s := rt.Snapshot(snapshot.Options{})
		if ok(s) {
			return s
		}
		if time.Since(begin) > time.Minute {
			text, _ := json.MarshalIndent(s, "", " ")
			t.Fatalf("not %s:\n%s", what, text)
		}
	}
}

func waiting(names ...string) func(*snapshot.Snapshot) bool {
	return func(s *snapshot.Snapshot) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			f := fiberIn(s, name)
			return f == nil || f.State != snapshot.StateWaiting
		})
	}
}

// inBackground runs fn on rt in a goroutine. The returned function cancels the run, and waits for its end.
func inBackground(rt *coir.Runtime, fn func(ctx context.Context, n *coir.Nursery) error) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, fn) }()
	return func() error {
		cancel()
		return <-done
	}
}

// Spec: OB-01 (every park has a readable reason)
// Spec: OB-08 (queues and waits can be dumped)
// Spec: OB-17 (waiter nodes can be recognised)
func TestSnapshotSaysWhatFibersWaitFor(t *testing.T) {
	rt := coir.NewRuntime()
	full := coir.NewChan[int](2, coir.WithName("full"))
	empty := coir.NewChan[int](0, coir.WithName("empty"))
	plain := coir.NewChan[int](0)
	event := coir.NewEvent(coir.WithName("started"))
	cond := coir.NewCond(coir.WithName("news"))
	mutex := locks.NewMutex(coir.WithName("accounts"))
	rw := locks.NewRWMutex(coir.WithName("table"))
	sem := locks.NewSemaphore(1, coir.WithName("slots"))
	limiter := pace.NewLimiter(time.Hour, 1, coir.WithName("rate"))
	promise := coir.NewPromise[int](coir.WithName("answer"))
	selector := coir.NewSelector()
	hold := make(chan bool)
	for _, err := range []error{
		full.Send(t.Context(), 1), full.Send(t.Context(), 2), rw.Lock(t.Context()), sem.Acquire(t.Context(), 1),
		limiter.Wait(t.Context()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	waits := map[string]struct {
		do   func(ctx context.Context) error
		want []string // kind, text, name of the object
	}{
		"send":     {func(ctx context.Context) error { return full.Send(ctx, 3) }, []string{"send to send to full (full, 2 of 2)"}},
		"recv":     {func(ctx context.Context) error { _, err := empty.Recv(ctx); return err }, []string{"recv to receive from empty"}},
		"event":    {event.Wait, []string{"use for the event started"}},
		"promise":  {func(ctx context.Context) error { _, err := promise.Wait(ctx); return err }, []string{"use for the promise answer"}},
		"lock":     {mutex.Lock, []string{"use to lock accounts"}},
		"rlock":    {rw.RLock, []string{"use to read-lock table"}},
		"acquire":  {func(ctx context.Context) error { return sem.Acquire(ctx, 1) }, []string{"use to acquire slots"}},
		"sleep":    {func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }, []string{"sleep for time to pass"}},
		"cancel":   {coir.WaitCancel, []string{"cancel for a cancel"}},
		"limiter":  {limiter.Wait, []string{"use for"}},
		"selector": {func(ctx context.Context) error { _, err := selector.Wait(ctx); return err }, []string{"use for one of the cases of a selector"}},
		"cond": {func(ctx context.Context) error {
			cond.Lock()
			defer cond.Unlock()
			return cond.Wait(ctx)
		}, []string{"use for a signal of news"}},
		"few": {func(ctx context.Context) error {
			_, err := coir.Select(ctx, empty.RecvCase(nil), full.SendCase(1))
			return err
		}, []string{"recv to receive from empty", "send to send to full (full, 2 of 2)"}},
		"select": {func(ctx context.Context) error {
			_, err := coir.Select(ctx, empty.RecvCase(nil), event.DoneCase(), mutex.LockCase(), coir.After(time.Hour))
			return err
		}, []string{
			"recv to receive from empty", "use for the event started", "use to lock accounts", "sleep for time to pass",
		}},
		"run": {func(ctx context.Context) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("inner", func(ctx context.Context) error { _, err := plain.Recv(ctx); return err })
				return nil
			})
		}, []string{"join for its children to end"}},
	}
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		holds := coir.NewEvent()
		holder := n.Go("holder", func(ctx context.Context) error {
			if err := mutex.Lock(ctx); err != nil {
				return err
			}
			holds.Set()
			return coir.WaitCancel(ctx)
		})
		if err := holds.Wait(ctx); err != nil {
			return err
		}
		for name, w := range waits {
			n.Go(name, w.do)
		}
		n.Go("joins", holder.Wait)
		n.Go("native", func(ctx context.Context) error { <-hold; return nil }, coir.WithGoroutine())
		return nil
	})
	names := []string{"joins", "inner", "holder", "main"}
	for name := range waits {
		names = append(names, name)
	}
	s := snapshotWhen(t, rt, "all fibers wait", waiting(names...))
	for name, w := range waits {
		f := fiberIn(s, name)
		var got []string
		for _, x := range f.Wait {
			got = append(got, string(x.Kind)+" "+x.Text)
		}
		if !slices.EqualFunc(got, w.want, strings.HasPrefix) {
			t.Errorf("%s waits %q, want %q", name, got, w.want)
		}
		if file, _, _ := strings.Cut(filepath.Base(f.Spawned), ":"); file != "snapshot_test.go" {
			t.Errorf("%s: spawned at %q", name, f.Spawned)
		}
		if f.Since.IsZero() || f.Since.After(s.Taken.Add(s.Took)) {
			t.Errorf("%s: since %v, taken at %v", name, f.Since, s.Taken)
		}
		if timed := name == "sleep" || name == "select" || name == "limiter"; timed == f.Until.IsZero() {
			t.Errorf("%s: until %v", name, f.Until)
		}
		if f.System || f.Main {
			t.Errorf("%s: system %v, main %v", name, f.System, f.Main)
		}
	}
	holder := fiberIn(s, "holder")
	if f := fiberIn(s, "joins"); len(f.Wait) != 1 || f.Wait[0].Kind != snapshot.WaitEnd || f.Wait[0].Fiber != holder.ID {
		t.Errorf("joins: %+v", f.Wait)
	}
	if o := objectIn(s, "accounts"); o.Kind != "mutex" || !slices.Equal(o.Holders, []uint64{holder.ID}) || o.Ends != "unlock" {
		t.Errorf("objectIn(s, \"accounts\") = %+v, want Kind \"mutex\", Holders holder, Ends \"unlock\"", o)
	}
	if o := objectIn(s, "full"); o.Kind != "channel" || o.Len != 2 || o.Cap != 2 || o.Sent != 2 || o.Senders != 2 {
		t.Errorf("objectIn(s, \"full\") = %+v, want Kind \"channel\", Len 2, Cap 2, Sent 2, Senders 2", o)
	}
	if o := objectIn(s, "empty"); o.Receivers != 3 || o.Oldest.IsZero() {
		t.Errorf("objectIn(s, \"empty\") = %+v, want Receivers 3, and Oldest set", o)
	}
	if f := fiberIn(s, "native"); f == nil || f.State != snapshot.StateOutside {
		t.Errorf("native: %+v", f)
	}
	inner, run, main := fiberIn(s, "inner"), fiberIn(s, "run"), fiberIn(s, "main")
	if len(s.Nurseries) != 2 || !main.Main {
		t.Fatalf("s.Nurseries = %+v, want two, of which main is Main", s.Nurseries)
	}
	for _, n := range s.Nurseries {
		switch n.ID {
		case main.Nursery:
			if n.Owner != main.ID || n.Parent != 0 || n.Children != len(waits)+3 {
				t.Errorf("outer: %+v", n)
			}
		case inner.Nursery:
			if n.Owner != run.ID || n.Parent != main.Nursery || n.Children != 1 || run.Wait[0].Nursery != n.ID {
				t.Errorf("inner: %+v", n)
			}
		}
	}
	if p := s.Process; p.Live != int64(len(s.Fibers)) || p.Go != runtime.Version() || p.PID == 0 {
		t.Errorf("%d fibers, %+v", len(s.Fibers), p)
	}
	close(hold)
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if s := rt.Snapshot(snapshot.Options{}); len(s.Fibers) > 0 || len(s.Nurseries) > 0 || len(s.Objects) > 0 {
		t.Errorf("after the end: %+v", s)
	}
}

// TestSnapshotForgetsTimesOfEarlierFibers: a fiber runs on a coroutine that another one has used, and has left a timer
// there. Its wait has the same number, and no limit.
func TestSnapshotForgetsTimesOfEarlierFibers(t *testing.T) {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	never := coir.NewEvent()
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		for i := range 4 { // of which some get the coroutine of one before
			in, cancel := coir.WithCancel(ctx)
			sleeper := n.Go("sleeper", func(context.Context) error {
				_ = coir.Sleep(in, time.Hour)
				return nil
			})
			_ = coir.Yield(ctx)
			cancel()
			_ = sleeper.Wait(coir.Shield(ctx))
			n.Go("waiter", never.Wait, coir.WithIndex(i))
			_ = coir.Yield(ctx)
		}
		return nil
	})
	defer func() { _ = end() }()
	s := snapshotWhen(t, rt, "they wait", waiting("waiter[0]", "waiter[1]", "waiter[2]", "waiter[3]", "main"))
	for _, f := range s.Fibers {
		if !f.Until.IsZero() {
			t.Errorf("%s waits until %v", f.Name, f.Until)
		}
	}
}

func TestSnapshotOfNurseries(t *testing.T) {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	stuck := make(chan bool)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var s *snapshot.Snapshot
	_ = rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("stuck", func(context.Context) error { stuck <- true; <-stuck; return nil }, coir.WithGoroutine())
		<-stuck
		n.Go("behind", coir.WaitCancel)
		n.Cancel(errors.New("no more orders"))
		s = rt.Snapshot(snapshot.Options{})
		close(stuck)
		return nil
	})
	if len(s.Nurseries) != 1 {
		t.Fatalf("s.Nurseries = %+v, want one", s.Nurseries)
	}
	at, _ := ctx.Deadline()
	if n := s.Nurseries[0]; !n.Ended || n.Cause != "no more orders" || n.Children != 2 || !n.Deadline.Equal(at) {
		t.Errorf("s.Nurseries[0] = %+v, want Ended, Cause \"no more orders\", Children 2, Deadline %v", n, at)
	}
	if f := fiberIn(s, "behind"); f == nil || f.State != snapshot.StatePending {
		t.Errorf("fiberIn(s, \"behind\") = %+v, want State snapshot.StatePending", f)
	}
}

// A panic as the cause of a cancellation is one line, without its stack.
func TestSnapshotOfANurseryThatPanicked(t *testing.T) {
	rt := coir.NewRuntime()
	var s *snapshot.Snapshot
	defer func() {
		if _, ok := recover().(*coir.PanicError); !ok || s == nil {
			t.Fatal("Run did not panic")
		}
		if n := s.Nurseries[0]; !n.Ended || n.Cause != "coir: panic in fiber bad: boom" {
			t.Errorf("s.Nurseries[0] = %+v, want Ended, Cause \"coir: panic in fiber bad: boom\"", n)
		}
	}()
	_ = rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("bad", func(context.Context) error { panic("boom") })
		_ = coir.WaitCancel(ctx)
		s = rt.Snapshot(snapshot.Options{})
		return nil
	})
}

func TestSnapshotOfALimit(t *testing.T) {
	rt := coir.NewRuntime()
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(1)
		n.Go("first", func(ctx context.Context) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("inner", coir.WaitCancel)
				return nil
			})
		})
		n.Go("second", coir.WaitCancel)
		return nil
	})
	s := snapshotWhen(t, rt, "the second has the place", waiting("first", "second", "inner"))
	n := s.Nurseries[slices.IndexFunc(s.Nurseries, func(n snapshot.Nursery) bool { return n.Parent == 0 })]
	if n.Limit != 1 || n.Children != 2 {
		t.Errorf("the nursery is %+v, want Limit 1, Children 2", n)
	}
	_ = end()
}

// Fibers that wait for their first place are in the snapshot, each once, also while the line moves.
func TestSnapshotOfALine(t *testing.T) {
	rt := coir.NewRuntime()
	const fibers, places = 1000, 3
	gate := coir.NewChan[int](0)
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(places)
		for i := range fibers {
			n.Go("child", func(ctx context.Context) error { _, err := gate.Recv(ctx); return err }, coir.WithIndex(i))
		}
		return nil
	})
	defer func() { _ = end() }()
	s := snapshotWhen(t, rt, "all are there", func(s *snapshot.Snapshot) bool {
		return waiting("main", "child[0]", "child[1]", "child[2]")(s) && len(s.Fibers) == fibers+1
	})
	f := fiberIn(s, "child[999]")
	want := snapshot.Wait{Kind: snapshot.WaitPlace, Text: "for a place in its nursery", Nursery: f.Nursery}
	if f.State != snapshot.StateWaiting || !slices.Equal(f.Wait, []snapshot.Wait{want}) {
		t.Errorf("the fiber is %+v, want State snapshot.StateWaiting, Wait %+v", f, want)
	}
	i := slices.IndexFunc(s.Nurseries, func(n snapshot.Nursery) bool { return n.ID == f.Nursery })
	if n := s.Nurseries[i]; n.Children != places || s.Process.Live != places+1 {
		t.Errorf("%d children, %d fibers", n.Children, s.Process.Live)
	}
	for i := range fibers {
		if err := gate.Send(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if i%10 > 0 {
			continue
		}
		seen := map[uint64]bool{}
		for _, f := range rt.Snapshot(snapshot.Options{}).Fibers {
			if seen[f.ID] {
				t.Fatalf("%s is there twice", f.Name)
			}
			seen[f.ID] = true
		}
		if least := fibers - i - places - 2; len(seen) < least {
			t.Fatalf("%d fibers, of at least %d", len(seen), least)
		}
	}
}

// A fiber that waits for the next value of a loop is at the line of the loop, and one that waits in its body at that
// line, whatever the compiler has inlined.
func TestSnapshotOfLoops(t *testing.T) {
	_, file, line, _ := runtime.Caller(0)
	byChan := func(ctx context.Context, c *coir.Chan[int]) error {
		for _, err := range c.All(ctx) { // line 2
			if err != nil {
				return err
			}
		}
		return nil
	}
	byReader := func(ctx context.Context, r *coir.Reader[int]) error {
		for _, err := range r.All(ctx) { // line 10
			if err != nil {
				return err
			}
		}
		return nil
	}
	bySubscription := func(ctx context.Context, s *pubsub.Subscription[int]) error {
		for _, err := range s.All(ctx) { // line 18
			if err != nil {
				return err
			}
		}
		return nil
	}
	byOrdered := func(ctx context.Context, o *coir.Ordered[int]) error {
		for _, err := range o.All(ctx) { // line 26
			if err != nil {
				return err
			}
		}
		return nil
	}
	inBody := func(ctx context.Context, c *coir.Chan[int]) error {
		for v, err := range c.All(ctx) {
			if err == nil {
				err = coir.Sleep(ctx, time.Duration(v)*time.Hour) // line 36
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	inner := func(ctx context.Context, c, d *coir.Chan[int]) error {
		for _, err := range c.All(ctx) {
			if err != nil {
				return err
			}
			for _, err := range d.All(ctx) { // line 49
				if err != nil {
					return err
				}
			}
		}
		return nil
	}

	rt := coir.NewRuntime()
	never, full := coir.NewChan[int](0), coir.NewChan[int](2)
	_, reader := coir.Pipe[int](0)
	_, _ = full.TrySend(1), full.TrySend(1)
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("chan", func(ctx context.Context) error { return byChan(ctx, never) })
		n.Go("reader", func(ctx context.Context) error { return byReader(ctx, reader) })
		n.Go("body", func(ctx context.Context) error { return inBody(ctx, full) })
		n.Go("inner", func(ctx context.Context) error { return inner(ctx, full, never) })
		n.Go("subscription", func(ctx context.Context) error {
			return bySubscription(ctx, pubsub.NewBroadcast[int]().Subscribe(1))
		})
		n.Go("ordered", func(ctx context.Context) error { return byOrdered(ctx, coir.NewOrdered[int](1)) })
		return nil
	})
	want := map[string]int{"chan": 2, "reader": 10, "subscription": 18, "ordered": 26, "body": 36, "inner": 49}
	snapshotWhen(t, rt, "they wait", waiting(slices.Collect(maps.Keys(want))...))
	s := rt.Snapshot(snapshot.Options{Stacks: true})
	_ = end()
	for name, below := range want {
		if f := fiberIn(s, name); f.At != fmt.Sprint(file, ":", line+below) {
			t.Errorf("%s is at %s, not at line %d\n%s", name, f.At, line+below, f.Stack)
		}
	}
}

func TestSnapshotStacks(t *testing.T) {
	rt := coir.NewRuntime()
	ch := coir.NewChan[int](0)
	mu := locks.NewMutex()
	_ = mu.Lock(t.Context())
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("receiver", func(ctx context.Context) error { _, err := ch.Recv(ctx); return err })
		n.Go("locker", mu.Lock)
		n.Go("locks", func(ctx context.Context) error { return mu.Lock(ctx) })
		return nil
	})
	snapshotWhen(t, rt, "they wait", waiting("receiver", "locker", "locks"))
	s := rt.Snapshot(snapshot.Options{Stacks: true})
	for _, name := range []string{"receiver", "locks"} {
		f := fiberIn(s, name)
		if at := filepath.Base(f.At); !strings.HasPrefix(at, "snapshot_test.go:") || !strings.Contains(f.Stack, "goroutine ") {
			t.Errorf("%s is at %q\n%s", name, f.At, f.Stack)
		}
	}
	if f := fiberIn(s, "locker"); f.At != "" { // it has no line of the program
		t.Errorf("f.At = %q, want none", f.At)
	}
	if f := fiberIn(rt.Snapshot(snapshot.Options{}), "receiver"); f.Stack != "" || f.At != "" {
		t.Errorf("fiberIn(rt.Snapshot(snapshot.Options{}), \"receiver\") = %+v, want Stack \"\", At \"\"", f)
	}
	_ = end()
}

func TestSnapshotBounds(t *testing.T) {
	rt := coir.NewRuntime()
	const fibers = 1000
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		for range fibers {
			n.Go("waits", coir.WaitCancel)
		}
		return nil
	})
	snapshotWhen(t, rt, "all wait", func(s *snapshot.Snapshot) bool {
		return len(s.Fibers) == fibers+1 && !slices.ContainsFunc(s.Fibers, func(f snapshot.Fiber) bool {
			return f.State != snapshot.StateWaiting
		})
	})
	if s := rt.Snapshot(snapshot.Options{Fibers: 10}); len(s.Fibers) != 10 || s.Omitted != fibers+1-10 {
		t.Errorf("%d fibers, and %d omitted", len(s.Fibers), s.Omitted)
	}
	seen := map[uint64]bool{}
	s := rt.Snapshot(snapshot.Options{Each: func(f *snapshot.Fiber) bool {
		if seen[f.ID] {
			t.Errorf("%s #%d twice", f.Name, f.ID)
		}
		seen[f.ID] = true
		return true
	}})
	if len(seen) != fibers+1 || len(s.Fibers) != 0 || s.Omitted != 0 {
		t.Errorf("%d fibers, and %d kept", len(seen), len(s.Fibers))
	}
	n := 0
	rt.Snapshot(snapshot.Options{Each: func(*snapshot.Fiber) bool { n++; return n < 3 }})
	if n != 3 {
		t.Errorf("%d calls after false", n)
	}
	_ = end()
}

// A fiber that coir's own packages start is marked.
func TestSnapshotMarksFibersOfCoir(t *testing.T) {
	rt := coir.NewRuntime()
	in := coir.NewChan[int](0)
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		w, r := coir.Pipe[int](0)
		defer r.Close()
		return stream.To(ctx, stream.From(in), w)
	})
	s := snapshotWhen(t, rt, "two fibers wait", func(s *snapshot.Snapshot) bool {
		return len(s.Fibers) >= 2 && !slices.ContainsFunc(s.Fibers, func(f snapshot.Fiber) bool {
			return f.State != snapshot.StateWaiting
		})
	})
	for _, f := range s.Fibers {
		if f.System == f.Main {
			t.Errorf("%s, spawned at %s: system %v", f.Name, f.Spawned, f.System)
		}
	}
	_ = end()
}

// While a program runs as fast as it can, snapshots show each fiber in a wait that it has: they mix up nothing.
func TestSnapshotsUnderLoad(t *testing.T) {
	const groups = 4
	snapshots := 3000
	if testing.Short() {
		snapshots = 300
	}
	rt := coir.NewRuntime()
	var stop atomic.Bool
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		for g := range groups {
			name := func(what string) coir.NameOption { return coir.WithName(fmt.Sprintf("%s-%d", what, g)) }
			ping, pong := coir.NewChan[int](0, name("ping")), coir.NewChan[int](1, name("pong"))
			mu, ev := locks.NewMutex(name("mu")), coir.NewEvent(name("ev"))
			of := func(i int) string { return fmt.Sprintf("fiber-%d-%d", g, i) }
			n.Go(of(0), func(ctx context.Context) error {
				for i := 0; !stop.Load(); i++ {
					if err := ping.Send(ctx, i); err != nil {
						return err
					}
					if _, err := coir.Select(ctx, pong.RecvCase(nil), ev.DoneCase()); err != nil {
						return err
					}
				}
				ping.Close()
				return nil
			})
			n.Go(of(1), func(ctx context.Context) error {
				for i, err := range ping.All(ctx) {
					if err != nil {
						return err
					}
					if err := mu.Lock(ctx); err != nil {
						return err
					}
					_ = coir.Yield(ctx)
					mu.Unlock()
					for sent := false; !sent; {
						k, err := coir.Select(ctx, pong.SendCase(i), ev.DoneCase(), mu.LockCase(), coir.After(time.Hour))
						if err != nil {
							return err
						}
						if sent = k == 0; !sent {
							mu.Unlock()
						}
					}
				}
				return nil
			})
			n.Go(of(2), func(ctx context.Context) error {
				for !stop.Load() {
					err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
						n.Go(of(3), func(ctx context.Context) error {
							if err := mu.Lock(ctx); err != nil {
								return err
							}
							defer mu.Unlock()
							return coir.Yield(ctx)
						})
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	for range snapshots {
		s := rt.Snapshot(snapshot.Options{})
		ids := map[uint64]bool{}
		for _, f := range s.Fibers {
			if ids[f.ID] {
				t.Fatalf("%s #%d is there twice", f.Name, f.ID)
			}
			ids[f.ID] = true
			if (f.State == snapshot.StateWaiting) != (len(f.Wait) > 0) {
				t.Fatalf("%s is %s, and waits for %v", f.Name, f.State, f.Wait)
			}
			var group int
			if _, err := fmt.Sscanf(f.Name, "fiber-%d-", &group); err != nil {
				continue
			}
			for _, w := range f.Wait {
				i := slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.ID == w.Object })
				if w.Object == 0 {
					continue
				}
				if i < 0 || !strings.HasSuffix(s.Objects[i].Name, fmt.Sprintf("-%d", group)) {
					t.Fatalf("%s waits %s", f.Name, w.Text)
				}
			}
		}
	}
	stop.Store(true)
	_ = end()
}

// What a fiber has waited for is not kept by it.
func TestSnapshotsKeepNothing(t *testing.T) {
	rt := coir.NewRuntime()
	var gone sync.WaitGroup
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		wakes := func(wait func(ctx context.Context, ch *coir.Chan[int], mu *locks.Mutex) error) {
			ch, mu := coir.NewChan[int](0), locks.NewMutex()
			gone.Add(2)
			runtime.AddCleanup(ch, func(int) { gone.Done() }, 0)
			runtime.AddCleanup(mu, func(int) { gone.Done() }, 0)
			_ = mu.Lock(ctx)
			n.Go("wakes", func(ctx context.Context) error {
				mu.Unlock()
				return ch.Send(ctx, 1)
			})
			if err := wait(ctx, ch, mu); err != nil {
				t.Error(err)
			}
		}
		wakes(func(ctx context.Context, ch *coir.Chan[int], mu *locks.Mutex) error {
			if err := mu.Lock(ctx); err != nil {
				return err
			}
			_, err := ch.Recv(ctx)
			return err
		})
		wakes(func(ctx context.Context, ch *coir.Chan[int], mu *locks.Mutex) error {
			i, err := coir.Select(ctx, ch.RecvCase(nil), mu.LockCase())
			if err == nil && i == 1 { // otherwise both were ready, and the fiber that sends has ended
				_, err = coir.Select(ctx, ch.RecvCase(nil), ch.SendCase(1))
			}
			return err
		})
		done := make(chan bool)
		go func() { gone.Wait(); close(done) }()
		for begin := time.Now(); ; {
			runtime.GC()
			select {
			case <-done:
				return nil
			case <-time.After(time.Millisecond):
			}
			if time.Since(begin) > 30*time.Second {
				return errors.New("something keeps them")
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// A select of many cases shows some of them, and says so.
func TestSnapshotOfALargeSelect(t *testing.T) {
	rt := coir.NewRuntime()
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		cases := make([]coir.Case, 100)
		for i := range cases {
			cases[i] = coir.NewChan[int](0).RecvCase(nil)
		}
		_, err := coir.Select(ctx, cases...)
		return err
	})
	s := snapshotWhen(t, rt, "it waits", waiting("main"))
	if f := fiberIn(s, "main"); len(f.Wait) != 64 || f.More != 36 {
		t.Errorf("%d waits, and %d more", len(f.Wait), f.More)
	}
	_ = end()
}

// A snapshot of locks whose zero value is used, and of a semaphore, is no race with the code that makes them.
func TestSnapshotOfNewObjects(t *testing.T) {
	rt := coir.NewRuntime()
	for range 20 {
		end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
			var mu locks.Mutex
			sem := locks.NewSemaphore(1)
			_, _ = mu.Lock(ctx), sem.Acquire(ctx, 1)
			n.Go("locks", mu.Lock)
			n.Go("acquires", func(ctx context.Context) error { return sem.Acquire(ctx, 1) })
			return nil
		})
		snapshotWhen(t, rt, "they wait", waiting("locks", "acquires"))
		_ = end()
	}
}

// Ages are measured on the runtime's clock: in another bubble of testing/synctest they are not known.
func TestSnapshotFromAnotherBubble(t *testing.T) {
	rt := coir.NewRuntime()
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error { return coir.Sleep(ctx, time.Hour) })
	snapshotWhen(t, rt, "it waits", waiting("main"))
	synctest.Test(t, func(t *testing.T) {
		if f := fiberIn(rt.Snapshot(snapshot.Options{}), "main"); !f.Since.IsZero() || f.Until.IsZero() {
			t.Errorf("since %v, until %v", f.Since, f.Until)
		}
	})
	_ = end()
}

// The deadline of a scope is a time of the runtime's clock.
// The stack says what a call that blocks waits for.
func TestSnapshotOfABlockingCall(t *testing.T) {
	rt := coir.NewRuntime()
	answer := make(chan int)
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("upload", func(ctx context.Context) error {
			_, err := coir.Blocking(ctx, func() (int, error) { return <-answer, nil })
			return err
		})
		return nil
	})
	snapshotWhen(t, rt, "it blocks", func(*snapshot.Snapshot) bool {
		f := fiberIn(rt.Snapshot(snapshot.Options{Stacks: true}), "upload")
		if f == nil || f.Blocked() != "chan receive" {
			return false
		}
		if at := filepath.Base(f.At); !strings.HasPrefix(at, "snapshot_test.go:") {
			t.Errorf("it is at %q\n%s", f.At, f.Stack)
		}
		return true
	})
	close(answer)
	_ = end()
}

func TestSnapshotOnAVirtualClock(t *testing.T) {
	clock := coir.NewClock()
	rt := coir.NewRuntime(coir.WithClock(clock))
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		ctx, cancel := coir.WithTimeout(ctx, time.Hour)
		defer cancel()
		return coir.WaitCancel(ctx)
	})
	snapshotWhen(t, rt, "it waits", waiting("main"))
	clock.Advance(40 * time.Minute)
	s := rt.Snapshot(snapshot.Options{})
	if left := fiberIn(s, "main").Until.Sub(s.Taken); left != 20*time.Minute {
		t.Errorf("%v left", left)
	}
	_ = end()
}
