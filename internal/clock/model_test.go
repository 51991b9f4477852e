package clock

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The wheel and the virtual clock, compared on random histories with a slow, obvious model: a slice sorted by deadline.
//
// A failure prints its seed; go test -run Model -seed N repeats it.

var seedFlag = flag.Uint64("seed", 0, "play one random history again")

// eachSeed runs a history for n seeds, or for the seed given by the flag.
func eachSeed(t *testing.T, n int, history func(t *testing.T, rng *rand.Rand)) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = seeds[:0]
		for range n {
			seeds = append(seeds, rand.Uint64())
		}
	}
	for _, seed := range seeds {
		history(t, rand.New(rand.NewPCG(seed, 0)))
		if t.Failed() {
			t.Fatalf("replay: go test -run '^%s$' -seed %d", t.Name(), seed)
		}
	}
}

func scale(t *testing.T, long, short int) int {
	t.Helper()
	if testing.Short() {
		return short
	}
	return long
}

// model is a clock in its simplest form.
type model struct {
	now   int64
	armed []armed // by deadline, ties in the order of arming
}

type armed struct {
	when   int64
	id     int
	ticket uint64
}

func (m *model) arm(id int, when int64, ticket uint64) {
	when = max(when, m.now)
	i := len(m.armed)
	for i > 0 && m.armed[i-1].when > when {
		i--
	}
	m.armed = slices.Insert(m.armed, i, armed{when, id, ticket})
}

func (m *model) stop(id int) bool {
	i := slices.IndexFunc(m.armed, func(a armed) bool { return a.id == id })
	if i < 0 {
		return false
	}
	m.armed = slices.Delete(m.armed, i, i+1)
	return true
}

func (m *model) advance(to int64, expire func(armed)) {
	for len(m.armed) > 0 && m.armed[0].when <= to {
		a := m.armed[0]
		m.armed = slices.Delete(m.armed, 0, 1)
		m.now = a.when
		expire(a)
	}
	m.now = to
}

func (m *model) advanceToNext(expire func(armed)) {
	m.now = m.armed[0].when
	n := 1
	for n < len(m.armed) && m.armed[n].when == m.now {
		n++
	}
	due := slices.Clone(m.armed[:n])
	m.armed = slices.Delete(m.armed, 0, n)
	for _, a := range due {
		expire(a)
	}
}

// randomWhen picks deadlines of every magnitude, with ties, in the past and at the end of time.
func randomWhen(rng *rand.Rand, now int64) int64 {
	switch rng.IntN(12) {
	case 0:
		return now - rng.Int64N(1000)
	case 1:
		return math.MaxInt64 - rng.Int64N(3)
	case 2, 3, 4:
		return now + rng.Int64N(8) // ties
	case 5:
		return (now | 63<<rng.IntN(40)) + rng.Int64N(3) // around the ends of slots
	default:
		d := rng.Int64N(1 << rng.IntN(62))
		if now > math.MaxInt64-d {
			return math.MaxInt64
		}
		return now + d
	}
}

type event struct {
	at     int64
	ticket uint64
}

// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
// Spec: TM-05 (timers fire in order)
func TestModelVirtual(t *testing.T) {
	eachSeed(t, scale(t, 300, 60), func(t *testing.T, rng *rand.Rand) {
		v, m := NewVirtual(), &model{}
		timers := make([]Timer, 100)
		var got, want []event
		tickets := uint64(0)

		// Every third ticket arms its timer again, once, from inside Expire, at a time that both sides can compute.
		again := func(now int64, ticket uint64) (when int64, next uint64, ok bool) {
			const second = 1 << 40
			return now + int64(ticket%5)*int64(ticket%1000), ticket | second, ticket%3 == 0 && ticket < second
		}
		targets := make([]Target, len(timers))
		for id := range timers {
			targets[id] = targetFunc(func(ticket uint64) {
				got = append(got, event{v.Now(), ticket})
				if when, next, ok := again(v.Now(), ticket); ok {
					v.Arm(&timers[id], when, targets[id], next)
				}
			})
		}
		expire := func(a armed) {
			want = append(want, event{m.now, a.ticket})
			if when, next, ok := again(m.now, a.ticket); ok {
				m.arm(a.id, when, next)
			}
		}

		for step := range 400 {
			switch rng.IntN(8) {
			default:
				id := rng.IntN(len(timers))
				if timers[id].place == 0 {
					tickets++
					when := randomWhen(rng, v.Now())
					v.Arm(&timers[id], when, targets[id], tickets)
					m.arm(id, when, tickets)
				}
			case 0, 1:
				id := rng.IntN(len(timers))
				if a, b := v.Stop(&timers[id]), m.stop(id); a != b {
					t.Fatalf("step %d: Stop(%d) is %v, the model's is %v", step, id, a, b)
				}
			case 2:
				d := rng.Int64N(1 << rng.IntN(50))
				v.Advance(time.Duration(d))
				if m.now > math.MaxInt64-d {
					d = math.MaxInt64 - m.now
				}
				m.advance(m.now+d, expire)
			case 3:
				ok := v.AdvanceToNext()
				if ok != (len(m.armed) > 0) {
					t.Fatalf("step %d: AdvanceToNext is %v with %d armed", step, ok, len(m.armed))
				}
				if ok {
					m.advanceToNext(expire)
				}
			}
			if err := v.wheel.check(); err != nil {
				t.Errorf("step %d: %v", step, err)
			}
			if v.Now() != m.now || v.Len() != len(m.armed) || v.wheel.cur > m.now {
				t.Errorf("step %d: now %d, %d armed, cur %d; the model has %d, %d", step, v.Now(), v.Len(), v.wheel.cur, m.now, len(m.armed))
			}
			if !slices.Equal(got, want) {
				t.Errorf("step %d: fired %v, the model %v", step, got, want)
			}
			if t.Failed() {
				return
			}
			got, want = got[:0], want[:0]
		}
	})
}

// The bare wheel, with splits cut into steps of a few moves, and with arming and stopping between the steps, as happens
// between two holds of the real clock's lock.
//
// Spec: TM-04 (no timer is lost)
// Spec: TM-05 (timers fire in order)
func TestModelWheelInSteps(t *testing.T) {
	eachSeed(t, scale(t, 300, 60), func(t *testing.T, rng *rand.Rand) {
		var w wheel
		var b batch
		m := &model{}
		timers := make([]Timer, 600)
		now, tickets := int64(0), uint64(0)
		width := int64(1) << rng.IntN(40) // crowded histories and sparse ones
		for step := range 300 {
			for range rng.IntN(20) {
				id := rng.IntN(len(timers))
				if w.stop(&timers[id]) != m.stop(id) {
					t.Errorf("step %d: Stop differs", step)
				}
				if rng.IntN(4) != 0 {
					tickets++
					when := now + rng.Int64N(width)
					w.arm(&timers[id], when, targetFunc(nil), tickets)
					// If a pass has been interrupted, a timer that is armed too late comes after the point where the
					// pass stopped.
					m.now = w.cur
					m.arm(id, when, tickets)
				}
			}
			if w.split == 0 && rng.IntN(2) == 0 {
				now += rng.Int64N(width)
			}
			more := w.take(now, &b, rng.IntN(6))
			for i := range b.n {
				if len(m.armed) == 0 || m.armed[0].ticket != b.list[i].ticket || m.armed[0].when > now {
					t.Errorf("step %d: took ticket %d at %d, the model has %v", step, b.list[i].ticket, now, m.armed)
					return
				}
				if w.cur < m.armed[0].when {
					t.Errorf("step %d: cur %d is behind the fired deadline %d: a late arming could get before it", step, w.cur, m.armed[0].when)
				}
				m.armed = m.armed[1:]
			}
			b.n = 0
			if !more && len(m.armed) > 0 && m.armed[0].when <= now {
				t.Errorf("step %d: left %v at %d", step, m.armed[0], now)
			}
			latest := int64(unset)
			if len(m.armed) > 0 {
				latest = m.armed[0].when
			}
			if when := w.next(); !more && (when > latest || when <= now || latest == unset && when != unset) {
				t.Errorf("step %d: next is %d at %d, the model has %v", step, when, now, m.armed)
			}
			if err := w.check(); err != nil {
				t.Errorf("step %d: %v", step, err)
			}
			if t.Failed() {
				return
			}
		}
	})
}
