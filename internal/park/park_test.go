package park

// The tests check the word, one transition at a time, by a table of every state and every operation. For each it has
// the result of the operation, the word after it, and whether the owner is readied. Other tests do the same
// concurrently.

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/xatomic"
)

// counter is an owner that counts how often its parker was readied, and how many wakes came too late.
type counter struct{ n, late atomic.Int64 }

func (c *counter) Late(*Parker) { c.late.Add(1) }

func (c *counter) Ready(*Parker, Place) { c.n.Add(1) }

// at makes a parker with the given word.
func at(t Ticket, r Reason, s State) (*Parker, *counter) {
	p, c := new(Parker), new(counter)
	p.Init(c)
	p.word.Store(word(t, r, s))
	return p, c
}

func show(w uint64) string {
	return fmt.Sprintf("%v(ticket %d, reason %d)", stateOf(w), ticketOf(w), reasonOf(w))
}

// TestParkerIsOneWord: a parker has one word and its owner. With a second field, not only the word could decide a wake.
//
// Spec: PK-01 (one word decides a wait)
func TestParkerIsOneWord(t *testing.T) {
	p := reflect.TypeFor[Parker]()
	if p.NumField() != 2 || p.Field(0).Type != reflect.TypeFor[xatomic.Uint64]() || p.Field(1).Type != reflect.TypeFor[*Owner]() {
		t.Errorf("a parker is %v", p)
	}
	for _, s := range []State{Running, Parking, Parked, Notified, Runnable} {
		w := word(5, 3, s)
		if ticketOf(w) != 5 || reasonOf(w) != 3 || stateOf(w) != s {
			t.Errorf("ticket 5, reason 3 and %v are %s in the word", s, show(w))
		}
	}
}

// TestEveryTransition has one row for each state, and one column for each operation. An operation that is not in a
// row's list leaves the word unchanged.
//
// Spec: PK-02 (the word is ticket, reason and state)
// Spec: PK-03 (a wait is in one of five states)
// Spec: PK-04 (only the running fiber arms its wait)
// Spec: PK-05 (each arm takes a fresh ticket)
// Spec: PK-08 (a stale wake changes nothing)
// Spec: PK-11 (a wake reports whether it won)
// Spec: PK-12 (the winner's reason carries kind and index)
// Spec: PK-13 (a wake of PARKING does not enqueue)
// Spec: PK-15 (the winner of a PARKED wait enqueues it once)
// Spec: PK-17 (commit fails only if the wait was notified)
// Spec: PK-32 (a second wake reports lost)
// Spec: PK-33 (a wake of a running fiber has no later effect)
// Spec: PK-45 (transitions are functions named after themselves)
// Spec: PK-37 (a parker never makes itself runnable)
func TestEveryTransition(t *testing.T) {
	const now = Ticket(7)
	type result struct {
		returned any
		next     uint64
		ready    int64
	}
	ops := map[string]func(*Parker) any{
		"Arm":        func(p *Parker) any { return p.Arm() },
		"Disarm":     func(p *Parker) any { return p.Disarm() },
		"Commit":     func(p *Parker) any { return p.Commit() },
		"Woken":      func(p *Parker) any { return p.Woken() },
		"Reason":     func(p *Parker) any { return p.Reason() },
		"State":      func(p *Parker) any { return p.State() },
		"Waiting":    func(p *Parker) any { t, ok := p.Waiting(); return fmt.Sprint(t, ok) },
		"Wake":       func(p *Parker) any { return p.Wake(now, Cancelled, nil) },
		"WakeEarly":  func(p *Parker) any { return p.Wake(now-1, Cancelled, nil) },
		"WakeLater":  func(p *Parker) any { return p.Wake(now+1, Cancelled, nil) },
		"Claim":      func(p *Parker) any { return p.Claim(now, Closed.For(3)) },
		"ClaimEarly": func(p *Parker) any { return p.Claim(now-1, Closed.For(3)) },
		"ClaimLater": func(p *Parker) any { return p.Claim(now+1, Closed.For(3)) },
		"Expire":     func(p *Parker) any { p.Expire(uint64(now)); return nil },
		"ExpireLate": func(p *Parker) any { p.Expire(uint64(now - 1)); return nil },
	}
	running, parking, parked := word(now, None, Running), word(now, None, Parking), word(now, None, Parked)
	notified, runnable := word(now, Data, Notified), word(now, Data, Runnable)
	armed := word(now+1, None, Parking)
	const illegal = "illegal" // checked builds panic; other builds promise nothing
	table := []struct {
		from uint64
		want map[string]any // a result, or illegal
	}{
		{running, map[string]any{
			"Arm":        result{now + 1, armed, 0},
			"Disarm":     result{false, running, 0},
			"Commit":     result{false, running, 0},
			"Woken":      result{false, running, 0},
			"Reason":     result{None, running, 0},
			"State":      result{Running, running, 0},
			"Waiting":    result{"7 false", running, 0},
			"Wake":       result{Lost, running, 0}, // the wait was disarmed
			"WakeEarly":  result{Stale, running, 0},
			"WakeLater":  result{Stale, running, 0},
			"Claim":      result{Lost, running, 0},
			"ClaimEarly": result{Stale, running, 0},
			"ClaimLater": result{Stale, running, 0},
			"Expire":     result{nil, running, 0},
			"ExpireLate": result{nil, running, 0},
		}},
		{parking, map[string]any{
			"Arm":        illegal,
			"Disarm":     result{true, running, 0},
			"Commit":     result{true, parked, 0},
			"Woken":      result{false, parking, 0},
			"Reason":     result{None, parking, 0},
			"State":      result{Parking, parking, 0},
			"Waiting":    result{"7 true", parking, 0},
			"Wake":       result{Won, word(now, Cancelled, Notified), 0}, // the committer will ready it
			"WakeEarly":  result{Stale, parking, 0},
			"WakeLater":  result{Stale, parking, 0},
			"Claim":      result{Won, word(now, Closed.For(3), Notified), 0},
			"ClaimEarly": result{Stale, parking, 0},
			"ClaimLater": result{Stale, parking, 0},
			"Expire":     result{nil, word(now, TimedOut, Notified), 0},
			"ExpireLate": result{nil, parking, 0},
		}},
		{parked, map[string]any{
			"Arm":        illegal,
			"Disarm":     result{false, parked, 0},
			"Commit":     result{false, parked, 0},
			"Woken":      result{false, parked, 0},
			"Reason":     result{None, parked, 0},
			"State":      result{Parked, parked, 0},
			"Waiting":    result{"7 true", parked, 0},
			"Wake":       result{Won, word(now, Cancelled, Runnable), 1},
			"WakeEarly":  result{Stale, parked, 0},
			"WakeLater":  result{Stale, parked, 0},
			"Claim":      result{Asleep, word(now, Closed.For(3), Runnable), 0},
			"ClaimEarly": result{Stale, parked, 0},
			"ClaimLater": result{Stale, parked, 0},
			"Expire":     result{nil, word(now, TimedOut, Runnable), 1},
			"ExpireLate": result{nil, parked, 0},
		}},
		{notified, map[string]any{
			"Arm":        result{now + 1, armed, 0},
			"Disarm":     result{false, notified, 0},
			"Commit":     result{false, notified, 0}, // the caller readies it
			"Woken":      result{true, notified, 0},
			"Reason":     result{Data, notified, 0},
			"State":      result{Notified, notified, 0},
			"Waiting":    result{"7 false", notified, 0},
			"Wake":       result{Lost, notified, 0},
			"WakeEarly":  result{Stale, notified, 0},
			"WakeLater":  result{Stale, notified, 0},
			"Claim":      result{Lost, notified, 0},
			"ClaimEarly": result{Stale, notified, 0},
			"ClaimLater": result{Stale, notified, 0},
			"Expire":     result{nil, notified, 0},
			"ExpireLate": result{nil, notified, 0},
		}},
		{runnable, map[string]any{
			"Arm":        result{now + 1, armed, 0},
			"Disarm":     result{false, runnable, 0},
			"Commit":     result{false, runnable, 0},
			"Woken":      result{true, runnable, 0},
			"Reason":     result{Data, runnable, 0},
			"State":      result{Runnable, runnable, 0},
			"Waiting":    result{"7 false", runnable, 0},
			"Wake":       result{Lost, runnable, 0},
			"WakeEarly":  result{Stale, runnable, 0},
			"WakeLater":  result{Stale, runnable, 0},
			"Claim":      result{Lost, runnable, 0},
			"ClaimEarly": result{Stale, runnable, 0},
			"ClaimLater": result{Stale, runnable, 0},
			"Expire":     result{nil, runnable, 0},
			"ExpireLate": result{nil, runnable, 0},
		}},
	}
	for _, row := range table {
		for name, op := range ops {
			t.Run(stateOf(row.from).String()+"/"+name, func(t *testing.T) {
				p, c := at(now, reasonOf(row.from), stateOf(row.from))
				want, ok := row.want[name]
				if !ok {
					t.Fatal("the table has no such field")
				}
				if want == illegal {
					mustPanic(t, func() { op(p) })
					return
				}
				got := result{op(p), p.word.Load(), c.n.Load()}
				if w := want.(result); got != w {
					t.Fatalf("returned %v, word %s, readied %d; want %v, %s, %d",
						got.returned, show(got.next), got.ready, w.returned, show(w.next), w.ready)
				}
			})
		}
	}
}

// mustPanic checks that checked builds stop an illegal transition.
func mustPanic(t *testing.T, f func()) {
	t.Helper()
	if !invariant.Enabled {
		t.Skip("only checked builds look")
	}
	defer func() {
		if recover() == nil {
			t.Error("an illegal transition went through")
		}
	}()
	f()
}

// The three parts of the word do not overlap, whatever their values.
func TestWordKeepsItsPartsApart(t *testing.T) {
	for _, ticket := range []Ticket{0, 1, 1<<16 - 1, 1 << 16, 1<<48 - 1} {
		for _, r := range []Reason{None, Data, Cancelled, TimedOut, 1<<reasonBits - 1} {
			for s := Running; s <= Runnable; s++ {
				w := word(ticket, r, s)
				if ticketOf(w) != ticket || reasonOf(w) != r || stateOf(w) != s {
					t.Fatalf("put in %v(%d, %d), got out %s", s, ticket, r, show(w))
				}
			}
		}
	}
}

// A reason keeps its kind and its index apart, travels in the word, and touches neither ticket nor state.
func TestReasonCarriesAnIndex(t *testing.T) {
	for _, kind := range []Reason{None, Data, Closed, Cancelled, TimedOut} {
		if kind.Kind() != kind || kind.Index() != 0 {
			t.Errorf("reason %d alone has kind %d and index %d", kind, kind.Kind(), kind.Index())
		}
		for index := range uint16(MaxIndex + 1) {
			r := kind.For(index)
			if r.Kind() != kind || r.Index() != int(index) {
				t.Fatalf("reason %d for %d has kind %d and index %d", kind, index, r.Kind(), r.Index())
			}
			w := word(1<<48-1, r, Runnable)
			if reasonOf(w) != r || ticketOf(w) != 1<<48-1 || stateOf(w) != Runnable {
				t.Fatalf("reason %d for %d came back as %s", kind, index, show(w))
			}
		}
	}
}

// TestClaimThenMakeReady: a claim decides, and wakes nothing. Until the winner readies it the parker stays asleep, and
// no other waker can end the wait. A claim of a parker on its way to sleep leaves nothing to ready: the committer finds
// it.
//
// Spec: PK-10 (exactly one ends a wait)
// Spec: PK-13 (a wake of PARKING does not enqueue)
// Spec: PK-14 (a wake between arm and commit is not lost)
// Spec: PK-15 (the winner of a PARKED wait enqueues it once)
// Spec: SE-04 (the winner is decided before a wake)
func TestClaimThenMakeReady(t *testing.T) {
	p, c := at(0, None, Running)
	ticket := p.Arm()
	p.Commit()
	if o := p.Claim(ticket, Data.For(MaxIndex)); o != Asleep {
		t.Fatal(o)
	}
	if o := p.Claim(ticket, Closed); o != Lost {
		t.Fatal(o)
	}
	if o := p.Wake(ticket, Cancelled, nil); o != Lost {
		t.Fatal(o)
	}
	p.Expire(uint64(ticket))
	if c.n.Load() != 0 || p.Reason() != Data.For(MaxIndex) {
		t.Fatalf("before the winner readied it: readied %d times, reason %d", c.n.Load(), p.Reason())
	}
	if c.late.Load() != 3 {
		t.Fatalf("three came too late, %d were counted", c.late.Load())
	}
	p.MakeReady(nil)
	if c.n.Load() != 1 {
		t.Fatalf("made ready once, readied %d times", c.n.Load())
	}

	ticket = p.Arm()
	if o := p.Claim(ticket, Closed); o != Won {
		t.Fatal(o)
	}
	if p.Commit() || c.n.Load() != 1 {
		t.Fatal("a wait that was claimed before it slept was slept in, or readied by the claim")
	}
	if o := p.Claim(ticket-1, Data); o != Stale || c.late.Load() != 4 {
		t.Fatal(o, c.late.Load())
	}
}

// Each Arm returns a ticket one higher than the last, however the last wait ended.
//
// Spec: PK-05 (each arm takes a fresh ticket)
// Spec: PK-06 (tickets only grow)
func TestTicketsOnlyGrow(t *testing.T) {
	p, _ := at(0, None, Running)
	last := Ticket(0)
	for i := range 4000 {
		ticket := p.Arm()
		if ticket <= last {
			t.Fatalf("wait %d has ticket %d after %d", i, ticket, last)
		}
		last = ticket
		switch i % 4 {
		case 0:
			p.Disarm()
		case 1:
			p.Wake(ticket, Data, nil)
		case 2:
			p.Commit()
			p.Wake(ticket, Data, nil)
		case 3:
			p.Wake(ticket, TimedOut, nil)
			p.Commit()
		}
	}
}

// TestTicketsWrap: after the last ticket of 48 bits the next wait has ticket 1, and is woken like any other. Ticket 0
// is left out, because it stands for no wait. A waker that kept the last ticket is stale.
//
// Spec: PK-05 (each arm takes a fresh ticket)
// Spec: PK-08 (a stale wake changes nothing)
// Spec: PK-50 (tickets wrap to 1)
func TestTicketsWrap(t *testing.T) {
	const last = Ticket(1<<48 - 1)
	for _, asleep := range []bool{false, true} {
		p, c := at(last-1, Data, Runnable)
		for _, want := range []Ticket{last, 1, 2} {
			before := c.n.Load()
			ticket := p.Arm()
			if ticket != want || ticketOf(p.word.Load()) != want {
				t.Fatalf("armed with ticket %d, the word is %s, want ticket %d", ticket, show(p.word.Load()), want)
			}
			if asleep && !p.Commit() {
				t.Fatal("no waker won, and it did not commit")
			}
			if want != last {
				if o := p.Wake(last, Cancelled, nil); o != Stale {
					t.Fatalf("a wake with the last ticket: %v in %s", o, show(p.word.Load()))
				}
			}
			if o := p.Wake(ticket, Data, nil); o != Won || p.Reason() != Data || (c.n.Load() > before) != asleep {
				t.Fatalf("ticket %d, asleep %v: %v, readied %v, reason %d", ticket, asleep, o, c.n.Load() > before, p.Reason())
			}
		}
	}
}

// A waker with an old ticket can neither end nor delay a later wait.
//
// Spec: PK-08 (a stale wake changes nothing)
// Spec: PK-09 (checking the ticket and changing the state is one step)
// Spec: PK-19 (a late owner consumes no wake of the next wait)
// Spec: PK-33 (a wake of a running fiber has no later effect)
func TestStaleWakeChangesNothing(t *testing.T) {
	p, c := at(0, None, Running)
	old := p.Arm()
	p.Commit()
	if o := p.Wake(old, Data, nil); o != Won {
		t.Fatal(o)
	}
	if o := p.Wake(old, Cancelled, nil); o != Lost { // the parker runs, and has not armed again
		t.Fatal(o)
	}
	ticket := p.Arm()
	if o := p.Wake(old, Cancelled, nil); o != Stale {
		t.Fatal(o)
	}
	if !p.Commit() {
		t.Fatal("a stale wake notified the next wait")
	}
	if o := p.Wake(old, Cancelled, nil); o != Stale || p.State() != Parked {
		t.Fatal(o, p.State())
	}
	if o := p.Wake(ticket, Data, nil); o != Won || p.Reason() != Data {
		t.Fatal(o, p.Reason())
	}
	if c.n.Load() != 2 {
		t.Fatalf("two waits were committed, readied %d times", c.n.Load())
	}
}

// Wakers race with each other and with the commit. For each wait one of them wins, the reason is the winner's, and the
// parker is readied once: by the winner if the commit came first, by the committer if not.
//
// Spec: PK-10 (exactly one ends a wait)
// Spec: PK-11 (a wake reports whether it won)
// Spec: PK-14 (a wake between arm and commit is not lost)
// Spec: PK-15 (the winner of a PARKED wait enqueues it once)
// Spec: PK-32 (a second wake reports lost)
func TestOneWinner(t *testing.T) {
	const wakers = 4
	rounds := 5000
	if testing.Short() {
		rounds = 1000
	}
	p, c := at(0, None, Running)
	byCommitter, byWaker := 0, 0
	for range rounds {
		before := c.n.Load()
		ticket := p.Arm()
		var won, by atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range wakers {
			all.Go(func() {
				<-start
				if p.Wake(ticket, Reason(10+i), nil) == Won {
					won.Add(1)
					by.Store(int64(10 + i))
				}
			})
		}
		close(start)
		if !p.Commit() {
			byCommitter++
			p.MakeReady(nil)
		} else {
			byWaker++
		}
		all.Wait()
		if won.Load() != 1 || p.Reason() != Reason(by.Load()) {
			t.Fatalf("%d won, the last that did gave reason %d, the word has %d", won.Load(), by.Load(), p.Reason())
		}
		if n := c.n.Load() - before; n != 1 {
			t.Fatalf("readied %d times", n)
		}
	}
	t.Logf("readied %d times by the committer, %d times by a waker", byCommitter, byWaker)
}

// The parker disarms its wait while others wake it: either Disarm succeeded and no waker won, or one waker won.
//
// Spec: PK-10 (exactly one ends a wait)
// Spec: PK-27 (a failed publication goes back to RUNNING)
func TestDisarmAgainstWake(t *testing.T) {
	p, c := at(0, None, Running)
	for range 2000 {
		ticket := p.Arm()
		var outcome Outcome
		var all sync.WaitGroup
		all.Go(func() { outcome = p.Wake(ticket, Data, nil) })
		back := p.Disarm()
		all.Wait()
		if back == (outcome == Won) {
			t.Fatalf("disarmed: %v; the wake %v", back, outcome)
		}
		if !back && p.Reason() != Data {
			t.Fatalf("lost to a wake that left reason %d", p.Reason())
		}
	}
	if c.n.Load() != 0 {
		t.Fatal("a wait that was never committed readied its owner")
	}
}
