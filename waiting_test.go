package coir_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// saying is an Observer that records what fibers are about to wait for, and which fiber ended each wait.
type saying struct {
	hooked
	mu    sync.Mutex
	waits map[string]string // by the name of the fiber: its last wait
	ended map[string]string // the name of the fiber that has ended it, or none
}

func (s *saying) FiberParked(f *coir.Fiber) {
	text := f.Waiting()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits[f.Name()] = text
}

func (s *saying) FiberReady(f, by *coir.Fiber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[f.Name()] = "none"
	if by != nil {
		s.ended[f.Name()] = by.Name()
	}
}

// Spec: OB-01 (every park has a readable reason)
func TestFiberSaysWhatItWaitsFor(t *testing.T) {
	full := coir.NewChan[int](1, coir.WithName("full"))
	empty := coir.NewChan[int](0, coir.WithName("empty"))
	event := coir.NewEvent(coir.WithName("started"))
	mutex := locks.NewMutex(coir.WithName("accounts"))
	if err := full.Send(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := mutex.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	many := func(cases int) func(context.Context) error {
		return func(ctx context.Context) error {
			cs := []coir.Case{full.SendCase(1), event.DoneCase(), mutex.LockCase(), coir.After(time.Hour)}
			for range cases {
				cs = append(cs, empty.RecvCase(nil))
			}
			_, err := coir.Select(ctx, cs...)
			return err
		}
	}
	const four = "to send to full, or for the event started, or to lock accounts, or for time to pass"
	waits := map[string]struct {
		do   func(ctx context.Context) error
		want string
	}{
		"send":   {func(ctx context.Context) error { return full.Send(ctx, 3) }, "to send to full"},
		"recv":   {func(ctx context.Context) error { _, err := empty.Recv(ctx); return err }, "to receive from empty"},
		"event":  {event.Wait, "for the event started"},
		"lock":   {mutex.Lock, "to lock accounts"},
		"sleep":  {func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }, "for time to pass"},
		"cancel": {coir.WaitCancel, "for a cancel"},
		"few": {func(ctx context.Context) error {
			_, err := coir.Select(ctx, empty.RecvCase(nil), full.SendCase(1))
			return err
		}, "to receive from empty, or to send to full"},
		"select": {many(0), four},
		"many":   {many(50), four + ", or 50 others"},
		"run": {func(ctx context.Context) error {
			return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("inner", coir.WaitCancel)
				return nil
			})
		}, "for its children to end"},
	}
	o := &saying{waits: map[string]string{}, ended: map[string]string{}}
	rt := newRuntime(t, coir.WithObserver(o))
	fibers := map[string]*coir.Fiber{}
	var named sync.WaitGroup
	named.Add(1)
	end := inBackground(rt, func(_ context.Context, n *coir.Nursery) error {
		defer named.Done()
		for name, w := range waits {
			fibers[name] = n.Go(name, w.do)
		}
		fibers["joins"] = n.Go("joins", fibers["cancel"].Wait)
		fibers["native"] = n.Go("native", coir.WaitCancel, coir.WithGoroutine())
		return nil
	})
	named.Wait()
	snapshotWhen(t, rt, "all fibers wait", waiting("joins", "main"))
	want := map[string]string{"joins": fmt.Sprintf("for cancel #%d to end", fibers["cancel"].ID()), "native": ""}
	for name, w := range waits {
		snapshotWhen(t, rt, "it waits", waiting(name))
		want[name] = w.want
	}
	for name, text := range want {
		if got := fibers[name].Waiting(); got != text {
			t.Errorf("%s waits %q, want %q", name, got, text)
		}
	}
	o.mu.Lock()
	told := maps.Clone(o.waits)
	o.mu.Unlock()
	for name, text := range want {
		if told[name] != text {
			t.Errorf("%s was about to wait %q, want %q", name, told[name], text)
		}
	}
	_ = end()
	for name, f := range fibers {
		if text := f.Waiting(); text != "" {
			t.Errorf("%s has ended, and waits %q", name, text)
		}
	}
}

// A fiber that runs waits for nothing, also if it was about to wait and did not have to.
func TestFiberThatRunsWaitsForNothing(t *testing.T) {
	rt := newRuntime(t, coir.WithWorkers(2))
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c := coir.NewChan[int](0)
		self := coir.Self(ctx)
		for i := range sized(200, 2000, 20000) {
			n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, i) })
			if _, err := c.Recv(ctx); err != nil {
				return err
			}
			if text := self.Waiting(); text != "" {
				t.Fatalf("the fiber runs, and waits %q", text)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Spec: OB-13 (an Observer sees every fiber event)
func TestObserverSeesWhoEndsAWait(t *testing.T) {
	o := &saying{waits: map[string]string{}, ended: map[string]string{}}
	rt := newRuntime(t, coir.WithObserver(o), coir.WithWorkers(1))
	outside := coir.NewChan[int](0, coir.WithName("outside"))
	done := make(chan error, 1)
	go func() {
		_, err := outside.Recv(context.Background())
		done <- err
	}()
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		values, back, lock := coir.NewChan[int](0), coir.NewChan[int](0), locks.NewMutex()
		if err := lock.Lock(ctx); err != nil {
			return err
		}
		parks := []*coir.Fiber{
			n.Go("receives", func(ctx context.Context) error { _, err := values.Recv(ctx); return err }),
			n.Go("sends", func(ctx context.Context) error { return back.Send(ctx, 1) }),
			n.Go("locks", func(ctx context.Context) error {
				defer lock.Unlock()
				return lock.Lock(ctx)
			}),
		}
		n.Go("sleeps", func(ctx context.Context) error { return coir.Sleep(ctx, 1) })
		var waits atomic.Pointer[coir.Fiber]
		ends := n.Go("ends", func(ctx context.Context) error {
			for f := waits.Load(); f == nil || f.State() != coir.StateWaiting; f = waits.Load() {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		waits.Store(n.Go("waits", ends.Wait))
		n.Go("meets", func(ctx context.Context) error { return outside.Send(ctx, 1) })
		n.Go("hands", func(ctx context.Context) error {
			for _, f := range parks {
				for f.State() != coir.StateWaiting {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
			}
			if err := values.Send(ctx, 1); err != nil {
				return err
			}
			_, err := back.Recv(ctx)
			lock.Unlock()
			return err
		})
		return nil
	})
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Error(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, by := range map[string]string{
		"receives": "hands", "sends": "hands", "locks": "hands", "sleeps": "none", "waits": "ends",
	} {
		if got := o.ended[name]; got != by && !(name == "sleeps" && got == "") { // its time may have passed before it parked
			t.Errorf("%s ended the wait of %s, want %s", got, name, by)
		}
	}
}
