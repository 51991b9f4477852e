package clock

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The real clock. These tests wait for signals, never for a length of time; if they need time to pass, they arm a
// timer.

// punctual checks a timer whose ticket is its deadline.
type punctual struct {
	t     *testing.T
	clock *Real
	last  uint64
	done  *sync.WaitGroup
}

func (p *punctual) Expire(ticket uint64) {
	if now := p.clock.Now(); uint64(now) < ticket {
		p.t.Errorf("early: deadline %d at %d", ticket, now)
	}
	if ticket < p.last {
		p.t.Errorf("order: %d behind %d", ticket, p.last)
	}
	p.last = ticket // passes do not overlap, so neither do calls
	p.done.Done()
}

// 100,000 timers over a second: none fires early, none is lost, all fire in order, in few passes.
//
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
func TestDenseNeverEarly(t *testing.T) {
	n, span := scale(t, 100_000, 20_000), time.Duration(scale(t, int(time.Second), int(time.Second)/5))
	c := NewReal()
	defer c.Close()
	var done sync.WaitGroup
	p := &punctual{t: t, clock: c, done: &done}
	timers := make([]Timer, n)
	done.Add(n)
	begin := c.Now() + int64(time.Second) // all are armed before the first is due, so that the order is defined
	for i := range timers {
		when := begin + rand.Int64N(int64(span))
		c.Arm(&timers[i], when, p, uint64(when))
	}
	if now := c.Now(); now > begin {
		t.Skipf("arming took %v: this machine is too busy to tell the order", time.Duration(now))
	}
	done.Wait()
	most := uint64(span/Gap) + 8
	t.Logf("%d timers over %v: %d passes", n, span, c.Passes())
	if passes := c.Passes(); passes > most {
		t.Errorf("%d passes, at most %d expected", passes, most)
	}
}

// 100,000 timers an hour away cost nothing: in a second the only pass is for the timer that ends the second.
func TestIdleHasNoPasses(t *testing.T) {
	c := NewReal()
	defer c.Close()
	timers := make([]Timer, 100_000)
	never := targetFunc(func(uint64) { t.Error("an hour has not passed") })
	for i := range timers {
		c.Arm(&timers[i], int64(time.Hour)+rand.Int64N(int64(time.Hour)), never, 0)
	}
	over := make(chan struct{})
	second := int64(scale(t, int(time.Second), int(time.Second)/10))
	c.Arm(new(Timer), c.Now()+second, targetFunc(func(uint64) { close(over) }), 0)
	<-over
	if n := c.Passes(); n != 1 {
		t.Fatalf("%d passes, want the one that ended the wait", n)
	}
	if n := c.Len(); n != len(timers) {
		t.Fatalf("%d timers left of %d", n, len(timers))
	}
}

// The Go timer is moved only to earlier times.
func TestGoTimerMovesForwardOnly(t *testing.T) {
	c := NewReal()
	defer c.Close()
	var a, b, e Timer
	at := func(want time.Duration) {
		t.Helper()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.wakeAt != int64(want) {
			t.Errorf("set to %v, not %v", time.Duration(c.wakeAt), want)
		}
	}
	at(unset)
	c.Arm(&a, int64(2*time.Hour), &counter{}, 0)
	at(2 * time.Hour)
	c.Arm(&b, int64(3*time.Hour), &counter{}, 0)
	at(2 * time.Hour)
	c.Arm(&e, int64(1*time.Hour), &counter{}, 0)
	at(1 * time.Hour)
	c.Stop(&e)
	at(1 * time.Hour)
	c.pass() // a stray callback finds nothing and leaves the Go timer be
	at(1 * time.Hour)
}

// A callback that finds a pass running records that the Go timer has fired, so that the running pass sets it again.
func TestSpentTimerIsNoticed(t *testing.T) {
	c := NewReal()
	defer c.Close()
	c.mu.Lock()
	c.firing = true // as a stale pass would
	c.wakeAt = 0
	c.mu.Unlock()
	c.pass()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.firing = false
	if c.wakeAt != unset || c.passes != 0 {
		t.Fatalf("wakeAt %d, %d passes", c.wakeAt, c.passes)
	}
}

// Each arming ends in exactly one of Stop==true and Expire, with arming, stopping and firing racing. A node is armed
// again as soon as Stop has returned, without waiting for an Expire that Stop was too late to prevent.
//
// Spec: TM-04 (no timer is lost)
func TestStopRacesFiring(t *testing.T) {
	c := NewReal()
	const owners = 8
	rounds := scale(t, 20_000, 3_000)
	outcomes := make([]atomic.Int32, owners*rounds)
	var expired, ownersDone sync.WaitGroup
	var stopped atomic.Int64
	count := targetFunc(func(ticket uint64) {
		outcomes[ticket].Add(1)
		expired.Done()
	})
	for owner := range owners {
		ownersDone.Add(1)
		go func() {
			defer ownersDone.Done()
			rng := rand.New(rand.NewPCG(uint64(owner), 0))
			var timer, pace Timer
			turn := make(chan struct{}, 1)
			for round := range rounds {
				ticket := uint64(owner*rounds + round)
				expired.Add(1)
				c.Arm(&timer, c.Now()+rng.Int64N(int64(Gap)), count, ticket)
				if round%16 == 0 { // let a pass come in between
					c.Arm(&pace, c.Now()+rng.Int64N(int64(Gap)), targetFunc(func(uint64) { turn <- struct{}{} }), 0)
					<-turn
				}
				if c.Stop(&timer) {
					outcomes[ticket].Add(1)
					stopped.Add(1)
					expired.Done()
				}
			}
		}()
	}
	ownersDone.Wait()
	expired.Wait()
	c.Close()
	for ticket := range outcomes {
		if n := outcomes[ticket].Load(); n != 1 {
			t.Fatalf("ticket %d ended %d times", ticket, n)
		}
	}
	t.Logf("%d stopped, %d expired", stopped.Load(), int64(len(outcomes))-stopped.Load())
	if n := c.Len(); n != 0 {
		t.Fatalf("%d timers left", n)
	}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
}

// Chains of timers that arm themselves from Expire, from many goroutines at once, come to their end.
func TestRearmFromExpire(t *testing.T) {
	c := NewReal()
	defer c.Close()
	links := scale(t, 200, 50)
	var done sync.WaitGroup
	for i := range 200 {
		done.Add(1)
		go func() {
			timer, left := new(Timer), links
			var target Target
			target = targetFunc(func(ticket uint64) {
				if uint64(c.Now()) < ticket {
					t.Errorf("early: %d", ticket)
				}
				if left--; left == 0 {
					done.Done()
					return
				}
				when := c.Now() + int64(i%7)*int64(Gap)/4 - 1
				c.Arm(timer, when, target, uint64(max(when, 0)))
			})
			c.Arm(timer, 0, target, 0)
		}()
	}
	done.Wait()
}

// Nothing fires once Close has returned, whatever was going on when it was called.
func TestCloseIsSilent(t *testing.T) {
	for range scale(t, 300, 50) {
		c := NewReal()
		var closed atomic.Bool
		started := make(chan struct{}, 1)
		timers := make([]Timer, 2000)
		target := targetFunc(func(uint64) {
			if closed.Load() {
				t.Error("fired after Close")
			}
			select {
			case started <- struct{}{}:
			default:
			}
		})
		now := c.Now()
		for i := range timers {
			c.Arm(&timers[i], now+rand.Int64N(int64(time.Millisecond)), target, 0)
		}
		<-started
		var both sync.WaitGroup
		both.Go(c.Close)
		c.Close()
		closed.Store(true)
		both.Wait()
		left := c.Len()
		c.Arm(new(Timer), 0, target, 0)
		c.pass() // a callback that was on its way
		for i := range timers {
			if c.Stop(&timers[i]) {
				left--
			}
		}
		if left != 0 || c.Len() != 1 {
			t.Fatalf("%d timers can not be stopped after Close, %d left", left, c.Len())
		}
	}
}

// Timers of several shards fire as those of one wheel would, whatever shard each is in. Those of one nanosecond fire in
// the order of arming if they are in one shard. The deadlines are an hour away: no pass comes by itself.
//
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
// Spec: TM-05 (timers fire in order)
func TestModelShards(t *testing.T) {
	eachSeed(t, scale(t, 100, 20), func(t *testing.T, rng *rand.Rand) {
		c := NewReal()
		defer c.Close()
		c.divide(1 << rng.IntN(4))
		m := &model{}
		timers := make([]Timer, 3*batchSize)
		shard := func(a armed) *shard { return c.shardOf(&timers[a.id]) }
		now, tickets := int64(time.Hour), uint64(0)
		width := int64(1) << rng.IntN(24)
		var fired []uint64
		note := targetFunc(func(ticket uint64) { fired = append(fired, ticket) })
		for step := range 60 {
			for range rng.IntN(200) {
				id := rng.IntN(len(timers))
				if c.Stop(&timers[id]) != m.stop(id) {
					t.Errorf("step %d: Stop differs", step)
				}
				if rng.IntN(8) == 0 {
					continue
				}
				if rng.IntN(4) != 0 { // the others keep the shard that they had, or have the one of their address
					timers[id].Near(rng.Uint32())
				}
				tickets++
				when := now + 1 + rng.Int64N(width)
				c.Arm(&timers[id], when, note, tickets)
				m.arm(id, when, tickets)
			}
			now += rng.Int64N(width)
			c.fire(now)
			for _, ticket := range fired {
				i := slices.IndexFunc(m.armed, func(a armed) bool { return a.ticket == ticket })
				if i < 0 || m.armed[0].when > now {
					t.Errorf("step %d: fired %d at %d, the model has %v", step, ticket, now, m.armed)
					return
				}
				for _, a := range m.armed[:i] {
					if a.when < m.armed[i].when || shard(a) == shard(m.armed[i]) {
						t.Errorf("step %d: fired %v before %v", step, m.armed[i], a)
						return
					}
				}
				m.armed = slices.Delete(m.armed, i, i+1)
			}
			fired = fired[:0]
			if len(m.armed) > 0 && m.armed[0].when <= now {
				t.Errorf("step %d: left %v at %d", step, m.armed[0], now)
			}
			c.mu.Lock()
			c.wakeAt = min(c.wakeAt, c.earliest()) // as a pass does when it ends
			c.mu.Unlock()
			if err := c.check(); err != nil {
				t.Errorf("step %d: %v", step, err)
			}
			if n := c.Len(); n != len(m.armed) {
				t.Errorf("step %d: %d armed, the model has %d", step, n, len(m.armed))
			}
			if t.Failed() {
				return
			}
		}
	})
}
