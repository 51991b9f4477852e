package clock

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir/internal/race"
)

// The real clock in a bubble of testing/synctest, where the time that Go's timers see moves only when every goroutine
// is blocked. So these tests know to the nanosecond when a pass comes, and a day takes no time.

// inBubble runs f with a clock whose passes record the time and the ticket of each timer that they fire.
func inBubble(t *testing.T, f func(c *Real, note Target, got func(n int) []event)) {
	synctest.Test(t, func(t *testing.T) {
		c := NewReal()
		defer c.Close()
		c.gap = int64(Gap) // as outside
		fired := make(chan event, 1000)
		note := targetFunc(func(ticket uint64) { fired <- event{c.Now(), ticket} })
		f(c, note, func(n int) []event {
			var list []event
			for range n {
				list = append(list, <-fired)
			}
			return list
		})
	})
}

func us(n int) int64 { return int64(n) * int64(time.Microsecond) }

// A lone timer, however far away, is fired at its deadline, and the clock wakes once for it.
//
// Spec: TM-08 (one Go timer stands for all)
func TestLoneTimerIsPrecise(t *testing.T) {
	inBubble(t, func(c *Real, note Target, got func(int) []event) {
		for i, d := range []time.Duration{time.Millisecond, time.Second + 1, time.Hour + 12345, 10 * 365 * 24 * time.Hour} {
			when := c.Now() + int64(d)
			c.Arm(new(Timer), when, note, 0)
			if e := got(1)[0]; e.at != when || c.Passes() != uint64(i+1) {
				t.Errorf("%v: fired %v late, %d passes", d, time.Duration(e.at-when), c.Passes()-uint64(i))
			}
		}
	})
}

// Timers that become due within a gap of a pass wait for the end of the gap, and fire in one pass. After a rest the
// clock is precise again.
func TestDenseTimersAreBatched(t *testing.T) {
	inBubble(t, func(c *Real, note Target, got func(int) []event) {
		gap := int64(Gap)
		for i, when := range []int64{us(1000), us(1010), us(1020), us(1000) + gap + 1, us(5000)} {
			c.Arm(new(Timer), when, note, uint64(i))
		}
		want := []event{{us(1000), 0}, {us(1000) + gap, 1}, {us(1000) + gap, 2}, {us(1000) + 2*gap, 3}, {us(5000), 4}}
		if list := got(5); !slices.Equal(list, want) || c.Passes() != 4 {
			t.Errorf("fired %v in %d passes, want %v in 4", list, c.Passes(), want)
		}
		// The same for timers that are armed within the gap, even for the present.
		c.Arm(new(Timer), 0, note, 5)
		if e := got(1)[0]; e.at != us(5000)+gap {
			t.Errorf("fired at %v", time.Duration(e.at))
		}
	})
}

// Stopping the earliest timer does not move the Go timer: one pass finds nothing, and the others are on time.
func TestStoppedEarliestCostsOnePass(t *testing.T) {
	inBubble(t, func(c *Real, note Target, got func(int) []event) {
		timers := make([]Timer, 50)
		for i := range timers { // in one slot, whose floor is the deadline of the first
			c.Arm(&timers[i], int64(time.Hour)+us(1000*i), note, uint64(i))
		}
		for i := range timers[:49] {
			c.Stop(&timers[i])
		}
		if e := got(1)[0]; e.at != timers[49].when || e.ticket != 49 {
			t.Errorf("fired %d at %v", e.ticket, time.Duration(e.at))
		}
		if n := c.Passes(); n != 2 {
			t.Errorf("%d passes, want one in vain and one that fires", n)
		}
	})
}

// Timeouts that are armed and stopped all day long wake the clock about once for each length of a timeout, not once for
// each arming.
func TestStoppedTimeoutsRarelyWake(t *testing.T) {
	inBubble(t, func(c *Real, note Target, _ func(int) []event) {
		var timer, standing Timer
		c.Arm(&standing, int64(1000*time.Hour), note, 0)
		for range 100_000 {
			c.Arm(&timer, c.Now()+int64(5*time.Second), note, 0)
			time.Sleep(time.Millisecond) // of the bubble's time
			c.Stop(&timer)
		}
		if n := c.Passes(); n > 20 {
			t.Errorf("%d passes in 100 s", n)
		}
	})
}

// A day with 100,000 timers that are further away takes no pass at all.
func TestIdleDay(t *testing.T) {
	inBubble(t, func(c *Real, note Target, _ func(int) []event) {
		timers := make([]Timer, 100_000)
		for i := range timers {
			c.Arm(&timers[i], int64(25*time.Hour)+us(i*37), note, 0)
		}
		time.Sleep(24 * time.Hour) // of the bubble's time
		if n := c.Passes(); n != 0 {
			t.Errorf("%d passes", n)
		}
	})
}

// Close waits for the batch that is being fired, whose timers can no longer be stopped, and the clock takes no other.
func TestCloseWaitsForBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewReal()
		inside, leave := make(chan struct{}), make(chan struct{})
		fired := 0
		for i := range 3 * batchSize {
			c.Arm(new(Timer), us(1000), targetFunc(func(uint64) {
				if fired++; i == 0 {
					close(inside)
					<-leave
				}
			}), 0)
		}
		<-inside
		closed := make(chan struct{})
		go func() {
			c.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close has not waited for the running Expire")
		default:
		}
		close(leave)
		<-closed
		synctest.Wait()
		if fired != batchSize || c.Len() != 2*batchSize {
			t.Errorf("%d fired, %d still armed: want the one batch that was taken", fired, c.Len())
		}
	})
}

// During a pass only the pass moves the Go timer: it moves it once, at its end, for all timers that Expire has armed.
func TestArmInExpireLeavesGoTimer(t *testing.T) {
	inBubble(t, func(c *Real, note Target, got func(int) []event) {
		var at []int64
		c.Arm(new(Timer), us(1000), targetFunc(func(uint64) {
			for i := range 3 {
				c.Arm(new(Timer), us(9000-1000*i), note, uint64(i))
				c.mu.Lock()
				at = append(at, c.wakeAt)
				c.mu.Unlock()
			}
		}), 0)
		want := []event{{us(7000), 2}, {us(8000), 1}, {us(9000), 0}}
		if list := got(3); !slices.Equal(list, want) {
			t.Errorf("fired %v", list)
		}
		if !slices.Equal(at, []int64{unset, unset, unset}) {
			t.Errorf("the Go timer was set to %v while the pass ran", at)
		}
	})
}

// In a bubble there is no gap: timers that follow each other closely are all on time.
func TestNoGapInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewReal()
		defer c.Close()
		fired := make(chan event, 3)
		note := targetFunc(func(ticket uint64) { fired <- event{c.Now(), ticket} })
		for i := range 3 {
			c.Arm(new(Timer), int64(1+i), note, uint64(i))
		}
		for i := range 3 {
			if e := <-fired; e != (event{int64(1 + i), uint64(i)}) {
				t.Errorf("fired %v", e)
			}
		}
	})
}

// A clock in a bubble can be used only there. From elsewhere Arm panics and says so, and the timer is not armed.
func TestArmFromAnotherBubble(t *testing.T) {
	outside := NewReal()
	defer outside.Close()
	var inside *Real
	refused := func(c *Real) {
		t.Helper()
		var timer Timer
		defer func() {
			if s, _ := recover().(string); !strings.Contains(s, "bubble") {
				t.Errorf("Arm said %q", s)
			}
			if timer.place != 0 || c.Len() != 0 {
				t.Error("the timer is armed")
			}
		}()
		race.Disable() // as callers do: the panic leaves their section
		c.Arm(&timer, 1, targetFunc(func(uint64) {}), 0)
		race.Enable()
	}
	synctest.Test(t, func(*testing.T) {
		inside = NewReal()
		refused(outside)
	})
	refused(inside)
}
