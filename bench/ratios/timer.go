package main

import (
	"math/rand/v2"
	"time"

	"github.com/coir-go/coir/internal/clock"
)

// The cost of arming a timer and stopping it again, while a million others are armed.
//
// Nearly every timeout is used in this way: it is armed, the answer arrives, and it is stopped. coir's timers are nodes
// inside the waiter that uses them, so the timer wheel is measured by itself here, through the same calls that the
// runtime makes. The operation includes reading the clock for the deadline, as in time.AfterFunc. Deadlines are random
// between a minute and an hour, from the same seed on both sides, and no timer fires during the measurement.
//
// There are two programs, because they stress different things. In arm-stop the million timers stay, and one timer is
// armed and stopped among them. In replace each timer is stopped when a million newer ones have been armed. So every
// stop accesses cold memory, and a structure that only marks stopped timers must clean them up.

//
// time.Timer.Stop only marks the timer. The Go runtime sweeps its heap when a quarter of it is marked, which takes tens
// of milliseconds at this size. A round is long enough to include a few sweeps; otherwise Go would look better in the
// rounds without one.

const (
	outstanding = 1_000_000
	timerRound  = 200 * time.Millisecond
)

// delays returns the delays that both sides use. Their number is a power of two.
func delays() []time.Duration {
	r := rand.New(rand.NewPCG(1, 2))
	d := make([]time.Duration, 1<<16)
	for i := range d {
		d[i] = time.Minute + time.Duration(r.Int64N(int64(59*time.Minute)))
	}
	return d
}

// never is the target of a timer that must not fire.
type never struct{}

func (never) Expire(uint64) { panic("a timer that was a minute away fired") }

func armStopWheel() side {
	c, d := clock.NewReal(), delays()
	million := make([]clock.Timer, outstanding)
	for i := range million {
		c.Arm(&million[i], c.Now()+int64(d[i%len(d)]), never{}, 1)
	}
	var t clock.Timer
	return side{
		loop: func(n int) {
			for i := range n {
				c.Arm(&t, c.Now()+int64(d[i%len(d)]), never{}, 1)
				mustStop(c.Stop(&t))
			}
		},
		close: func() { stopAll(c, million) },
	}
}

func armStopAfterFunc() side {
	d := delays()
	million := make([]*time.Timer, outstanding)
	for i := range million {
		million[i] = time.AfterFunc(d[i%len(d)], fired)
	}
	return side{
		loop: func(n int) {
			for i := range n {
				mustStop(time.AfterFunc(d[i%len(d)], fired).Stop())
			}
		},
		close: func() {
			for _, t := range million {
				t.Stop()
			}
		},
	}
}

func replaceWheel() side {
	c, d := clock.NewReal(), delays()
	million := make([]clock.Timer, outstanding)
	for i := range million {
		c.Arm(&million[i], c.Now()+int64(d[i%len(d)]), never{}, 1)
	}
	oldest := 0
	return side{
		loop: func(n int) {
			for i := range n {
				t := &million[oldest]
				mustStop(c.Stop(t))
				c.Arm(t, c.Now()+int64(d[i%len(d)]), never{}, 1)
				oldest = (oldest + 1) % outstanding
			}
		},
		close: func() { stopAll(c, million) },
	}
}

func replaceAfterFunc() side {
	d := delays()
	million := make([]*time.Timer, outstanding)
	for i := range million {
		million[i] = time.AfterFunc(d[i%len(d)], fired)
	}
	oldest := 0
	return side{
		loop: func(n int) {
			for i := range n {
				mustStop(million[oldest].Stop())
				million[oldest] = time.AfterFunc(d[i%len(d)], fired)
				oldest = (oldest + 1) % outstanding
			}
		},
		close: func() {
			for _, t := range million {
				t.Stop()
			}
		},
	}
}

func fired() { never{}.Expire(0) }

func mustStop(stopped bool) {
	if !stopped {
		panic("a timer that had been armed was not there to be stopped")
	}
}

func stopAll(c *clock.Real, timers []clock.Timer) {
	for i := range timers {
		c.Stop(&timers[i])
	}
	c.Close()
}
