package clock

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/race"
)

// ledger is a target that all timers of a big run share. The ticket is the deadline, so that it can check each expiry
// by itself: not early, not late, not out of order.
type ledger struct {
	t     *testing.T
	clock *Virtual
	fired int
	last  uint64
}

func (l *ledger) Expire(ticket uint64) {
	if now := l.clock.Now(); uint64(now) != ticket {
		l.t.Fatalf("deadline %d fired at %d", ticket, now)
	}
	if ticket < l.last {
		l.t.Fatalf("deadline %d fired behind %d", ticket, l.last)
	}
	l.last = ticket
	l.fired++
}

// A million timers over an hour, all armed at once.
//
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
func TestMillionInOrder(t *testing.T) {
	n := scale(t, 1_000_000, 50_000)
	v := NewVirtual()
	l := &ledger{t: t, clock: v}
	timers := make([]Timer, n)
	for i := range timers {
		when := rand.Int64N(int64(time.Hour))
		v.Arm(&timers[i], when, l, uint64(when))
	}
	v.Advance(time.Hour)
	if l.fired != n || v.Len() != 0 {
		t.Fatalf("%d of %d fired, %d left", l.fired, n, v.Len())
	}
}

// Ten million timers arm and fire while time advances: a timer that has fired is armed again, by its Expire, until the
// number is reached.
//
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
// Spec: TM-05 (timers fire in order)
func TestTenMillionArmedAndFired(t *testing.T) {
	total, live := scale(t, 10_000_000, 200_000), 100_000
	v := NewVirtual()
	r := &rearmer{ledger: ledger{t: t, clock: v}, left: total, timers: make(map[uint64][]*Timer)}
	for range live {
		r.arm(new(Timer))
	}
	for v.AdvanceToNext() {
	}
	if r.fired != total || r.left != 0 || v.Len() != 0 {
		t.Fatalf("%d of %d fired, %d not armed, %d still armed", r.fired, total, r.left, v.Len())
	}
	if err := v.wheel.check(); err != nil {
		t.Fatal(err)
	}
}

// rearmer finds the timer of a deadline again, in the order of arming, and so checks that ties keep that order.
type rearmer struct {
	ledger
	left   int
	timers map[uint64][]*Timer
}

func (r *rearmer) arm(t *Timer) {
	r.left--
	when := r.clock.Now() + rand.Int64N(1<<rand.IntN(36)) // from none at all to a minute
	r.timers[uint64(when)] = append(r.timers[uint64(when)], t)
	r.clock.Arm(t, when, r, uint64(when))
}

func (r *rearmer) Expire(ticket uint64) {
	r.ledger.Expire(ticket)
	t := r.timers[ticket][0]
	if t.place != 0 {
		r.t.Fatalf("deadline %d: the timer armed first is still armed", ticket)
	}
	if rest := r.timers[ticket][1:]; len(rest) > 0 {
		r.timers[ticket] = rest
	} else {
		delete(r.timers, ticket)
	}
	if r.left > 0 {
		r.arm(t)
	}
}

// Timers for one deadline that start at different levels keep the order of arming: the first is armed from far away,
// the last from close by, when the slots between have been split.
//
// Spec: TM-05 (timers fire in order)
func TestTiesAcrossLevels(t *testing.T) {
	v := NewVirtual()
	var got []uint64
	note := targetFunc(func(ticket uint64) { got = append(got, ticket) })
	const when = 1<<40 + 12345
	timers := make([]Timer, 80)
	for i := range 40 {
		v.Advance(time.Duration(when - 1<<(40-i) - v.Now()))
		v.Arm(&timers[2*i], when, note, uint64(i))
		v.Arm(&timers[2*i+1], when-1<<(40-i)/2, targetFunc(func(uint64) {}), 0) // something on the way
		if err := v.wheel.check(); err != nil {
			t.Fatal(err)
		}
	}
	v.Advance(when)
	if len(got) != 40 {
		t.Fatalf("%d of 40 fired", len(got))
	}
	for i, ticket := range got {
		if uint64(i) != ticket {
			t.Fatalf("fired as %v", got)
		}
	}
}

// One timer for each power of two up to the end of int64, and the end itself.
func TestFarDeadlines(t *testing.T) {
	v := NewVirtual()
	var got []int64
	note := targetFunc(func(uint64) { got = append(got, v.Now()) })
	var want []int64
	for i := range 63 {
		want = append(want, 1<<i)
	}
	want = append(want, math.MaxInt64)
	for i := len(want) - 1; i >= 0; i-- {
		v.Arm(new(Timer), want[i], note, 0)
	}
	for v.AdvanceToNext() {
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("fired at %v", got)
		}
	}
	v.Advance(time.Hour)
	if v.Now() != math.MaxInt64 {
		t.Fatalf("past the end of time: %d", v.Now())
	}
}

func TestPastFiresAtNextAdvance(t *testing.T) {
	v := NewVirtual()
	v.Advance(time.Second)
	fired := 0
	for _, when := range []int64{-1, 0, math.MinInt64, int64(time.Second)} {
		v.Arm(new(Timer), when, targetFunc(func(uint64) { fired++ }), 0)
	}
	if fired != 0 {
		t.Fatal("Arm fired a timer itself")
	}
	v.Advance(0)
	if fired != 4 || v.Now() != int64(time.Second) {
		t.Fatalf("%d of 4 fired, now %d", fired, v.Now())
	}
}

// A node is free before its Expire runs: in a batch of two, the first stops and arms the second. The late Expire has
// the ticket of its own arming.
//
// Spec: TM-11 (a late timer changes nothing)
func TestRearmBeforeOwnExpire(t *testing.T) {
	v := NewVirtual()
	var a, b Timer
	var got []uint64
	note := targetFunc(func(ticket uint64) { got = append(got, ticket) })
	v.Arm(&a, 10, targetFunc(func(uint64) {
		if v.Stop(&b) {
			t.Error("Stop took back a timer that was taken for firing")
		}
		v.Arm(&b, 20, note, 2)
	}), 0)
	v.Arm(&b, 10, note, 1)
	v.Advance(30)
	if len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Fatalf("tickets %v, not 1 and 2", got)
	}
}

func TestWrongUse(t *testing.T) {
	says := func(want string, f func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if s, _ := recover().(string); !strings.Contains(s, want) {
				t.Errorf("panic %q, want %q", s, want)
			}
		}()
		f()
	}
	v, r := NewVirtual(), NewReal()
	defer r.Close()
	var a, b, c Timer
	v.Arm(&a, 10, targetFunc(func(uint64) { says("being moved", func() { v.Advance(1) }) }), 0)
	r.Arm(&b, math.MaxInt64, &counter{}, 0)
	says("already armed", func() { race.Disable(); v.Arm(&a, 10, &counter{}, 0) }) // the panic leaves the section
	says("already armed", func() { race.Disable(); r.Arm(&b, 10, &counter{}, 0) })
	says("negative", func() { v.Advance(-1) })
	v.Advance(10)
	if v.Stop(&a) || v.Stop(&c) || r.Stop(&c) {
		t.Error("Stop of an idle timer is true")
	}
	if !r.Stop(&b) || r.Stop(&b) {
		t.Error("Stop is not true once")
	}
}

type counter struct{ expired int }

func (c *counter) Expire(uint64) { c.expired++ }

// Spec: TM-07 (a timed wait allocates no timer)
func TestNoAllocation(t *testing.T) {
	v, r := NewVirtual(), NewReal()
	defer r.Close()
	var a, b Timer
	target := &counter{}
	if n := testing.AllocsPerRun(1000, func() {
		v.Arm(&a, v.Now()+1000, target, 0)
		v.Arm(&b, v.Now()+2000, target, 0)
		v.Stop(&a)
		v.Advance(3000)
	}); n != 0 {
		t.Errorf("virtual: %v allocations", n)
	}
	hour := r.Now() + int64(time.Hour)
	if n := testing.AllocsPerRun(1000, func() {
		r.Arm(&a, hour, target, 0)
		r.Stop(&a)
	}); n != 0 {
		t.Errorf("real: %v allocations", n)
	}
	for i := range v.batch.list {
		if v.batch.list[i].target != nil {
			t.Fatal("a spent batch keeps a target alive")
		}
	}
	if a.target != nil || b.target != nil {
		t.Fatal("an idle timer keeps a target alive")
	}
}

// A clock that was rewound is as good as a new one. Its timers do not fire, and can be armed again.
//
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
func TestRewind(t *testing.T) {
	v := NewVirtual()
	rng := rand.New(rand.NewPCG(1, 2))
	timers := make([]Timer, 50)
	for range 1000 {
		l := &ledger{t: t, clock: v}
		for i := range timers {
			when := rng.Int64N(1 << rng.IntN(62))
			v.Arm(&timers[i], when, l, uint64(when))
		}
		stopped := 0
		for i := range rng.IntN(10) {
			if v.Stop(&timers[i]) {
				stopped++
			}
		}
		whole := rng.IntN(2) == 0
		for v.AdvanceToNext() && (whole || rng.IntN(10) > 0) {
		}
		if whole && l.fired+stopped != len(timers) {
			t.Fatalf("%d of %d fired", l.fired+stopped, len(timers))
		}
		if v.Rewind(); v.Now() != 0 || v.Len() != 0 || v.AdvanceToNext() {
			t.Fatalf("%v after the rewind, with %d timers", v.Now(), v.Len())
		}
		for i := range timers {
			if v.Stop(&timers[i]) {
				t.Fatal("a timer was armed after the rewind")
			}
		}
	}
}

// TestOperationsTakeConstantTime: with 100,000 timers in one slot, arming, stopping and firing one costs about the same
// as with none. An operation that looked at each timer would take thousands of times as long.
//
// Spec: TM-06 (arming and stopping takes constant time)
func TestOperationsTakeConstantTime(t *testing.T) {
	const others, rounds, limit = 100_000, 200, 100
	target := &counter{}
	cost := func(v *Virtual) (arm, stop, fire time.Duration) {
		var arms, stops, fires []time.Duration
		var timer Timer
		timed := func(into *[]time.Duration, f func()) {
			start := time.Now()
			f()
			*into = append(*into, time.Since(start))
		}
		for range rounds {
			timed(&arms, func() { v.Arm(&timer, int64(2*time.Hour), target, 0) })
			timed(&stops, func() { v.Stop(&timer) })
			v.Arm(&timer, v.Now()+1, target, 0)
			timed(&fires, func() { v.Advance(1) })
		}
		median := func(all []time.Duration) time.Duration {
			slices.Sort(all)
			return max(all[len(all)/2], 100*time.Nanosecond) // below that the clock is too coarse to compare
		}
		return median(arms), median(stops), median(fires)
	}
	full := NewVirtual()
	timers := make([]Timer, others)
	for i := range timers {
		full.Arm(&timers[i], int64(2*time.Hour)+int64(i), target, 0)
	}
	arm0, stop0, fire0 := cost(NewVirtual())
	arm1, stop1, fire1 := cost(full)
	t.Logf("arm %v and %v, stop %v and %v, fire %v and %v", arm0, arm1, stop0, stop1, fire0, fire1)
	if arm1 > limit*arm0 || stop1 > limit*stop0 || fire1 > limit*fire0 {
		t.Errorf("with %d others: arm %v, not %v; stop %v, not %v; fire %v, not %v", others, arm1, arm0, stop1, stop0, fire1, fire0)
	}
	if target.expired != 2*rounds {
		t.Errorf("%d timers fired, want %d", target.expired, 2*rounds)
	}
}
