package sim

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/race"
)

// Functions that the clock calls run besides the fibers of a schedule: those of coir.Alarm, and of types built on it,
// such as a ticket of package desk.

// beat is an alarm that starts itself again, and calls a function each time.
type beat struct {
	coir.Alarm
	ctx   context.Context
	every time.Duration
	do    func()
}

func (b *beat) start() { b.Start(b.ctx, b, b.every) }

func (b *beat) Ended(error) {
	b.do()
	b.start()
}

// TestADeadlockBesideAnAlarm: an alarm that starts itself again does not hide a deadlock, nor does it keep a schedule
// from ending.
//
// Spec: SM-08 (no fiber able to continue is a deadlock)
func TestADeadlockBesideAnAlarm(t *testing.T) {
	for _, every := range []time.Duration{0, time.Minute} {
		calls := 0
		f := Run(1, func(ctx context.Context, s *Sim) {
			b := &beat{ctx: ctx, every: every, do: func() { calls++ }}
			b.start()
			_ = coir.NewEvent(coir.WithName("never")).Wait(ctx)
		})
		if f == nil || f.Kind != KindDeadlock || !strings.Contains(f.Text, "only timer functions still run") {
			t.Errorf("every %v: %d calls, %v", every, calls, f)
		}
		if f := Run(1, func(ctx context.Context, s *Sim) {
			(&beat{ctx: ctx, every: every, do: func() {}}).start()
		}); f != nil {
			t.Errorf("every %v: %v", every, f)
		}
	}
}

// TestFibersRunBetweenTwoCalls: a fiber that an alarm has woken runs before an alarm that was started meanwhile, even
// if that is due at the same moment.
func TestFibersRunBetweenTwoCalls(t *testing.T) {
	calls := 0
	f := Run(1, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](1)
		b := &beat{ctx: ctx, do: func() { calls++; _ = c.TrySend(calls) }}
		b.start()
		if v, err := c.Recv(ctx); v != 1 || err != nil || calls != 1 {
			s.Errorf("received %v, %v after %d calls", v, err, calls)
		}
	})
	if f != nil {
		t.Error(f)
	}
}

// TestNothingOfAScheduleFiresInTheNext arms an alarm at the end of a schedule, when its cancellation ends a watch.
func TestNothingOfAScheduleFiresInTheNext(t *testing.T) {
	n := 0
	res := Explore(func(ctx context.Context, s *Sim) {
		n++
		me := n
		if coir.Now(ctx) != 0 {
			s.Errorf("the schedule begins at %v", coir.Now(ctx))
		}
		late := &beat{ctx: coir.Shield(ctx), every: time.Hour, do: func() {
			if n != me {
				t.Errorf("schedule %d calls a function of schedule %d", n, me)
			}
		}}
		var w coir.Watch
		if err := w.Start(ctx, endedFunc(func(error) { late.start() })); err != nil {
			s.Errorf("%v", err)
		}
		_ = coir.Sleep(ctx, 10*time.Hour)
	}, WithSchedules(10))
	if res.Failure != nil || n < 2 && !res.Complete {
		t.Error(n, res.Failure)
	}
}

// endedFunc makes a function a coir.Watcher.
type endedFunc func(error)

func (f endedFunc) Ended(err error) { f(err) }

// TestFatalfWhereTheClockCalls: a function that is called at a time in a new goroutine, as package desk does, may call
// Fatalf. The method Ended of a watcher may not.
func TestFatalfWhereTheClockCalls(t *testing.T) {
	f := Run(1, func(ctx context.Context, s *Sim) {
		b := &beat{ctx: ctx, every: time.Second, do: func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Fatalf("too late")
			}()
			<-done
		}}
		b.start()
		_ = coir.Sleep(ctx, time.Hour)
	})
	if f == nil || f.Kind != KindError || f.Text != "too late" {
		t.Errorf("found %v", f)
	}
	if race.Enabled {
		return // Ended has a goroutine of its own here, too
	}
	f = Run(1, func(ctx context.Context, s *Sim) {
		said := ""
		b := &beat{ctx: ctx, every: time.Second, do: func() {
			defer func() { said, _ = recover().(string) }()
			s.Fatalf("too late")
		}}
		b.start()
		_ = coir.Sleep(ctx, 1500*time.Millisecond)
		if !strings.Contains(said, "call Errorf, and return") {
			s.Errorf("Fatalf said %q", said)
		}
	})
	if f != nil {
		t.Error(f)
	}
}
