package coir

import (
	"context"
	"reflect"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"
	"weak"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/source"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/snapshot"
)

// What a snapshot shows of goroutines that are not fibers, and wait for objects of coir.
//
// A goroutine waits with a guest. So the list of guests is for goroutines what the registry of frames is for fibers. A
// guest enters the list when it is made, and a wait only stores a few words in the guest. A snapshot reads them as it
// reads the wait of a fiber: the guest's word, what was stored, and the word again. Guests are pooled, and the list has
// weak pointers to them.
//
// Two designs were rejected. A snapshot could find the waiters through the objects. But it knows an object only if a
// fiber waits for the object or the object is listed, and each type of object would need a reader of its queue. The
// waits could be in a list, but then each wait would lock the list twice.

// waitingGuests has every guest that has been made and not collected, waiting or not.
var waitingGuests weakList[weakGuest]

var guestsMade atomic.Uint64

type weakGuest struct{ weak.Pointer[guest] }

//go:norace
func (g weakGuest) gone() bool { return g.Value() == nil }

// stay is what a guest records of a wait, apart from what it waits for (kit.On). The goroutine clears both when the
// wait has ended, so a pooled guest keeps nothing alive.
type stay struct {
	g      uintptr        // the goroutine
	sc     *scope         // the scope whose end ends the wait; noScope if a foreign context may end it; else nil
	rt     *Runtime       // of the scope that the context was derived from, if that is not sc; else nil
	since  uintptr        // when the wait began: the time since began, in sinceUnits; 0 if it has just begun
	labels unsafe.Pointer // the goroutine's, for the profiler
}

// A unit of stay.since is about a millisecond. A uintptr of 32 bits lasts for 52 days.
const sinceUnit = 1 << 20

var began = time.Now().Add(-sinceUnit)

// enter records that the calling goroutine is about to wait for on, in a context that never ends. It is called before
// the guest is armed.
//
//go:norace
func (g *guest) enter(on any) {
	g.kit.On = on
	g.stay.g = coro.G()
	if labels := coro.Labels(); labels != nil {
		g.stay.labels = labels
	}
}

// enter is like guest.enter, for any context.
//
//go:norace
func (c *caller) enter(g *guest, on any) {
	g.enter(on)
	switch {
	case c.sc == nil && c.done == nil:
	case c.sc == nil || c.inOtherBubble():
		g.stay.sc, g.stay.rt = noScope, c.derived
	default:
		g.stay.sc = c.sc
	}
}

// stamp records when the wait has begun. It is called after the wait is published, and without locks, because it reads
// the clock.
//
//go:norace
func (g *guest) stamp() { g.stay.since = uintptr(time.Since(began) / sinceUnit) }

// releaseLabels tells the race detector that a later call of labelText, by any goroutine, is ordered after the program
// created the labels of the calling goroutine.
//
//go:norace
func releaseLabels() {
	if labels := coro.Labels(); labels != nil {
		race.Release(labels)
	}
}

// leave clears the record of the wait, and gives the guest back.
//
//go:norace
func (g *guest) leave() {
	g.kit.On, g.stay = nil, stay{}
	guests.Put(g)
}

// look returns a copy of a stay while its goroutine may be changing it: see sched.Task.Look.
//
//go:norace
func (s *stay) look() (x stay) {
	x.g, x.since = atomic.LoadUintptr(&s.g), atomic.LoadUintptr(&s.since)
	x.sc = (*scope)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&s.sc))))
	x.rt = (*Runtime)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&s.rt))))
	x.labels = atomic.LoadPointer(&s.labels)
	return x
}

// numberHere returns the number by which snapshots know the caller, a fiber or goroutine.
//
//go:norace
func numberHere() uint64 {
	if t := sched.Current(); t != nil {
		return fiberOf(t).id
	}
	return goroutineNumber(coro.G())
}

// goroutineNumber returns the number by which snapshots know a goroutine for which coro.G has returned g.
//
//go:norace
func goroutineNumber(g uintptr) uint64 {
	n := coro.NumberOf(g)
	if n == 0 { // this release of Go keeps it elsewhere
		n = uint64(g)
	}
	return snapshot.FirstGoroutine + n%snapshot.FirstGoroutine
}

// onGoroutines adds the runtime's children that run on goroutines, and the other goroutines that wait for objects of
// coir.
func (v *viewer) onGoroutines() {
	v.children = map[uint64]*goChild{}
	for i := range goChildren.lists {
		for _, c := range childrenOn(i, v.rt) {
			v.children[c.number()] = c
		}
	}
	waiting := map[*goChild]bool{}
	for node := waitingGuests.after(nil); node != nil; node = waitingGuests.after(node) {
		if g := node.x.Value(); g != nil && !v.guest(g, waiting) {
			return
		}
	}
	for _, c := range v.children {
		v.fiber = snapshot.Fiber{State: snapshot.StateOutside, Wait: v.fiber.Wait[:0], Call: c.call()}
		if !waiting[c] && !v.add(&c.f, c.goroutine()) {
			return
		}
	}
}

// childrenOn returns the children of rt in a list of goChildren.
//
//go:norace
func childrenOn(list int, rt *Runtime) (all []*goChild) {
	race.Disable()
	defer race.Enable()
	l := &goChildren.lists[list]
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := l.first; c != nil; c = c.next {
		if c.f.nursery.rt == rt {
			all = append(all, c)
		}
	}
	return all
}

//go:norace
func (c *goChild) goroutine() uint64 { return coro.NumberOf(c.g) }

//go:norace
func (c *goChild) call() string { return callText(coro.ActivityOf(c.g)) }

//go:norace
func (c *goChild) number() uint64 { return goroutineNumber(c.g) }

// guest adds the goroutine waiting with p, if there is one and its context belongs to this runtime or to none. If the
// goroutine runs a child of a nursery, guest shows the child in place of the goroutine, and adds it to waiting. It
// reports whether to continue.
//
//go:norace
func (v *viewer) guest(p *guest, waiting map[*goChild]bool) bool {
	g := &v.glimpse
	s, ok := g.lookAtGuest(p, v.rt)
	if !ok {
		return true
	}
	id := goroutineNumber(s.g)
	c := v.children[id]
	if end, ok := g.on[0].(*fiberEnd); ok && c == nil && (*Fiber)(end).isMain() {
		return true // it has called Run
	}
	v.fiber = snapshot.Fiber{
		ID: id, State: snapshot.StateGoroutine, Waits: g.wait.Number, Foreign: g.foreign, More: g.more,
		Until: earlier(g.until, earlier(v.time(g.due), v.time(g.wait.Due))), Wait: v.fiber.Wait[:0],
	}
	x := &v.fiber
	if s.since != 0 && !v.elsewhere && v.rt.policy == nil && v.rt.s.Home() == 0 {
		x.Since = earlier(g.since, began.Add(time.Duration(s.since)*sinceUnit))
	}
	for _, on := range g.on[:g.n] {
		if on, ok := on.(subject); ok {
			v.wish(on, x)
		}
	}
	if c != nil {
		waiting[c] = true
		x.State = snapshot.StateWaiting
		return v.add(&c.f, c.goroutine())
	}
	v.guests[id] = true
	x.Name = labelText(s.labels) + "[" + strconv.FormatUint(id-snapshot.FirstGoroutine, 10) + "]"
	if v.stacks != nil {
		x.Stack = v.stacks[coro.NumberOf(s.g)]
		x.At = source.Line(x.Stack)
	}
	return v.keep()
}

// outside adds the holder of an object if it is a goroutine that is not in the snapshot yet, and its stack is known.
func (v *viewer) outside(id uint64) {
	number := id - snapshot.FirstGoroutine
	stack := v.stacks[number]
	if id < snapshot.FirstGoroutine || v.guests[id] || stack == "" {
		return
	}
	v.guests[id] = true
	v.s.Outside = append(v.s.Outside, snapshot.Fiber{
		ID: id, Name: "goroutine[" + strconv.FormatUint(number, 10) + "]", State: snapshot.StateOutside, Stack: stack,
		At: source.Line(stack), Spawned: source.Spawned(stack),
	})
}

// lookAtGuest reads the wait of a guest. It returns false if the guest does not wait, or if the wait does not belong in
// a snapshot of rt.
//
//go:norace
func (g *glimpse) lookAtGuest(p *guest, rt *Runtime) (s stay, ok bool) {
	race.Disable()
	defer race.Enable()
	word := p.Word()
	if !word.Parked() {
		return s, false
	}
	g.reset(nil, &p.Parker)
	g.wait = sched.Wait{On: wait.LookAt(&p.kit.On), Number: uint64(word.Ticket())}
	g.wait.Due = p.timer.Look(g.wait.Number)
	s = p.stay.look()
	home := p.Home()
	if g.wait.On == nil || !g.subjects() {
		return s, false
	}
	of := s.rt
	switch {
	case s.sc == noScope:
		g.foreign = true
	case s.sc != nil:
		of, g.foreign = s.sc.rt, s.sc.state.Load() == scopeCancelled
		g.under(s.sc)
	}
	if of == nil {
		return s, rt.policy == nil && home == rt.s.Home()
	}
	return s, of == rt
}

// labelText returns the labels of a goroutine, or "goroutine" if it has none.
func labelText(labels unsafe.Pointer) string {
	set := labelling().set
	if labels == nil || set == nil || bubble.Explored != nil {
		return "goroutine"
	}
	race.Acquire(labels)
	var all []string
	pprof.ForLabels(labelContext{context.Background(), reflect.NewAt(set, labels).Interface()}, func(k, v string) bool {
		all = append(all, k+"="+v)
		return true
	})
	slices.Sort(all)
	return strings.Join(all, ",")
}
