package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

func TestFaultIsFalseOutsideOfAPlan(t *testing.T) {
	res := Explore(func(_ context.Context, s *Sim) {
		if s.Fault("drop") {
			s.Errorf("fired")
		}
	}, WithSchedules(50), WithFaults("another"))
	if res.Failure != nil {
		t.Error(res.Failure)
	}
	want := "fault another (the program reached no fault of that name; it reached drop)"
	if !slices.Equal(res.Never, []string{want}) {
		t.Errorf("never: %q", res.Never)
	}
	var none *Sim
	if none.Fault("drop") {
		t.Error("fired outside of any simulation")
	}
}

// The name of a fault may be misspelt. The report lists the faults that the program reached: in order, each once, and
// at most a few.
func TestAFaultThatIsNotReachedTellsTheOthers(t *testing.T) {
	program := func(names ...string) func(context.Context, *Sim) {
		return func(ctx context.Context, s *Sim) {
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for _, name := range names {
					n.Go(name, func(context.Context) error {
						_ = s.Fault(name)
						return nil
					})
				}
				return nil
			})
		}
	}
	res := Explore(program("reset", "delay", "reset"), WithSchedules(50), WithFaults("dealy", "reset"))
	want := []string{"fault dealy (the program reached no fault of that name; it reached delay, reset)"}
	if !slices.Equal(res.Never, want) {
		t.Errorf("never: %q, want %q", res.Never, want)
	}
	res = Explore(program(), WithSchedules(5), WithFaults("delay"))
	if want = []string{"fault delay (the program reached no fault)"}; !slices.Equal(res.Never, want) {
		t.Errorf("never: %q, want %q", res.Never, want)
	}
	many := strings.Split("a b c d e f g h i j k l m n o p q r s t", " ")
	res = Explore(program(many...), WithSchedules(5), WithFaults("z"))
	if len(res.Never) != 1 || strings.Count(res.Never[0], ", ") != 15 {
		t.Errorf("never: %q", res.Never)
	}
}

// A site that is visited twice has five courses: not enabled, or enabled and any of the four ways to fire.
func TestFaultIsEnabledBySchedule(t *testing.T) {
	courses := map[[2]bool]bool{}
	res := Explore(func(_ context.Context, s *Sim) {
		courses[[2]bool{s.Fault("drop"), s.Fault("drop")}] = true
	}, WithFaults("drop"), WithStrategy(func(uint64) Strategy { return Exhaustive(-1) }))
	if !res.Complete || res.Schedules != 5 || len(courses) != 4 {
		t.Errorf("%d schedules, complete: %v, courses: %v", res.Schedules, res.Complete, courses)
	}
	if len(res.Never) > 0 {
		t.Errorf("never: %q", res.Never)
	}
}

// lossy sends 8 values over a link that may drop one, and relies on all of them.
func lossy(ctx context.Context, s *Sim) {
	c := coir.NewChan[int](8, coir.WithName("link"))
	for i := range 8 {
		if !s.Fault("drop") {
			_ = c.Send(ctx, i)
		}
	}
	if c.Len() != 8 {
		s.Errorf("%d of 8 arrived", c.Len())
	}
}

// Spec: SM-05 (a token replays its schedule)
// Spec: SM-07 (a failing schedule is made smaller)
func TestFaultsAreReplayedAndShrunkToThoseThatAreNeeded(t *testing.T) {
	f := found(t, KindError, lossy, WithFaults("drop"), WithStrategy(Random))
	if f.Switches != 2 {
		t.Errorf("%d decisions are left, want 2: enabled, and fired once\n%v", f.Switches, f)
	}
	says(t, f, "7 of 8 arrived", "fault drop")
	again, err := Replay(f.Token, lossy, WithFaults("drop"))
	if err != nil || again == nil || again.Text != f.Text {
		t.Errorf("replayed: %v, %v", again, err)
	}
	chartOf(t, f)
}

// The faults shown in the documentation of Fault, each found by the default settings.
func TestFaultsOfEverySort(t *testing.T) {
	errGaveUp, errBroken := errors.New("gave up"), errors.New("broken")
	for name, fn := range map[string]func(ctx context.Context, s *Sim) error{
		"cancel": func(ctx context.Context, s *Sim) error {
			c := coir.NewChan[int](0)
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				ctx, cancel := coir.WithCancelCause(ctx)
				n.Go("send", func(ctx context.Context) error { return c.SendTimeout(ctx, 1, time.Second) })
				n.Go("fault", func(context.Context) error {
					if s.Fault("cancel") {
						cancel(errGaveUp)
					}
					return nil
				})
				_, err := c.Recv(ctx)
				return err
			})
		},
		"deadline now": func(ctx context.Context, s *Sim) error {
			d := time.Minute
			if s.Fault("deadline now") {
				d = 0
			}
			ctx, cancel := coir.WithTimeout(ctx, d)
			defer cancel()
			return coir.Sleep(ctx, time.Second)
		},
		"slow": func(ctx context.Context, s *Sim) error {
			c := coir.NewChan[int](0)
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("send", func(ctx context.Context) error {
					if s.Fault("slow") {
						_ = coir.Sleep(ctx, time.Minute)
					}
					return c.Send(ctx, 1)
				})
				_, err := c.RecvTimeout(ctx, time.Second)
				return err
			})
		},
		"abort": func(ctx context.Context, s *Sim) error {
			c := coir.NewChan[int](1)
			_ = c.Send(ctx, 1)
			if s.Fault("abort") {
				c.Abort(errBroken)
			}
			_, err := c.Recv(ctx)
			return err
		},
		"clock step": func(ctx context.Context, s *Sim) error {
			began := s.Now()
			if s.Fault("clock step") {
				s.Advance(time.Hour)
			}
			if late := s.Now() - began; late > 0 {
				return errors.New("late")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(ctx context.Context, s *Sim) {
				if err := fn(ctx, s); err != nil {
					s.Errorf("%v", err)
				}
			}
			says(t, found(t, KindError, check, WithFaults(name)), "fault "+name)
			if f := Explore(check, WithSchedules(200)).Failure; f != nil {
				t.Errorf("without the fault:\n%v", f)
			}
		})
	}
}
