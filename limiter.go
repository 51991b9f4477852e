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

// Limit bounds how many children run at once to places. Those that come later get a place in the order of their Go,
// which does not block. A child that waits for a fiber ([Fiber.Wait], a select or [Selector] with [Fiber.DoneCase], an
// [Ordered]), or for a nursery that it has opened, gives its place up meanwhile, so children may start others under the
// same limit and wait for them; any other wait keeps the place. The function of the Run that opened the nursery needs
// none. A child whose Wait is cut short by a cancel or a deadline goes on at once, even if all places are taken. Limit
// must be called before the first Go.
//
//go:norace
func (n *Nursery) Limit(places int) {
	// Spec: NU-14 (Limit bounds the children that run)
	if places < 1 {
		panic("coir: Nursery.Limit needs at least one place")
	}
	n.mustBe("Limit")
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
	if l.taken > l.places { // one went on above the limit
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
		f.begin(near)
		return
	}
	l.taken--
}

// leavePlace gives up the place that f uses under a limit, if it uses one. f is nil in a goroutine.
//
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: SC-49 (a waiting fiber leaves its worker)
//
//go:norace
func (f *Fiber) leavePlace() {
	p := f.placed()
	if p == nil {
		return
	}
	var near *sched.Worker
	if f != nil {
		near = f.task.Worker()
	}
	n := p.nursery
	n.more().mu.Lock()
	n.release(near)
	n.more().mu.Unlock()
}

// placed returns the child whose place f uses, or nil if it uses none: f itself; for a goroutine, where f is nil, the
// child that it runs; for the main fiber of a Run that such a child has called, that child.
//
//go:norace
func (f *Fiber) placed() *Fiber {
	switch {
	case f == nil:
		f = childHere()
		if f == nil || f.goChild().lent {
			return nil
		}
	case f.place && f.isMain():
		return f.nursery.more().opener
	}
	if !f.place {
		return nil
	}
	return f
}

// takePlace takes a place again. It waits for one, unless the fiber's own wait was cut short by a cancel or a deadline:
// then it goes on at once, above the limit if need be, because it may be about to stop those who have the places.
//
//go:norace
func (f *Fiber) takePlace(wait bool) {
	p := f.placed()
	if p == nil {
		return
	}
	n := p.nursery
	l := n.more().limiter
	n.more().mu.Lock()
	if l.taken < l.places || !wait {
		l.taken++
		n.more().mu.Unlock()
		return
	}
	if f == nil {
		g := guests.Get().(*guest)
		l.again.Push(g.kit.Event(), &g.Parker, g.ArmParked())
		n.more().mu.Unlock()
		g.Wait()
		guests.Put(g)
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
