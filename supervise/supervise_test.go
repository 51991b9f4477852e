package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/snapshot"
	"github.com/coir-go/coir/supervise"
)

// holds explores a program that must not fail in any schedule.
func holds(t *testing.T, p func(ctx context.Context, s *sim.Sim), opts ...sim.Option) {
	t.Helper()
	res := sim.Explore(p, append([]sim.Option{sim.WithSchedules(2500)}, opts...)...)
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if !res.Complete && res.Schedules < 2500 {
		t.Errorf("only %d schedules", res.Schedules)
	}
	if len(res.Never) > 0 {
		t.Errorf("never: %v", res.Never)
	}
}

// drain returns the events so far.
func drain(s *supervise.Supervisor) (all []supervise.Event) {
	for {
		e, err := s.Events().TryRecv()
		if err != nil {
			return all
		}
		all = append(all, e)
	}
}

// A panic of a child is a failure that has the stack. A Goexit is a failure too.
func TestPanicsAndGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := supervise.New([]supervise.Child{
			{Name: "bomb", Run: func(context.Context) error { explode(); return nil }, Restart: supervise.RestartTemporary},
			{Name: "nested", Run: func(ctx context.Context) error {
				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("inside", func(context.Context) error { explode(); return nil })
					return nil
				})
			}, Restart: supervise.RestartTemporary},
			{Name: "exit", Run: func(context.Context) error { runtime.Goexit(); return nil }, Restart: supervise.RestartTemporary},
		}, supervise.WithName("app"))
		if err := s.Run(t.Context()); err != nil {
			t.Errorf("Run: %v", err)
		}
		seen := map[string]bool{}
		for _, e := range drain(s) {
			if e.Kind != supervise.KindFailed {
				continue
			}
			var pe *coir.PanicError
			switch e.Child {
			case "bomb", "nested":
				if !errors.As(e.Err, &pe) || !strings.Contains(string(pe.Stack), "explode") {
					t.Errorf("%s: no panic with its stack: %v", e.Child, e.Err)
				}
				if text := e.String(); strings.Contains(text, "\n") {
					t.Errorf("the event has more than a line: %q", text)
				}
			case "exit":
				if !errors.Is(e.Err, coir.ErrGoexit) {
					t.Errorf("exit: %v", e.Err)
				}
			}
			seen[e.Child] = true
		}
		if len(seen) != 3 {
			t.Errorf("failed have %v", seen)
		}
	})
}

//go:noinline
func explode() { panic("boom") }

// The error of a supervisor that gives up has the child, the number of restarts and their period.
func TestGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		broken := errors.New("no connection")
		s := supervise.New([]supervise.Child{
			{Name: "db", Run: func(context.Context) error { return broken }},
			{Name: "web", Run: coir.WaitCancel},
		}, supervise.WithName("app"), supervise.WithIntensity(3, time.Minute),
			supervise.WithBackoff(time.Second, 3*time.Second))
		err := s.Run(t.Context())
		if want := "supervise: app gave up after 3 restarts within 1m0s: db failed: no connection"; err == nil || err.Error() != want {
			t.Errorf("Run: %v, want %s", err, want)
		}
		var gave *supervise.GaveUpError
		if !errors.As(err, &gave) || gave.Child != "db" || !errors.Is(err, broken) {
			t.Errorf("the error is a %T", err)
		}
		// The waits are 1, 2 and 3 seconds, each shortened by up to a half.
		if d := time.Since(began); d < 3*time.Second || d > 6*time.Second {
			t.Errorf("it took %v", d)
		}
		var waits []time.Duration
		for _, e := range drain(s) {
			if e.Kind == supervise.KindRestarting {
				waits = append(waits, e.After)
			}
		}
		for i, most := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
			if len(waits) != 3 || waits[i] < most/2 || waits[i] > most {
				t.Errorf("the waits are %v", waits)
				break
			}
		}
	})
}

// After a child has run for a long time, its waits begin with the first again.
func TestBackoffBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := supervise.New([]supervise.Child{{Name: "db", Restart: supervise.RestartTransient, Run: func(ctx context.Context) error {
			switch runs++; runs {
			case 4:
				_ = coir.Sleep(ctx, time.Hour)
			case 5:
				return nil
			}
			return errFail
		}}}, supervise.WithName("app"), supervise.WithBackoff(time.Second, 10*time.Second))
		if err := s.Run(t.Context()); err != nil {
			t.Error(err)
		}
		var waits []time.Duration
		for _, e := range drain(s) {
			if e.Kind == supervise.KindRestarting {
				waits = append(waits, e.After)
			}
		}
		if len(waits) != 4 || waits[2] < 2*time.Second || waits[3] > time.Second {
			t.Errorf("the waits are %v", waits)
		}
	})
}

// A cancellation stops the children one by one, the last started first, in any schedule.
func TestCancelStopsInReverse(t *testing.T) {
	holds(t, func(ctx context.Context, s *sim.Sim) {
		var ended []string // no lock: the next child is cancelled when the last has ended
		child := func(name string) supervise.Child {
			return supervise.Child{Name: name, Run: func(ctx context.Context) error {
				_ = coir.WaitCancel(ctx)
				_ = coir.Sleep(coir.Shield(ctx), time.Second) // the child's cleanup
				ended = append(ended, name)
				return ctx.Err()
			}}
		}
		failed := false
		b := child("b")
		run := b.Run
		b.Run = func(ctx context.Context) error {
			if !failed {
				failed = true
				return errFail
			}
			return run(ctx)
		}
		app := supervise.New([]supervise.Child{child("a"), b, child("c")}, supervise.WithName("app"))
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			sup := n.Go("app", app.Run)
			if err := coir.Sleep(ctx, time.Minute); err != nil {
				return err
			}
			n.Cancel(errors.New("enough"))
			if err := sup.Wait(coir.Shield(ctx)); !errors.Is(err, context.Canceled) {
				s.Errorf("Run returned %v", err)
			}
			return nil
		})
		if !slices.Equal(ended, []string{"b", "c", "a"}) {
			s.Errorf("ended in the order %v (%v)", ended, err)
		}
	})
}

// A failure of a child that is stopped at the end is not lost.
func TestFailureWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := supervise.New([]supervise.Child{{Name: "db", Run: func(ctx context.Context) error {
			_ = coir.WaitCancel(ctx)
			return errFail
		}}}, supervise.WithName("app"))
		ctx, cancel := coir.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Run(ctx); !errors.Is(err, errFail) || !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("Run: %v", err)
		}
		ended, stop := context.WithCancel(t.Context())
		stop()
		if err := s.Run(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("under a context that has ended: %v", err)
		}
		if n := len(drain(s)); n != 2 {
			t.Errorf("%d events, want started and failed", n)
		}
	})
}

// A supervisor that gives up counts as a failed child: the outer supervisor restarts it, and then gives up too.
func TestNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		inner := supervise.New([]supervise.Child{{Name: "db", Run: func(context.Context) error {
			runs++
			return errFail
		}}}, supervise.WithName("inner"), supervise.WithIntensity(1, time.Hour))
		outer := supervise.New([]supervise.Child{{Name: "inner", Run: inner.Run}}, supervise.WithName("outer"),
			supervise.WithIntensity(2, time.Hour))
		err := outer.Run(t.Context())
		var gave *supervise.GaveUpError
		if !errors.As(err, &gave) || gave.Supervisor != "outer" || !errors.Is(err, errFail) {
			t.Errorf("Run: %v", err)
		}
		if runs != 6 {
			t.Errorf("the child of the inner one ran %d times", runs)
		}
	})
}

// A slow reader of the events loses some, which are counted, and does not delay the supervisor.
func TestEventsNeverWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := supervise.New([]supervise.Child{{Name: "db", Restart: supervise.RestartTransient, Run: func(context.Context) error {
			if runs++; runs > 1000 {
				return nil
			}
			return errFail
		}}}, supervise.WithName("app"), supervise.WithIntensity(1000, time.Minute), supervise.WithBackoff(0, 0))
		if err := s.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if n := s.Events().Stats().Dropped; n != 3*1000+2-64 {
			t.Errorf("%d events were dropped", n)
		}
		if all := drain(s); len(all) != 64 || all[63].Kind != supervise.KindEnded {
			t.Errorf("%d events are left", len(all))
		}
	})
}

// A second Run at the same time returns an error.
func TestRunTwice(t *testing.T) {
	var s *supervise.Supervisor
	s = supervise.New([]supervise.Child{{Name: "again", Restart: supervise.RestartTemporary, Run: func(ctx context.Context) error {
		if err := s.Run(ctx); err == nil || !strings.Contains(err.Error(), "supervise: already running: app") {
			t.Errorf("a second Run: %v", err)
		}
		return nil
	}}}, supervise.WithName("app"))
	if err := s.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// A supervisor need not have a name.
func TestSupervisorWithoutAName(t *testing.T) {
	var s *supervise.Supervisor
	var twice error
	s = supervise.New([]supervise.Child{{Name: "db", Run: func(ctx context.Context) error {
		twice = s.Run(ctx)
		return errFail
	}}}, supervise.WithIntensity(0, time.Minute))
	err := s.Run(t.Context())
	for _, c := range []struct{ got, want string }{
		{s.Name(), ""},
		{supervise.New(nil).String(), "supervise.Supervisor(one for one, 0 children)"},
		{fmt.Sprint(twice), "supervise: already running"},
		{fmt.Sprint(err), "supervise: the supervisor gave up after 0 restarts within 1m0s: db failed: " + errFail.Error()},
		{drain(s)[0].String(), "db started"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// brokenError is an error whose text cannot be had.
type brokenError struct{}

func (brokenError) Error() string { panic("no text") }

// A snapshot shows how often children were restarted, and the last error of each.
func TestSnapshotShowsRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		fails := func(errs ...error) func(context.Context) error {
			return func(ctx context.Context) error {
				if len(errs) == 0 {
					return coir.WaitCancel(ctx)
				}
				err := errs[0]
				errs = errs[1:]
				return err
			}
		}
		app := supervise.New([]supervise.Child{
			{Name: "db", Run: fails(errFail, errors.New("no connection\nand a stack"))},
			{Name: "ends", Run: fails(nil)},
			{Name: "broken", Run: fails(brokenError{}), Restart: supervise.RestartTemporary},
			{Name: "web", Run: coir.WaitCancel},
		}, supervise.WithName("app"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			done <- rt.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return app.Run(ctx) })
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		s := rt.Snapshot(snapshot.Options{})
		i := slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.Kind == "supervisor" })
		if i < 0 {
			t.Fatalf("it is not in the snapshot: %+v", s.Objects)
		}
		o := &s.Objects[i]
		notes := strings.Split(o.Note, "; ")
		slices.Sort(notes)
		want := []string{
			"broken: last error: (its Error method panics)", "db: 2 restarts, last error: no connection", "ends: 1 restart",
		}
		if o.Name != "app" || o.Restarts != 3 || !slices.Equal(notes, want) || o.Len != 0 || o.Received != 0 {
			t.Errorf("it is %+v", o)
		}
		for _, f := range s.Fibers {
			for _, w := range f.Wait {
				if w.Object == o.ID && w.Text != "for a child of app ("+o.Note+")" {
					t.Errorf("it waits %s", w.Text)
				}
			}
		}
		cancel()
		<-done
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// sim's report names the supervisor and the child that ignores its context.
func TestReportNamesTheChild(t *testing.T) {
	res := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		deaf := coir.NewChan[int](0, coir.WithName("deaf"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			app := supervise.New([]supervise.Child{{Name: "stubborn", Run: func(ctx context.Context) error {
				_, err := deaf.Recv(coir.Shield(ctx))
				return err
			}}}, supervise.WithName("app"))
			n.Go("sup", app.Run)
			err := coir.Sleep(ctx, time.Second)
			n.Cancel(nil)
			return err
		})
	}, sim.WithSchedules(1))
	if res.Failure == nil || res.Failure.Kind != sim.KindDeadlock {
		t.Fatalf("no deadlock: %v", res.Failure)
	}
	for _, want := range []string{"waits in Supervisor.Run for a child of app", "stubborn waits to receive from deaf"} {
		if text := res.Failure.Error(); !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}
