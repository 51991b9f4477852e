package coir

import (
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/wait"
)

// limiter is the extra state of a nursery with a limit.
type limiter struct {
	places  int
	taken   int
	again   wait.Queue // children that gave up their place and want one again; served before line
	line    *Fiber     // children that have not started, in order, linked by next
	lineEnd *Fiber
}

// Limit sets the number of children that may run at the same time to at most places. Go does not block: further
// children get a place in the order of their Go. A child gives up its place while it waits for a fiber ([Fiber.Wait], a
// select or [Selector] with [Fiber.DoneCase], an [Ordered]), or for a nursery that it has opened. So children may start
// other children under the same limit and wait for them. In any other wait a child keeps its place. The function of the
// Run that opened the nursery needs no place. A child whose Wait ends early because of a cancellation or a deadline
// continues immediately, even if all places are taken. Limit must be called before the first Go.
//
//go:norace
func (n *Nursery) Limit(places int) {
	// Spec: NU-14 (Limit bounds the children that run)
	if places < 1 {
		panic("coir: Nursery.Limit(" + number(places) + "): at least one child must be able to run")
	}
	n.mustNotBeNil("Limit")
	race.Disable()
	n.coldPart().childMu.Lock()
	late := n.live() > 0
	if !late {
		n.coldPart().limiter = &limiter{places: places}
	}
	n.coldPart().childMu.Unlock()
	race.Enable()
	if late {
		panic("coir: Nursery.Limit after the first Nursery.Go")
	}
}

// takeFirstPlace gives a new child a place, or adds it to the line. It reports whether the child may start.
//
//go:norace
func (n *Nursery) takeFirstPlace(f *Fiber) bool {
	n.coldPart().childMu.Lock()
	defer n.coldPart().childMu.Unlock()
	l := n.coldPart().limiter
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

// release passes a place on to the next child in line. The caller holds the nursery's lock.
//
//go:norace
func (n *Nursery) release(here *sched.Worker) {
	l := n.coldPart().limiter
	if l.taken > l.places { // a child continued above the limit
		l.taken--
		return
	}
	if node := l.again.Shift(); node != nil {
		_, asleep := node.Claim(park.Data)
		asleep.MakeReady(here)
		return
	}
	if f := l.line; f != nil {
		l.line, f.next = f.next, nil
		f.begin(here)
		return
	}
	l.taken--
}

// leavePlace gives up the place that f uses under a limit, if any. f is nil in a goroutine.
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
	var here *sched.Worker
	if f != nil {
		here = f.task.Worker()
	}
	n := p.nursery
	n.coldPart().childMu.Lock()
	n.release(here)
	n.coldPart().childMu.Unlock()
}

// placed returns the child whose place f uses, or nil if f uses none. That child is f itself; or, if f is nil, the
// child that runs on the calling goroutine; or, if f is the main fiber of a Run that such a child has called, that
// child.
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
		return f.nursery.coldPart().opener
	}
	if !f.place {
		return nil
	}
	return f
}

// takePlace takes a place again, and waits for one if wait is true. wait is false if a cancellation or a deadline cut
// the fiber's own wait short: the fiber then continues immediately, above the limit if necessary, because it may be
// about to stop the children that have the places.
//
//go:norace
func (f *Fiber) takePlace(wait bool) {
	p := f.placed()
	if p == nil {
		return
	}
	n := p.nursery
	l := n.coldPart().limiter
	n.coldPart().childMu.Lock()
	if l.taken < l.places || !wait {
		l.taken++
		n.coldPart().childMu.Unlock()
		return
	}
	if f == nil {
		g := guests.Get().(*guest)
		g.enter((*toEnter)(n))
		l.again.Push(g.kit.Event(), &g.Parker, g.ArmParked())
		n.coldPart().childMu.Unlock()
		g.stamp()
		g.Wait()
		g.leave()
		return
	}
	l.again.Push(f.task.Kit().Event(), &f.task.Parker, f.arm(noInterrupt, (*toEnter)(n)))
	n.coldPart().childMu.Unlock()
	f.task.Park()
}

//go:norace
func (f *Fiber) regainPlace() {
	race.Disable()
	f.takePlace(true)
	race.Enable()
}
