package coir_test

// The suite of conform_test.go under simulation: every claim over every row whose callers are fibers, each under its
// own schedules.
//
// The script is the first fiber of the schedule. To wait for a condition that has no signal, it sleeps on the virtual
// clock, which advances only when no fiber can run: then everything that could happen has happened. A claim that fails
// prints the line that replays it.
//
// This is one test, in the last file, and not a part of each test: once there has been a simulation, operations check
// whether they are in it. So the other tests run the same code as programs.

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/sim"
)

// underSim makes claims run under simulation.
var underSim bool

// TestUnderSimulation runs the claims in other orders than the real runtime. There a fiber that is readied often runs
// next; here a strategy chooses which fiber runs. The results must be the same. The claims themselves cite the rules
// that they check.
//
// Spec: SC-31 (running at once or later is not visible)
func TestUnderSimulation(t *testing.T) {
	underSim = true
	defer func() { underSim = false }()
	for _, c := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"Timeout", TestTimeout},
		{"TimeoutsOfNoneAndOfAllTime", TestTimeoutsOfNoneAndOfAllTime},
		{"CancelEndsAWait", TestCancelEndsAWait},
		{"CancelWithoutACause", TestCancelWithoutACause},
		{"ContextThatIsOver", TestContextThatIsOver},
		{"CloseDeliversWhatThereIs", TestCloseDeliversWhatThereIs},
		{"SenderLeavesAClosedChannel", TestSenderLeavesAClosedChannel},
		{"EndWakesReceivers", TestEndWakesReceivers},
		{"AbortDiscardsWhatThereIs", TestAbortDiscardsWhatThereIs},
		{"OneOfManyCloses", TestOneOfManyCloses},
		{"NothingIsLeftBehindAClose", TestNothingIsLeftBehindAClose},
		{"OneEndOfEachWait", TestOneEndOfEachWait},
		{"DataComesBeforeALaterCancel", TestDataComesBeforeALaterCancel},
		{"All", TestAll},
		{"AllEndsWithItsContext", TestAllEndsWithItsContext},
		{"StatsAreOfOneMoment", TestStatsAreOfOneMoment},
		{"EachValueArrivesOnceAndInOrder", TestEachValueArrivesOnceAndInOrder},
		{"SendsAreAheadByTheCapacityAtMost", TestSendsAreAheadByTheCapacityAtMost},
		{"RendezvousHasNoPlace", TestRendezvousHasNoPlace},
		{"OperationsThatNeedNotWait", TestOperationsThatNeedNotWait},
		{"SendersAreServedInOrder", TestSendersAreServedInOrder},
		{"ReceiversAreServedInOrder", TestReceiversAreServedInOrder},
		{"WaitingBeatsPassing", TestWaitingBeatsPassing},
		{"TryChangesNothing", TestTryChangesNothing},
		{"ChannelsOrderMemory", TestChannelsOrderMemory},
		{"ChannelAsAMutex", TestChannelAsAMutex},
		{"Overflow", TestOverflow},
		{"OverflowIsForFullChannels", TestOverflowIsForFullChannels},
		{"ValuesOfManyShapes", TestValuesOfManyShapes},
		{"ConflatedDeliversTheLast", TestConflatedDeliversTheLast},
		{"ManyGoThroughInOrder", TestManyGoThroughInOrder},
		{"RecvManyTakesWhatThereIs", TestRecvManyTakesWhatThereIs},
		{"RecvManyTakesWhatFits", TestRecvManyTakesWhatFits},
		{"SendManyServesThoseWhoWait", TestSendManyServesThoseWhoWait},
		{"SendManyThatEndsInTheMiddle", TestSendManyThatEndsInTheMiddle},
		{"SendManyOverflows", TestSendManyOverflows},
		{"ManyAtTheEndOfAChannel", TestManyAtTheEndOfAChannel},
	} {
		t.Run(c.name, c.test)
	}
}

// simulated is the part of a stage that exists only in a simulation.
type simulated struct {
	sim *sim.Sim // nil: the real world
	ctx context.Context
}

// schedules is the number of schedules for each claim, over all of its rows; at least one each.
func schedules() int {
	if invariant.Enabled && !soak.On() {
		return 0
	}
	return sized(0, 2_500, 50_000)
}

// simulate runs a script under simulation, for each row that the filter selects and that has only fibers. In short runs
// the two callerKinds of fibers take turns.
func simulate(t *testing.T, where filter, script func(s *stage)) {
	t.Helper()
	var rows []row
	for i, k := range kinds {
		for j, over := range policies {
			for as, by := range []callerKind{ownFiber, scopedFiber} {
				r := row{k, over, by, by}
				if r.exists() && where(r) && (!testing.Short() || (i+j+as)%2 == 0) {
					rows = append(rows, r)
				}
			}
		}
	}
	each := max(1, (schedules()+len(rows)-1)/len(rows))
	for _, r := range rows {
		t.Run(r.String(), func(t *testing.T) {
			h := fnv.New64a()
			_, _ = io.WriteString(h, t.Name())
			opts := []sim.Option{sim.WithSeed(h.Sum64()), sim.WithSchedules(each)}
			if each < 10 {
				opts = append(opts, sim.WithStrategy(sim.Random)) // the first schedules of the default strategy have few switches
			}
			sim.Test(t, func(ctx context.Context, x *sim.Sim) { playSimulated(ctx, x, r, script) }, opts...)
		})
	}
}

// playSimulated runs one schedule.
func playSimulated(ctx context.Context, x *sim.Sim, r row, script func(s *stage)) {
	s := &stage{row: r, t: simTester{x}, simulated: simulated{sim: x}}
	s.c = s.channel()
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		s.n, s.ctx = n, ctx
		defer func() {
			for _, a := range s.players { // a failed script leaves some
				a.cancel(errScriptOver)
			}
			if p := recover(); p != nil && p != errScriptOver {
				panic(p)
			}
		}()
		script(s)
		return nil
	})
	if err != nil {
		x.Errorf("the nursery of the players ended with %v", err)
	}
}

var errScriptOver = errors.New("the script is over")

// simTester makes a schedule fail where a script fails a test.
type simTester struct{ x *sim.Sim }

func (simTester) Helper()                             {}
func (simTester) Log(...any)                          {}
func (f simTester) Errorf(format string, args ...any) { f.x.Errorf(format, args...) }
func (f simTester) Fatalf(format string, args ...any) {
	f.x.Errorf(format, args...)
	panic(errScriptOver)
}
func (f simTester) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// atMost returns n, or a few in a simulation, where many schedules replace many rounds.
func (s *stage) atMost(n int) int {
	if s.sim != nil {
		return min(n, 5)
	}
	return n
}

// now returns the time by which operations of the stage wait.
func (s *stage) now() time.Duration {
	if s.sim != nil {
		return s.sim.Now()
	}
	return time.Since(testsBegan)
}

var testsBegan = time.Now()

// rest waits until no other fiber can continue.
func (s *stage) rest() { _ = coir.Sleep(s.ctx, 1) }

// signal makes a signal.
func (s *stage) signal() signal {
	if s.sim != nil {
		return &simSignal{s: s, c: coir.NewChan[int](0, coir.WithName("signal"))}
	}
	return make(goSignal)
}

// simSignal is the signal of a stage in a simulation.
type simSignal struct {
	s     *stage
	c     *coir.Chan[int]
	asked int
}

func (g *simSignal) give() { g.c.Close() }

// given lets others run: a script may poll it. If it does so very often it is made to wait.
func (g *simSignal) given() bool {
	if g.asked++; g.asked > 20 {
		g.s.rest()
	} else {
		_ = coir.Yield(g.s.ctx)
	}
	return g.c.Stats().Closed
}

func (g *simSignal) wait(time.Duration) bool {
	_, err := g.c.Recv(g.s.ctx)
	return errors.Is(err, coir.ErrClosed)
}
