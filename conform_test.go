package coir_test

// One suite for every kind of channel, every overflow policy and every kind of caller.
//
// What a channel promises depends neither on its kind nor on the caller: a fiber in its own context, in a scope, in a
// context of the standard library, or a goroutine. So each claim is written once, as a script, and runs over all rows
// of the table where it applies. A new row of the table must satisfy every claim.
//
// The script runs in the test's goroutine, and makes players send and receive. The order of arrival never depends on
// time: the script waits until the channel's own counters show the previous operation as waiting.
//
// The same scripts run as fibers of a simulation, with the players that are fibers: see undersim_test.go. A script does
// not know where it runs; what differs is in the stage.
//
// This file has the table, the stage and the claims about values and their order. chan_test.go tests how operations
// end, kinds_test.go what is special to a kind or a policy.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// kind is a row of the table, by its capacity.
type kind struct {
	name     string
	capacity int
}

var kinds = []kind{
	{"rendezvous", 0},
	{"bounded 1", 1},
	{"bounded 7", 7},
	{"unbounded", coir.Unbounded},
	{"conflated", coir.Conflated},
}

var policies = []coir.OverflowPolicy{
	coir.OverflowWait, coir.OverflowDropOldest, coir.OverflowDropNewest, coir.OverflowFail,
}

// callerKind is a kind of caller.
type callerKind int

const (
	ownFiber     callerKind = iota // a fiber in its own context
	scopedFiber                    // a fiber in its own scope
	derivedFiber                   // a fiber in a context of package context
	guest                          // a goroutine
)

func (as callerKind) String() string {
	return [...]string{"fiber", "scoped fiber", "derived fiber", "goroutine"}[as]
}

var callerKinds = []callerKind{ownFiber, scopedFiber, derivedFiber, guest}

// callers are the pairs of sender and receiver.
var callers = [][2]callerKind{
	{ownFiber, ownFiber}, {guest, guest}, {ownFiber, guest}, {guest, ownFiber},
	{scopedFiber, scopedFiber}, {derivedFiber, derivedFiber},
}

// row is the parameters that a claim runs with.
type row struct {
	kind
	over             coir.OverflowPolicy
	sender, receiver callerKind
}

func (r row) String() string {
	return fmt.Sprintf("%s/%v/%v to %v", r.name, r.over, r.sender, r.receiver)
}

// exists reports whether there is such a channel: a conflated channel has its own policy.
func (r row) exists() bool { return r.capacity != coir.Conflated || r.over <= coir.OverflowDropOldest }

// bounded reports whether the channel has a capacity, which may be 0.
func (r row) bounded() bool { return r.capacity != coir.Unbounded && r.capacity != coir.Conflated }

// drops reports whether sent values may be lost.
func (r row) drops() bool {
	full := r.over == coir.OverflowDropOldest || r.over == coir.OverflowDropNewest
	return r.capacity == coir.Conflated || full && r.bounded()
}

// waits reports whether a send to a full channel waits.
func (r row) waits() bool { return r.over == coir.OverflowWait && r.bounded() }

// A filter selects the rows that a claim is about.
type filter func(row) bool

func everyRow(row) bool       { return true }
func sendersWait(r row) bool  { return r.waits() }
func nothingDrops(r row) bool { return !r.drops() }

// claim runs a script as a subtest for each row that the filter selects.
func claim(t *testing.T, where filter, script func(s *stage)) {
	t.Helper()
	if underSim {
		simulate(t, where, script)
		return
	}
	claimInTime(t, where, script)
}

// claimInTime is claim for a script that needs real time, or the garbage collector.
func claimInTime(t *testing.T, where filter, script func(s *stage)) {
	t.Helper()
	rt := on(t, coir.WithWorkers(2))
	for _, k := range kinds {
		for _, over := range policies {
			for _, by := range callers {
				r := row{k, over, by[0], by[1]}
				if r.exists() && where(r) {
					t.Run(r.String(), func(t *testing.T) { script(newStage(t, rt, r)) })
				}
			}
		}
	}
}

// tester is where a script reports failures: a test, or a schedule of a simulation.
type tester interface {
	Helper()
	Log(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// stage is where a script runs: a channel of the row's kind, and a nursery for players.
type stage struct {
	row
	simulated
	t       tester
	c       *coir.Chan[int]
	n       *coir.Nursery
	players []*player

	mu   sync.Mutex
	lost []int // the values given to OnUndelivered
}

func newStage(t *testing.T, rt *coir.Runtime, r row) *stage {
	s := &stage{row: r, t: t}
	s.c = s.channel()
	nursery := make(chan *coir.Nursery, 1)
	gate, open := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() {
		ran <- rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			nursery <- n
			return parkAt(gate)
		})
	}()
	s.n = <-nursery
	t.Cleanup(func() {
		for _, a := range s.players { // a failed script leaves some
			a.cancel(errors.New("the script is over"))
		}
		for _, a := range s.players {
			if !a.done.wait(patience) {
				t.Errorf("a player has not ended\n%s", stacks())
				return
			}
		}
		open()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return s
}

// channel makes another channel of the row's kind.
func (s *stage) channel(more ...coir.ChanOption) *coir.Chan[int] {
	opts := append(more, coir.WithName("stage"), coir.WithOverflow(s.over), coir.OnUndelivered(func(v int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lost = append(s.lost, v)
	}))
	return coir.NewChan[int](s.capacity, opts...)
}

// takeLost returns the values lost since its last call.
func (s *stage) takeLost() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	s.lost = nil
	return lost
}

// player is a caller of some kind that does one thing.
type player struct {
	s      *stage
	cancel context.CancelCauseFunc
	done   signal

	// Its results, once it is done.
	v       int
	err     error
	waiting int // how many waited on its side when its operation returned
}

// start makes a player of that kind do something. The player has its own context: a.cancel cancels no other.
func (s *stage) start(as callerKind, do func(ctx context.Context, a *player)) *player {
	a := &player{s: s, done: s.signal()}
	begun := s.signal()
	act := func(ctx context.Context, cancel context.CancelCauseFunc) {
		a.cancel = cancel
		begun.give()
		do(ctx, a)
	}
	in := func(with func(context.Context) (context.Context, context.CancelCauseFunc), ctx context.Context) {
		defer a.done.give()
		ctx, cancel := with(ctx)
		defer cancel(nil)
		act(ctx, cancel)
	}
	switch as {
	case ownFiber: // in its own nursery, which can be cancelled
		s.n.Go("nursery", func(ctx context.Context) error {
			defer a.done.give()
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("player", func(ctx context.Context) error { act(ctx, n.Cancel); return nil })
				return nil
			})
			return nil
		})
	case scopedFiber:
		s.n.Go("player", func(ctx context.Context) error { in(coir.WithCancelCause, ctx); return nil })
	case derivedFiber:
		s.n.Go("player", func(ctx context.Context) error { in(context.WithCancelCause, ctx); return nil })
	case guest:
		go in(context.WithCancelCause, context.Background())
	}
	begun.wait(patience)
	s.players = append(s.players, a)
	return a
}

// send makes the row's sender send v on c. The forms of sending take turns: they promise the same.
func (s *stage) send(c *coir.Chan[int], v int) *player {
	form := len(s.players) % 3
	return s.start(s.sender, func(ctx context.Context, a *player) {
		switch form {
		case 0:
			a.err = c.Send(ctx, v)
		case 1:
			a.err = c.SendTimeout(ctx, v, time.Hour)
		case 2:
			_, a.err = c.SendMany(ctx, []int{v})
		}
		a.waiting = c.Stats().Send.Waiting
	})
}

// recv makes the row's receiver receive from c.
func (s *stage) recv(c *coir.Chan[int]) *player {
	form := len(s.players) % 3
	return s.start(s.receiver, func(ctx context.Context, a *player) {
		switch form {
		case 0:
			a.v, a.err = c.Recv(ctx)
		case 1:
			a.v, a.err = c.RecvTimeout(ctx, time.Hour)
		case 2:
			var into [1]int
			_, a.err = c.RecvMany(ctx, into[:])
			a.v = into[0]
		}
		a.waiting = c.Stats().Recv.Waiting
	})
}

// sendersInLine makes senders wait one after the other, with the values from first on.
func (s *stage) sendersInLine(n, first int) []*player {
	s.t.Helper()
	line := make([]*player, n)
	for i := range line {
		line[i] = s.send(s.c, first+i)
		s.until("the sender waits", func() bool { return s.c.Stats().Send.Waiting == i+1 })
	}
	return line
}

// receiversInLine makes receivers wait one after the other.
func (s *stage) receiversInLine(n int) []*player {
	s.t.Helper()
	line := make([]*player, n)
	for i := range line {
		line[i] = s.recv(s.c)
		s.until("the receiver waits", func() bool { return s.c.Stats().Recv.Waiting == i+1 })
	}
	return line
}

// signal is given once, by a player to the script.
type signal interface {
	give()
	given() bool
	wait(d time.Duration) bool
}

// goSignal is the signal of a stage in the real world.
type goSignal chan struct{}

func (g goSignal) give()       { close(g) }
func (g goSignal) given() bool { return closed(g) }

func (g goSignal) wait(d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-g:
		return true
	case <-limit.C:
		return false
	}
}

// ended waits for the player's end and returns its error.
func (a *player) ended() error {
	a.s.t.Helper()
	if !a.done.wait(patience) {
		a.s.t.Fatalf("the operation does not end\n%s", stacks())
	}
	return a.err
}

// allEnded waits for all players, and checks that each ended with that error; nil means none, a cancelFor a
// cancellation for that cause.
func (s *stage) allEnded(players []*player, want error) {
	s.t.Helper()
	for i, a := range players {
		if err := a.ended(); !isWanted(err, want) {
			s.t.Fatalf("the operation that came as number %d of %d returned %v, want %v", i+1, len(players), err, want)
		}
	}
}

// until waits for a condition that has no signal.
func (s *stage) until(what string, happened func() bool) {
	s.t.Helper()
	if s.sim != nil {
		s.rest()
		if !happened() {
			s.t.Fatalf("all is quiet, and it is not so: %s", what)
		}
		return
	}
	for end := time.Now().Add(patience); !happened(); runtime.Gosched() {
		if time.Now().After(end) {
			s.t.Fatalf("never: %s\n%s", what, stacks())
		}
	}
}

// fill sends 1, 2, ... until the channel is full, or a few if it is never full. It returns the values that the channel
// holds.
func (s *stage) fill() []int {
	s.t.Helper()
	n := s.capacity
	switch n {
	case coir.Unbounded:
		n = 20
	case coir.Conflated:
		n = 1
	}
	held := make([]int, n)
	for i := range held {
		held[i] = i + 1
		if err := s.c.TrySend(i + 1); err != nil {
			s.t.Fatalf("TrySend of value %d of %d: %v", i+1, n, err)
		}
	}
	s.holds(n)
	return held
}

// holds checks how many values the channel holds.
func (s *stage) holds(n int) {
	s.t.Helper()
	if got := s.c.Len(); got != n {
		s.t.Fatalf("the channel holds %d values, want %d", got, n)
	}
}

// drain receives everything that needs no wait, and checks the values and the error that follows them.
func (s *stage) drain(want []int, then error) {
	s.t.Helper()
	var got []int
	for {
		v, err := s.c.TryRecv()
		if err != nil {
			if !slices.Equal(got, want) || !errors.Is(err, then) || v != 0 {
				s.t.Fatalf("took %v, then %d and %v; want %v, then 0 and %v", got, v, err, want, then)
			}
			return
		}
		got = append(got, v)
	}
}

// loses checks the values handed to OnUndelivered since the last time, in any order.
func (s *stage) loses(want ...int) {
	s.t.Helper()
	got := slices.Sorted(slices.Values(s.takeLost()))
	if !slices.Equal(got, want) {
		s.t.Fatalf("%v were handed to OnUndelivered, want %v", got, want)
	}
}

// insist sends v, repeatedly if the channel's policy is to fail. It counts the refusals.
func (s *stage) insist(ctx context.Context, c *coir.Chan[int], v int, refused *atomic.Int64) error {
	for {
		err := c.Send(ctx, v)
		if s.over != coir.OverflowFail || !errors.Is(err, coir.ErrWouldBlock) {
			return err
		}
		refused.Add(1)
		s.giveWay(ctx)
	}
}

// giveWay lets others run: fibers, and goroutines.
func (s *stage) giveWay(ctx context.Context) {
	if s.sim != nil {
		_ = coir.Sleep(ctx, 1) // until the others wait: no schedule can make it spin
		return
	}
	_ = coir.Yield(ctx)
	runtime.Gosched() // a fiber that yields when no other can run continues immediately
}

// Every value is received once or handed over once, whatever the number of senders and receivers, and values of one
// sender keep their order.
//
// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-02 (kinds differ in what they store)
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-21 (one sender's values stay in order)
// Spec: CH-40 (no value is lost silently)
// Spec: BU-01 (a buffer has one owner)
func TestEachValueArrivesOnceAndInOrder(t *testing.T) {
	for _, many := range []int{1, 3} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			claim(t, everyRow, func(s *stage) { s.passMany(many, s.atMost(sized(50, 300, 20_000))) })
		})
	}
}

// passMany makes senders send n values each and as many receivers receive, and accounts for each value.
func (s *stage) passMany(many, n int) {
	var refused atomic.Int64
	senders, receivers := make([]*player, many), make([]*player, many)
	got := make([][]int, many)
	for i := range many {
		receivers[i] = s.start(s.receiver, func(ctx context.Context, _ *player) {
			got[i], _ = collect(s.c.All(ctx))
		})
		senders[i] = s.start(s.sender, func(ctx context.Context, a *player) {
			for k := range n {
				if a.err = s.insist(ctx, s.c, i*n+k, &refused); a.err != nil {
					return
				}
			}
		})
	}
	s.allEnded(senders, nil)
	s.c.Close()
	s.allEnded(receivers, nil)

	lost := s.takeLost()
	seen := make([]int, many*n)
	received := 0
	for _, values := range got {
		last := make([]int, many)
		for _, v := range values {
			seen[v]++
			if k := v%n + 1; k <= last[v/n] {
				s.t.Fatalf("value %d of sender %d came to a receiver that had number %d already", k, v/n, last[v/n])
			}
			last[v/n] = v%n + 1
		}
		received += len(values)
	}
	for _, v := range lost {
		seen[v]++
	}
	for v, times := range seen {
		if times != 1 {
			s.t.Fatalf("value %d of sender %d was received or handed over %d times", v%n+1, v/n, times)
		}
	}
	if !s.drops() && len(lost) > 0 {
		s.t.Fatalf("%d values were lost in a channel that drops none", len(lost))
	}
	st := s.c.Stats()
	if st.Sent != uint64(many*n) || st.Received != uint64(received) || st.Dropped != uint64(len(lost)) ||
		st.Send.WouldBlock != uint64(refused.Load()) {
		s.t.Fatalf("%d sent, %d received, %d lost, %d refused, but the channel counts %+v",
			many*n, received, len(lost), refused.Load(), st)
	}
}

// The number of sent values exceeds that of taken values by at most the capacity. So on a rendezvous a send returns
// only after the take.
//
// Spec: CH-03 (a rendezvous send returns when the value is taken)
// Spec: CH-04 (rendezvous hands over directly)
// Spec: CH-06 (a bounded channel holds its capacity)
func TestSendsAreAheadByTheCapacityAtMost(t *testing.T) {
	n := sized(100, 500, 50_000)
	claim(t, sendersWait, func(s *stage) {
		n := s.atMost(n)
		var sent atomic.Int64
		sender := s.start(s.sender, func(ctx context.Context, a *player) {
			for i := range n {
				if a.err = s.c.Send(ctx, i); a.err != nil {
					return
				}
				sent.Add(1)
			}
		})
		receiver := s.start(s.receiver, func(ctx context.Context, a *player) {
			for taken := range n {
				if ahead := int(sent.Load()) - taken; ahead > s.capacity {
					a.err = fmt.Errorf("%d sends have returned and %d values were taken", taken+ahead, taken)
					return
				}
				if held := s.c.Len(); held > s.capacity {
					a.err = fmt.Errorf("it holds %d", held)
					return
				}
				if _, a.err = s.c.Recv(ctx); a.err != nil {
					return
				}
			}
		})
		s.allEnded([]*player{sender, receiver}, nil)
		if high := s.c.Stats().High; high > s.capacity {
			s.t.Fatalf("it has held %d", high)
		}
	})
}

// The value of a sender that waits on a rendezvous is stored nowhere: it passes directly to a receiver, or stays.
//
// Spec: CH-03 (a rendezvous send returns when the value is taken)
// Spec: CH-04 (rendezvous hands over directly)
func TestRendezvousHasNoPlace(t *testing.T) {
	claim(t, func(r row) bool { return r.waits() && r.capacity == 0 }, func(s *stage) {
		a := s.sendersInLine(1, 5)[0]
		s.holds(0)
		if a.done.given() {
			s.t.Fatal("the send returned before the take")
		}
		s.drain([]int{5}, coir.ErrWouldBlock)
		s.allEnded([]*player{a}, nil)
		if high := s.c.Stats().High; high != 0 {
			s.t.Fatalf("it has held %d", high)
		}
	})
}

// A send that finds room stores the value and returns; a receive that finds a value takes the oldest and returns.
// Neither needs a peer.
//
// Spec: CH-07 (a send with room does not wait)
// Spec: CH-08 (a receive takes the oldest)
// Spec: CH-11 (nobody waits for what is there)
// Spec: CH-13 (a conflated receive empties the channel)
// Spec: CH-15 (an unbounded send never waits)
func TestOperationsThatNeedNotWait(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		held := s.fill()
		s.drain(held, coir.ErrWouldBlock)
		for i := range held { // the same by operations that would wait
			s.allEnded([]*player{s.send(s.c, i+1)}, nil)
			s.holds(i + 1)
		}
		for _, want := range held {
			a := s.recv(s.c)
			s.allEnded([]*player{a}, nil)
			if a.v != want {
				s.t.Fatalf("received %d, want %d", a.v, want)
			}
		}
		s.holds(0)
		if st := s.c.Stats(); st.High != len(held) || st.Send != (coir.SideStats{}) {
			s.t.Fatalf("with %d values sent and received the channel counts %+v", len(held), st)
		}
	})
}

// Waiting senders are served in the order of arrival, each by the receive that makes room.
//
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-10 (room goes to the longest-waiting sender)
// Spec: CH-11 (nobody waits for what is there)
// Spec: CH-19 (waiters are served in order)
func TestSendersAreServedInOrder(t *testing.T) {
	claim(t, sendersWait, func(s *stage) {
		held := s.fill()
		line := s.sendersInLine(6, 100)
		for i := range line {
			a := s.recv(s.c)
			s.allEnded([]*player{a}, nil)
			if i < len(held) && a.v != held[i] || i >= len(held) && a.v != 100+i-len(held) {
				s.t.Fatalf("receive %d took %d", i+1, a.v)
			}
			s.allEnded(line[i:i+1], nil)
			s.holds(s.capacity)
			if st := s.c.Stats(); st.Send.Waiting != len(line)-i-1 || st.Recv.Waiting != 0 {
				s.t.Fatalf("after receive %d of %d: %+v", i+1, len(line), st)
			}
		}
	})
}

// Waiting receivers are served in the order of arrival, directly: no value passes through the buffer.
//
// Spec: CH-09 (a send prefers a waiting receiver)
// Spec: CH-11 (nobody waits for what is there)
// Spec: CH-19 (waiters are served in order)
func TestReceiversAreServedInOrder(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		line := s.receiversInLine(6)
		for i := range line {
			s.allEnded([]*player{s.send(s.c, 100+i)}, nil)
			s.holds(0)
			s.allEnded(line[i:i+1], nil)
			if line[i].v != 100+i {
				s.t.Fatalf("receiver %d got %d, want %d", i, line[i].v, 100+i)
			}
			if st := s.c.Stats(); st.Recv.Waiting != len(line)-i-1 || st.High != 0 {
				s.t.Fatalf("after send %d of %d: %+v", i+1, len(line), st)
			}
		}
		s.loses()
	})
}

// The room that a receive makes immediately belongs to the waiting sender: no later operation gets it, even if the
// sender has not run yet. The same holds for a value and a waiting receiver.
//
// Spec: CH-09 (a send prefers a waiting receiver)
// Spec: CH-10 (room goes to the longest-waiting sender)
// Spec: CH-20 (a waiting operation beats a passing one)
func TestWaitingBeatsPassing(t *testing.T) {
	t.Run("senders", func(t *testing.T) {
		claim(t, sendersWait, func(s *stage) {
			held := s.fill()
			line := s.sendersInLine(3, 100)
			want := append(held, 100, 101, 102)
			for i := range line {
				v, err := s.c.TryRecv()
				if err != nil || v != want[i] {
					s.t.Fatalf("TryRecv: %d, %v, want %d", v, err, want[i])
				}
				if err := s.c.TrySend(200); !errors.Is(err, coir.ErrWouldBlock) {
					s.t.Fatalf("TrySend overtook a sender that waits: %v", err)
				}
			}
			s.drain(want[len(line):], coir.ErrWouldBlock)
			s.allEnded(line, nil)
		})
	})
	t.Run("receivers", func(t *testing.T) {
		claim(t, everyRow, func(s *stage) {
			line := s.receiversInLine(3)
			for i := range line {
				if err := s.c.TrySend(100 + i); err != nil {
					s.t.Fatal(err)
				}
				if v, err := s.c.TryRecv(); !errors.Is(err, coir.ErrWouldBlock) {
					s.t.Fatalf("TryRecv overtook a receiver that waits: %d, %v", v, err)
				}
			}
			s.allEnded(line, nil)
			for i, a := range line {
				if a.v != 100+i {
					s.t.Fatalf("receiver %d got %d", i, a.v)
				}
			}
		})
	})
}

// TrySend and TryRecv never wait. Where they would have to, they change nothing but a counter.
//
// Spec: CH-22 (Try never waits and changes nothing)
// Spec: CH-26 (a failed send keeps its value)
func TestTryChangesNothing(t *testing.T) {
	claim(t, everyRow, func(s *stage) {
		before := s.c.Stats()
		s.drain(nil, coir.ErrWouldBlock)
		before.Recv.WouldBlock++
		if st := s.c.Stats(); st != before {
			s.t.Fatalf("TryRecv made %+v of %+v", st, before)
		}
		held := s.fill()
		if !s.waits() && s.over != coir.OverflowFail || !s.bounded() {
			return // it takes more
		}
		before = s.c.Stats()
		if err := s.c.TrySend(100); !errors.Is(err, coir.ErrWouldBlock) {
			s.t.Fatalf("TrySend to a full channel: %v", err)
		}
		before.Send.WouldBlock++
		if st := s.c.Stats(); st != before {
			s.t.Fatalf("TrySend made %+v of %+v", st, before)
		}
		s.loses()
		s.drain(held, coir.ErrWouldBlock)
	})
}

// A program may rely on this order: writes before a send are seen after its receive, writes before a receive are seen
// by the sender that it lets continue, and writes before a close are seen after ErrClosed. A race build finds where
// that fails.
func TestChannelsOrderMemory(t *testing.T) {
	n := sized(100, 500, 20_000)
	claim(t, nothingDrops, func(s *stage) {
		n := s.atMost(n)
		type box struct{ n, twice int }
		c := coir.NewChan[*box](s.capacity, coir.WithOverflow(s.over))
		sent := 0 // written before Close, read after ErrClosed
		sender := s.start(s.sender, func(ctx context.Context, a *player) {
			defer c.Close()
			for i := 0; i < n; {
				switch err := c.Send(ctx, &box{i, 2 * i}); {
				case err == nil:
					i++
					sent = i
				case errors.Is(err, coir.ErrWouldBlock):
					s.giveWay(ctx)
				default:
					a.err = err
					return
				}
			}
		})
		receiver := s.start(s.receiver, func(ctx context.Context, a *player) {
			got := 0
			for b, err := range c.All(ctx) {
				if err != nil {
					return
				}
				if b.twice++; b.twice != 2*b.n+1 {
					a.err = fmt.Errorf("%+v came", b)
				}
				got++
			}
			if got != sent {
				a.err = fmt.Errorf("%d received, %d sent", got, sent)
			}
		})
		s.allEnded([]*player{sender, receiver}, nil)
	})
}

// A channel of capacity n makes a semaphore: with n = 1, or with a rendezvous both ways, what it guards needs no other
// lock.
func TestChannelAsAMutex(t *testing.T) {
	n := sized(50, 200, 10_000)
	claim(t, func(r row) bool { return r.waits() && r.capacity == 1 }, func(s *stage) {
		n := s.atMost(n)
		guarded := 0
		work := func(ctx context.Context, a *player) {
			for range n {
				if a.err = s.c.Send(ctx, 0); a.err != nil {
					return
				}
				guarded++
				if _, a.err = s.c.Recv(ctx); a.err != nil {
					return
				}
			}
		}
		var all []*player
		for range 3 {
			all = append(all, s.start(s.sender, work), s.start(s.receiver, work))
		}
		s.allEnded(all, nil)
		if guarded != n*len(all) {
			s.t.Fatalf("%d, want %d", guarded, n*len(all))
		}
	})
	claim(t, func(r row) bool { return r.waits() && r.capacity == 0 }, func(s *stage) {
		n := s.atMost(n)
		shared := 0 // the sides take turns: each writes between its operations
		sender := s.start(s.sender, func(ctx context.Context, a *player) {
			for i := range n {
				if shared++; shared != 2*i+1 {
					a.err = fmt.Errorf("%d before send %d", shared, i)
					return
				}
				if a.err = s.c.Send(ctx, i); a.err != nil { // passes the turn
					return
				}
				if a.err = s.c.Send(ctx, i); a.err != nil { // has the turn back once the value was taken
					return
				}
			}
		})
		receiver := s.start(s.receiver, func(ctx context.Context, a *player) {
			for range n {
				if _, a.err = s.c.Recv(ctx); a.err != nil {
					return
				}
				shared++
				if _, a.err = s.c.Recv(ctx); a.err != nil {
					return
				}
			}
		})
		s.allEnded([]*player{sender, receiver}, nil)
	})
}
