package coir

import (
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/wait"
)

// limiter is what a nursery with a limit has besides.
type limiter struct {
	places  int
	taken   int
	again   wait.Queue // children that gave their place up and want one again; before line
	line    *Fiber     // children that have not begun, in order, through next
	lineEnd *Fiber
}

// Limit bounds how many children run at once to places. Those that come later get a place in the order of their Go, which
// does not block. A child that waits for a fiber ([Fiber.Wait], a select or [Selector] with [Fiber.Done], an [Ordered]), or for a nursery that
// it has opened, gives its place up meanwhile, so children may start others under the same limit and wait for them; any other
// wait keeps the place. The function of the Run that opened the nursery needs none. A
// child whose Wait is cut short by a cancel or a deadline goes on at once, even if all places are taken. Limit must be
// called before the first Go.
//
//go:norace
func (n *Nursery) Limit(places int) {
	// Spec: NU-14 (Limit bounds the children that run)
	if places < 1 {
		panic("coir: Nursery.Limit needs at least one place")
	}
	if race.Enabled {
		_ = n.rt // a nil nursery fails here, before synchronisation is hidden
	}
	race.Disable()
	n.more().mu.Lock()
	late := n.live() > 0
	if !late {
		n.more().limiter = &limiter{places: places}
	}
	n.more().mu.Unlock()
	race.Enable()
	if late {
		panic("coir: Nursery.Limit after the first Nursery.Go")
	}
}

// takeFirstPlace gives a new child a place, or puts it in line. It reports whether the child may begin.
//
//go:norace
func (n *Nursery) takeFirstPlace(f *Fiber) bool {
	n.more().mu.Lock()
	defer n.more().mu.Unlock()
	l := n.more().limiter
	f.place = true
	if l.taken < l.places {
		l.taken++
		return true
	}
	if l.line == nil {
		l.line = f
	} else {
		l.lineEnd.next = f
	}
	l.lineEnd = f
	return false
}

// release gives a place back, to the next in line. The caller holds the nursery's lock.
//
//go:norace
func (n *Nursery) release(near *sched.Worker) {
	l := n.more().limiter
	if l.taken > l.places { // somebody went on above the limit
		l.taken--
		return
	}
	if node := l.again.Shift(); node != nil {
		_, asleep := node.Claim(park.Data)
		asleep.Rouse(near)
		return
	}
	if f := l.line; f != nil {
		l.line, f.next = f.next, nil
		n.rt.s.Go(&f.task, near)
		return
	}
	l.taken--
}

// leavePlace gives up the place that f has under its nursery's limit, if it has one. f may be nil.
//
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: SC-49 (a waiting fiber leaves its worker)
//
//go:norace
func (f *Fiber) leavePlace() {
	if f == nil || !f.place {
		return
	}
	n := f.nursery
	n.more().mu.Lock()
	n.release(f.task.Worker())
	n.more().mu.Unlock()
}

// takePlace takes a place again. It waits for one, unless the fiber's own wait was cut short by a cancel or a deadline:
// then it goes on at once, above the limit if need be, because it may be about to stop those who have the places.
//
//go:norace
func (f *Fiber) takePlace(wait bool) {
	if f == nil || !f.place {
		return
	}
	n := f.nursery
	l := n.more().limiter
	n.more().mu.Lock()
	if l.taken < l.places || !wait {
		l.taken++
		n.more().mu.Unlock()
		return
	}
	l.again.Push(f.task.Kit().Event(), &f.task.Parker, f.arm(noInterrupt))
	n.more().mu.Unlock()
	f.task.Park()
}

//go:norace
func (f *Fiber) regainPlace() {
	race.Disable()
	f.takePlace(true)
	race.Enable()
}
