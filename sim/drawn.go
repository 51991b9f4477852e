package sim

import (
	"context"
	"fmt"
	"runtime"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
)

// Some tools are good at generating numbers and at finding smaller ones with the same effect: property tests, which
// shrink, and Go's fuzzer, which is guided by coverage. A schedule is a sequence of numbers, so they can generate
// schedules.
//
// The code of such a tool panics to stop, calls t.FailNow, and has its own state. But a decision is needed deep inside
// a schedule, in any fiber or worker, with synchronisation hidden from the race detector. If a strategy called choose
// there, a panic could reach the scheduler. And the detector would have to know that the calls are ordered, which would
// order the calling fibers and hide their races. So the goroutine that calls Drawn also calls choose, and the
// simulation runs in another goroutine. Questions and answers pass between the two hidden from the detector. A panic of
// choose then continues out of Drawn.

// Drawn runs fn under one schedule, whose decisions choose makes. Drawn calls choose in the calling goroutine each time
// there are n > 1 ways to continue, and choose returns a number below n. 0 changes the least, so a tool that prefers
// small numbers finds schedules with few switches. Drawn returns the failure, or nil. It leaves shrinking to the tool.
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
// If choose panics, or ends its goroutine, all further decisions are 0, and then Drawn ends in the same way.
//
// Options that choose schedules have no effect. Because there is only one schedule, Drawn does not check conditions of
// Sometimes, nor whether faults have fired.
func Drawn(choose func(n int) int, fn func(ctx context.Context, s *Sim), opts ...Option) *Failure {
	d := &drawn{ask: make(chan int), answer: make(chan int), done: make(chan struct{})}
	var res Result
	var broken any
	returned := false
	go func() {
		defer close(d.done)
		defer func() { broken = recover() }()
		res = Explore(fn, append(opts, WithStrategy(func(uint64) Strategy { return d }), WithSchedules(1))...)
		returned = true
	}()
	// However choose ends, the schedule must end before Drawn does.
	defer d.serve(func(int) int { return 0 })
	d.serve(choose)
	switch {
	case broken != nil:
		panic(broken)
	case !returned: // fn has ended its goroutine, so end that of the caller
		runtime.Goexit()
	}
	return res.Failure
}

// Bytes returns a choose function for [Drawn] that takes its numbers from data, so that Go's fuzzer generates
// schedules. In this example program is a func(context.Context, *sim.Sim), as for [Test]:
//
//	func FuzzTransfer(f *testing.F) {
//		f.Fuzz(func(t *testing.T, data []byte) {
//			if f := sim.Drawn(sim.Bytes(data), program); f != nil {
//				t.Fatal(f)
//			}
//		})
//	}
//
// Each decision takes as many bytes as its number of ways needs, and reduces them modulo that number. So all data is
// valid. When data is used up, all further decisions are 0.
func Bytes(data []byte) func(n int) int {
	return func(n int) int {
		d := uint64(0)
		for rest := uint64(n - 1); rest > 0 && len(data) > 0; rest >>= 8 {
			d = d<<8 | uint64(data[0])
			data = data[1:]
		}
		return int(d % uint64(n))
	}
}

// drawn is the strategy that asks the goroutine that called Drawn.
type drawn struct {
	ask    chan int // how many ways there are
	answer chan int // which one to take
	done   chan struct{}
	open   int // the question without an answer, or 0; only serve uses it
}

const drawnName = "drawn"

func (*drawn) Name() string            { return drawnName }
func (*drawn) Begin(schedule int) bool { return schedule == 0 }

//go:norace
func (s *drawn) Choose(f *Fork) int {
	how := coro.Waited()
	race.Disable()
	s.ask <- f.N
	d := <-s.answer
	race.Enable()
	if how == coro.NotWaited {
		coro.ForgetWait() // not a wait of the program
	}
	return d
}

// serve answers questions until the schedule has ended. It begins with the question that an earlier call of choose left
// open.
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
	<-s.done // visible to the detector, so the schedule is ordered before the code that follows
}

// asked waits for a question. It returns false if there are no more.
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
