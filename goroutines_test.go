package coir_test

// Goroutines that are not fibers, in snapshots: what they wait for, and what they take part in.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/snapshot"
)

// labelled returns the goroutine of a snapshot that has the label test=name, or nil.
func labelled(s *snapshot.Snapshot, name string) *snapshot.Fiber {
	i := slices.IndexFunc(s.Fibers, func(f snapshot.Fiber) bool {
		return f.State == snapshot.StateGoroutine && strings.HasPrefix(f.Name, "test="+name+"[")
	})
	if i < 0 {
		return nil
	}
	return &s.Fibers[i]
}

// inGoroutine runs fn in a goroutine with the label test=name. The result is closed when fn has returned.
func inGoroutine(name string, fn func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		pprof.Do(context.Background(), pprof.Labels("test", name), func(context.Context) { fn() })
	}()
	return done
}

// waitingGoroutines takes snapshots until all goroutines with these labels wait.
func waitingGoroutines(t *testing.T, rt *coir.Runtime, names ...string) *snapshot.Snapshot {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; runtime.Gosched() {
		s := rt.Snapshot(snapshot.Options{})
		if !slices.ContainsFunc(names, func(name string) bool { return labelled(s, name) == nil }) {
			return s
		}
	}
	t.Fatalf("they do not all wait: %v", names)
	return nil
}

// Spec: OB-01 (every park has a readable reason)
func TestSnapshotSaysWhatGoroutinesWaitFor(t *testing.T) {
	rt := coir.NewRuntime()
	full := coir.NewChan[int](1, coir.WithName("full"))
	empty := coir.NewChan[int](0, coir.WithName("empty"))
	event := coir.NewEvent(coir.WithName("started"))
	cond := coir.NewCond(coir.WithName("news"))
	mutex := locks.NewMutex(coir.WithName("accounts"))
	limiter := pace.NewLimiter(time.Hour, 1, coir.WithName("rate"))
	promise := coir.NewPromise[int](coir.WithName("answer"))
	tickets := desk.New[int](desk.WithName("payments"))
	selector := coir.NewSelector()
	hold := make(chan *coir.Fiber, 1)
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		if err := mutex.Lock(ctx); err != nil {
			return err
		}
		hold <- n.Go("child", coir.WaitCancel)
		return nil
	})
	child := <-hold
	for _, err := range []error{full.Send(t.Context(), 1), limiter.Wait(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	waits := map[string]struct {
		do   func(ctx context.Context) error
		want string // kind, text
	}{
		"send":     {func(ctx context.Context) error { return full.Send(ctx, 2) }, "send to send to full (full, 1 of 1)"},
		"recv":     {func(ctx context.Context) error { _, err := empty.Recv(ctx); return err }, "recv to receive from empty"},
		"event":    {event.Wait, "use for the event started"},
		"cond":     {func(ctx context.Context) error { cond.Lock(); defer cond.Unlock(); return cond.Wait(ctx) }, "use for a signal of news"},
		"mutex":    {mutex.Lock, "use to lock accounts"},
		"limiter":  {limiter.Wait, "use for 1 token of rate"},
		"promise":  {func(ctx context.Context) error { _, err := promise.Wait(ctx); return err }, "use for the promise answer"},
		"fiber":    {child.Wait, fmt.Sprintf("end for child #%d to end", child.ID())},
		"sleep":    {func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }, "sleep for time to pass"},
		"selector": {func(ctx context.Context) error { _, err := selector.Wait(ctx); return err }, "use for one of the cases of a selector"},
		"ticket": {func(ctx context.Context) error {
			ticket, err := tickets.Open(ctx, coir.WithName("order 7"))
			if err == nil {
				_, err = ticket.Wait(ctx)
			}
			return err
		}, "use for the answer of ticket order 7"},
		"select": {func(ctx context.Context) error {
			var v int
			_, err := coir.Select(ctx, empty.RecvCase(&v), full.SendCase(3), mutex.LockCase())
			return err
		}, "recv to receive from empty, send to send to full (full, 1 of 1), use to lock accounts"},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ends []chan struct{}
	for name, w := range waits {
		ends = append(ends, inGoroutine(name, func() {
			if err := w.do(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
		}))
	}
	s := waitingGoroutines(t, rt, slices.Collect(maps.Keys(waits))...)
	for name, w := range waits {
		f := labelled(s, name)
		var texts []string
		for _, x := range f.Wait {
			texts = append(texts, string(x.Kind)+" "+x.Text)
		}
		if got := strings.Join(texts, ", "); got != w.want {
			t.Errorf("%s: waits %q, want %q", name, got, w.want)
		}
		if f.ID < snapshot.FirstGoroutine || f.Nursery != 0 || f.Waits == 0 || !f.Foreign || f.Stack != "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	o := objectIn(s, "full")
	if o.Senders != 2 || o.Oldest.IsZero() && !raceEnabled {
		t.Errorf("full: %+v", o)
	}
	with := rt.Snapshot(snapshot.Options{Stacks: true})
	if f := labelled(with, "send"); !strings.Contains(f.At, "goroutines_test.go:") || !strings.Contains(f.Stack, "goroutine ") {
		t.Errorf("with stacks: at %q, stack %q", f.At, f.Stack)
	}
	if n := len(rt.Snapshot(snapshot.Options{Fibers: 3}).Fibers); n != 3 {
		t.Errorf("%d fibers and goroutines in a snapshot of at most 3", n)
	}
	if s := coir.NewRuntime().Snapshot(snapshot.Options{}); labelled(s, "send") == nil {
		t.Error("a goroutine without a runtime is not in the snapshot of another runtime")
	}
	cancel()
	for _, end := range ends {
		<-end
	}
	if s = rt.Snapshot(snapshot.Options{}); labelled(s, "send") != nil {
		t.Error("a goroutine is shown after its wait")
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// Contexts and time limits: what may end the wait of a goroutine. A goroutine that waits in a context of a runtime is
// only in the snapshots of that runtime.
func TestSnapshotSaysWhatMayEndTheWaitOfAGoroutine(t *testing.T) {
	rt, other := coir.NewRuntime(), coir.NewRuntime()
	c := coir.NewChan[int](0, coir.WithName("c"))
	ctxs := make(chan context.Context, 1)
	run := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		ctxs <- ctx
		return coir.WaitCancel(ctx)
	})
	ctx := <-ctxs
	timed, stop := coir.WithTimeout(ctx, time.Hour)
	defer stop()
	foreign, stopForeign := context.WithCancel(context.Background())
	derived, stopDerived := context.WithCancel(ctx)
	recv := func(ctx context.Context) func() {
		return func() { _, _ = c.Recv(ctx) }
	}
	ends := []chan struct{}{
		inGoroutine("background", recv(context.Background())), inGoroutine("scope", recv(ctx)),
		inGoroutine("timed", recv(timed)), inGoroutine("foreign", recv(foreign)), inGoroutine("derived", recv(derived)),
		inGoroutine("timeout", func() { _, _ = c.RecvTimeout(context.Background(), 2*time.Hour) }),
	}
	s := waitingGoroutines(t, rt, "background", "scope", "timed", "foreign", "derived", "timeout")
	for name, want := range map[string]struct {
		foreign bool
		until   time.Duration // about; 0: none
		others  bool          // it is in the snapshots of other runtimes, too
	}{
		"background": {false, 0, true}, "scope": {false, 0, false}, "timed": {false, time.Hour, false},
		"foreign": {true, 0, true}, "derived": {true, 0, false}, "timeout": {false, 2 * time.Hour, true},
	} {
		f := labelled(s, name)
		left := f.Until.Sub(s.Taken)
		if f.Foreign != want.foreign || f.Until.IsZero() != (want.until == 0) ||
			want.until != 0 && (left > want.until+time.Minute || left < want.until-time.Minute) {
			t.Errorf("%s: foreign %v, until %v", name, f.Foreign, f.Until)
		}
		if f.Since.IsZero() || f.Since.After(s.Taken.Add(s.Took+time.Second)) {
			t.Errorf("%s: since %v", name, f.Since)
		}
		if others := labelled(other.Snapshot(snapshot.Options{}), name) != nil; others != want.others {
			t.Errorf("%s: in the snapshot of another runtime: %v", name, others)
		}
	}
	c.Close()
	stopForeign()
	stopDerived()
	for _, end := range ends {
		<-end
	}
	if err := run(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// knowsGoroutines says whether a lock has room for the number of the goroutine that holds it.
const knowsGoroutines = bits.UintSize == 64

// A fiber and a goroutine that lock in opposite orders are in a deadlock for certain if no context ends it.
func TestDeadlockOfAGoroutineAndAFiberIsExplained(t *testing.T) {
	if !knowsGoroutines {
		t.Skip("a lock does not know the goroutine that holds it")
	}
	for _, c := range []struct {
		name    string
		foreign bool
	}{{"background", false}, {"foreign", true}} {
		t.Run(c.name, func(t *testing.T) {
			rt := coir.NewRuntime()
			a, b := locks.NewMutex(coir.WithName("a")), locks.NewMutex(coir.WithName("b"))
			has := make(chan struct{})
			in, cancel := context.Background(), context.CancelFunc(func() {})
			if c.foreign {
				in, cancel = context.WithCancel(in)
			}
			handler := inGoroutine("handler", func() {
				if err := a.Lock(in); err != nil {
					t.Error(err)
				}
				has <- struct{}{}
				<-has
				if b.Lock(in) == nil {
					b.Unlock()
				}
				a.Unlock()
			})
			<-has
			end := inBackground(rt, func(ctx context.Context, _ *coir.Nursery) error {
				if err := b.Lock(ctx); err != nil {
					return err
				}
				defer b.Unlock()
				has <- struct{}{}
				return a.Lock(ctx)
			})
			waitingGoroutines(t, rt, "handler")
			untilMainWaits(t, rt)
			earlier := rt.Snapshot(snapshot.Options{})
			later := rt.Snapshot(snapshot.Options{})
			for _, s := range []*snapshot.Snapshot{earlier, later} { // as if it had lasted for a minute
				for i := range s.Fibers {
					s.Fibers[i].Since = s.Taken.Add(-time.Minute)
				}
			}
			told := snapshot.Explain(earlier, later)
			if len(told) != 1 || told[0].Kind != snapshot.ProblemDeadlock || told[0].Certain == c.foreign ||
				!strings.Contains(told[0].Text, "to lock a, held by test=handler[") || len(told[0].Fibers) != 2 {
				t.Errorf("%+v\n%+v", told, later)
			}
			if err := end(); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			<-handler
			cancel()
		})
	}
}

// untilMainWaits takes snapshots until the fiber main waits for a lock.
func untilMainWaits(t *testing.T, rt *coir.Runtime) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; runtime.Gosched() {
		f := fiberIn(rt.Snapshot(snapshot.Options{}), "main")
		if f != nil && len(f.Wait) > 0 && f.Wait[0].Kind == snapshot.WaitUse {
			return
		}
	}
	t.Fatalf("%s does not wait", "main")
}

// A child with its own goroutine is shown with what it waits for, and as the holder of a lock.
func TestSnapshotSaysWhatAChildOnAGoroutineWaitsFor(t *testing.T) {
	rt := coir.NewRuntime()
	empty, mutex := coir.NewChan[int](0, coir.WithName("empty")), locks.NewMutex(coir.WithName("mutex"))
	started := coir.NewEvent()
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("native", func(ctx context.Context) error {
			if err := mutex.Lock(ctx); err != nil {
				return err
			}
			defer mutex.Unlock()
			started.Set()
			_, err := empty.Recv(ctx)
			return err
		}, coir.WithGoroutine())
		if err := started.Wait(ctx); err != nil {
			return err
		}
		return mutex.Lock(ctx)
	})
	untilMainWaits(t, rt)
	for begin := time.Now(); ; runtime.Gosched() {
		s := rt.Snapshot(snapshot.Options{})
		f := fiberIn(s, "native")
		if f.State == snapshot.StateWaiting {
			if len(f.Wait) != 1 || f.Wait[0].Text != "to receive from empty" || f.ID >= snapshot.FirstGoroutine || f.Nursery == 0 {
				t.Errorf("the child waits to receive from empty, and is shown as %+v", f)
			}
			if o := objectIn(s, "mutex"); knowsGoroutines && !slices.Equal(o.Holders, []uint64{f.ID}) {
				t.Errorf("the child holds the mutex, which is shown as %+v", o)
			}
			break
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("the child does not wait: %+v", f)
		}
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// A goroutine is known as the holder of a lock, in whatever context it has locked.
func TestGoroutineHolds(t *testing.T) {
	if !knowsGoroutines {
		t.Skip("this build does not record goroutines")
	}
	contexts := map[string]func() (context.Context, context.CancelFunc){
		"background":        func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
		"coir.WithCancel":   func() (context.Context, context.CancelFunc) { return coir.WithCancel(context.Background()) },
		"coir.WithTimeout":  func() (context.Context, context.CancelFunc) { return coir.WithTimeout(t.Context(), time.Hour) },
		"coir.Shield":       func() (context.Context, context.CancelFunc) { return coir.Shield(context.Background()), func() {} },
		"native WithCancel": func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) },
	}
	for name, derive := range contexts {
		t.Run(name, func(t *testing.T) {
			rt := coir.NewRuntime()
			mutex := locks.NewMutex(coir.WithName("mutex"))
			locked, unlock := make(chan struct{}), make(chan struct{})
			go func() {
				ctx, cancel := derive()
				defer cancel()
				if err := mutex.Lock(ctx); err != nil {
					t.Error(err)
				}
				close(locked)
				<-unlock
				mutex.Unlock()
			}()
			<-locked
			end := inBackground(rt, func(ctx context.Context, _ *coir.Nursery) error { return mutex.Lock(ctx) })
			untilMainWaits(t, rt)
			o := objectIn(rt.Snapshot(snapshot.Options{}), "mutex")
			if len(o.Holders) != 1 || o.Holders[0] < snapshot.FirstGoroutine {
				t.Errorf("the holders of the mutex are %v, want the goroutine", o.Holders)
			}
			close(unlock)
			if err := end(); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// holdsLock locks a mutex, and keeps it until it may unlock it.
func holdsLock(mutex *locks.Mutex, locked chan<- struct{}, unlock <-chan struct{}) {
	if err := mutex.Lock(context.Background()); err != nil {
		panic(err)
	}
	close(locked)
	<-unlock
	mutex.Unlock()
}

// A goroutine that holds a lock, and waits for nothing of coir, is in a snapshot with stacks, and only there. A wait
// for the lock that has ended without it is counted.
func TestSnapshotHasTheStackOfAGoroutineThatHolds(t *testing.T) {
	if !knowsGoroutines {
		t.Skip("this build does not record goroutines")
	}
	rt := coir.NewRuntime()
	mutex := locks.NewMutex(coir.WithName("mutex"))
	locked, unlock := make(chan struct{}), make(chan struct{})
	go holdsLock(mutex, locked, unlock)
	<-locked
	short, cancel := coir.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := mutex.Lock(short); err == nil {
		t.Error("it is locked twice")
	}
	end := inBackground(rt, func(ctx context.Context, _ *coir.Nursery) error { return mutex.Lock(ctx) })
	untilMainWaits(t, rt)
	if s := rt.Snapshot(snapshot.Options{}); len(s.Outside) > 0 {
		t.Errorf("without stacks there are %+v", s.Outside)
	}
	var s *snapshot.Snapshot
	for begin := time.Now(); time.Since(begin) < time.Minute; runtime.Gosched() {
		s = rt.Snapshot(snapshot.Options{Stacks: true})
		if len(s.Outside) != 1 || s.Outside[0].Blocked() == "chan receive" {
			break
		}
	}
	o := objectIn(s, "mutex")
	if len(s.Outside) != 1 || len(o.Holders) != 1 || o.Holders[0] != s.Outside[0].ID {
		t.Fatalf("%v hold it, and the snapshot has %+v", o.Holders, s.Outside)
	}
	if o.GaveUp != 1 {
		t.Errorf("%d waits gave up", o.GaveUp)
	}
	f := &s.Outside[0]
	if !strings.Contains(f.Stack, "holdsLock(") || !strings.Contains(f.At, "goroutines_test.go:") ||
		!strings.Contains(f.Spawned, "goroutines_test.go:") || f.State != snapshot.StateOutside {
		t.Errorf("it is %+v", f)
	}
	close(unlock)
	if err := end(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A pooled guest keeps nothing alive, and the list of guests does not keep the guests.
func TestGoroutineThatHasWaitedKeepsNothing(t *testing.T) {
	collected := make(chan struct{})
	func() {
		c := coir.NewChan[*int](0)
		runtime.AddCleanup(c, func(done chan struct{}) { close(done) }, collected)
		got := make(chan error)
		go func() {
			_, err := c.Recv(context.Background())
			got <- err
		}()
		if err := c.Send(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := <-got; err != nil {
			t.Error(err)
		}
	}()
	for begin := time.Now(); ; runtime.GC() {
		select {
		case <-collected:
			return
		default:
			if time.Since(begin) > time.Minute {
				t.Fatal("the channel is still in use")
			}
		}
	}
}

// Snapshots while goroutines begin and end waits all the time: what is shown of a wait belongs together.
func TestSnapshotsOfBusyGoroutines(t *testing.T) {
	rt := coir.NewRuntime()
	ping, pong := coir.NewChan[int](0, coir.WithName("ping")), coir.NewChan[int](0, coir.WithName("pong"))
	ctx, cancel := context.WithCancel(t.Context())
	var ends []chan struct{}
	for _, name := range []string{"ping", "pong"} {
		from, to := ping, pong
		if name == "pong" {
			from, to = pong, ping
		}
		for _, in := range []context.Context{ctx, context.Background()} {
			ends = append(ends, inGoroutine(name, func() {
				for {
					v, err := from.Recv(in)
					if err != nil || to.Send(in, v) != nil {
						return
					}
				}
			}))
		}
	}
	if err := ping.Send(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for range 300 {
		for _, f := range rt.Snapshot(snapshot.Options{}).Fibers {
			name, _, _ := strings.Cut(strings.TrimPrefix(f.Name, "test="), "[")
			if f.State != snapshot.StateGoroutine || name != "ping" && name != "pong" {
				continue
			}
			seen++
			ok := len(f.Wait) == 1
			if ok && f.Wait[0].Kind == snapshot.WaitRecv {
				ok = f.Wait[0].Text == "to receive from "+name
			} else if ok {
				ok = f.Wait[0].Kind == snapshot.WaitSend && !strings.HasSuffix(f.Wait[0].Text, name)
			}
			if !ok {
				t.Fatalf("a goroutine that passes values from %s on is shown as %+v", name, f)
			}
		}
	}
	if seen == 0 {
		t.Error("no goroutine was seen")
	}
	cancel()
	ping.Close()
	pong.Close()
	for _, end := range ends {
		<-end
	}
}
