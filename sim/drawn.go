package sim

import (
	"context"
	"fmt"
	"runtime"

	"github.com/coir-go/coir/internal/race"
)

// There are tools that are good at making up numbers and at finding smaller ones that do the same: property tests, which shrink,
// and the fuzzer of Go, which is led by coverage. A schedule is a sequence of numbers, so they can make up schedules.
//
// Their code is not ours. It panics to say "no more of this", it calls t.FailNow, it has memory of its own; and where the
// decision is needed is deep inside a schedule, in whichever fiber or worker it may be, with the race detector blindfolded. A strategy that
// called it there would let a panic loose in the scheduler, and would have to tell the detector that one call comes
// after the other, which orders the fibers that made them: their own races would go unseen. So it stays where it came from. The
// goroutine that calls Drawn asks it, and the simulation runs in another; questions and answers pass between the two out of the
// detector's sight. A panic then comes out of Drawn as itself.

// Drawn runs fn under one schedule, whose decisions choose makes: it is called in the calling goroutine, each time that there are n > 1
// ways to go on, and returns a number below n. 0 changes least, so that a tool which prefers small numbers finds schedules
// with few switches. Drawn returns how fn failed, or nil. The failure is as it was found: to make it smaller is left to whoever draws.
//
// With rapid:
//
//	rapid.Check(t, func(t *rapid.T) {
//		f := sim.Drawn(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "way") }, program)
//		if f != nil {
//			t.Fatal(f)
//		}
//	})
//
// If choose panics, or ends its goroutine, the rest of the schedule goes the way of least change, and then Drawn ends in the same way.
//
// The options that say which schedules are run have no effect. What Sometimes has not seen and faults that have not fired are not checked:
// there is one schedule.
func Drawn(choose func(n int) int, fn func(ctx context.Context, s *Sim), opts ...Option) *Failure {
	d := &drawn{ask: make(chan int), answer: make(chan int), done: make(chan struct{})}
	var res Result
	var broken any
	returned := false
	go func() {
		defer close(d.done)
		defer func() { broken = recover() }()
		res = Explore(fn, append(opts, With(func(uint64) Strategy { return d }), Schedules(1))...)
		returned = true
	}()
	// Whatever becomes of choose, the schedule has to come to its end before Drawn does.
	defer d.serve(func(int) int { return 0 })
	d.serve(choose)
	switch {
	case broken != nil:
		panic(broken)
	case !returned: // fn has ended its goroutine, which was to be ours
		runtime.Goexit()
	}
	return res.Failure
}

// Bytes is a choose for [Drawn] that takes its numbers from data, so that the fuzzer of Go makes up schedules. program is a func(context.Context, *sim.Sim), as
// [Test] takes it:
//
//	func FuzzTransfer(f *testing.F) {
//		f.Fuzz(func(t *testing.T, data []byte) {
//			if f := sim.Drawn(sim.Bytes(data), program); f != nil {
//				t.Fatal(f)
//			}
//		})
//	}
//
// Each decision takes a byte, or as many as the number of ways needs, modulo that number: all data is valid. When data is used up, all
// further decisions are 0.
func Bytes(data []byte) func(n int) int {
	return func(n int) int {
		d := 0
		for span := 1; span < n && len(data) > 0; span <<= 8 {
			d = d<<8 | int(data[0])
			data = data[1:]
		}
		return d % n
	}
}

// drawn is the strategy that asks the goroutine which called Drawn.
type drawn struct {
	ask    chan int // how many ways there are
	answer chan int // which one to go
	done   chan struct{}
	open   int // the question that has no answer yet; 0: none. It belongs to the one who answers
}

const drawnName = "drawn"

func (*drawn) Name() string            { return drawnName }
func (*drawn) Begin(schedule int) bool { return schedule == 0 }

//go:norace
func (s *drawn) Choose(p *Fork) int {
	race.Disable()
	s.ask <- p.N
	d := <-s.answer
	race.Enable()
	return d
}

// serve answers what is asked until the schedule is done, and first what choose did not come to answer when it was called before.
func (s *drawn) serve(choose func(n int) int) {
	for s.open > 0 || s.asked() {
		d := choose(s.open)
		if d < 0 || d >= s.open {
			panic(fmt.Sprintf("sim: of %d ways, numbered from 0, %d was drawn", s.open, d))
		}
		s.open = 0
		race.Disable()
		s.answer <- d
		race.Enable()
	}
	<-s.done // seen by the detector: what the schedule did comes before what follows
}

// asked waits for a question. It reports false if there are no more.
func (s *drawn) asked() bool {
	race.Disable()
	defer race.Enable()
	select {
	case s.open = <-s.ask:
		return true
	case <-s.done:
		return false
	}
}
