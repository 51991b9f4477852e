package coir

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/source"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/snapshot"
)

// Snapshot returns what the runtime's fibers are doing, and what they wait for. Other goroutines are in it while they
// wait for objects of coir, unless their contexts belong to another runtime. The program continues to run during the
// call: package [snapshot] explains what that means for the result. Any goroutine or fiber may call Snapshot at any
// time.
//
// A snapshot of a million fibers takes about one second of processor time. It holds no lock for longer than it takes to
// read 64 fibers.
func (rt *Runtime) Snapshot(o snapshot.Options) *snapshot.Snapshot {
	v := viewer{rt: rt, o: o, s: &snapshot.Snapshot{Taken: time.Now()}, clk: rt.s.Clock()}
	if v.o.Fibers == 0 {
		v.o.Fibers = 100_000
	}
	if o.Stacks {
		v.stacks = stacks()
	}
	if o.Each == nil {
		stats := rt.Stats()
		v.s.Fibers = make([]snapshot.Fiber, 0, max(0, min(v.o.Fibers, int(stats.Spawned-stats.Ended))))
	}
	v.now, v.clockNow, v.elsewhere = v.s.Taken, timeOf(v.clk), rt.s.Home() != bubble.Here()
	v.look()
	v.finish()
	return v.s
}

//go:norace
func timeOf(clk clock.Clock) int64 {
	race.Disable()
	defer race.Enable()
	return clk.Now()
}

// viewer takes a snapshot.
//
// A viewer reads data that fibers write while their synchronisation is hidden. So the functions that read such data are
// marked go:norace, like those of the fibers, and hide the locks that they take.
type viewer struct {
	rt       *Runtime
	o        snapshot.Options
	s        *snapshot.Snapshot
	stacks   map[uint64]string
	clk      clock.Clock
	now      time.Time
	clockNow int64 // the time on clk at the time now

	nurseries map[*Nursery]*snapshot.Nursery
	objects   map[uint64]*met
	sites     map[uintptr]site
	children  map[uint64]*goChild // those of the runtime, by the numbers of their goroutines
	guests    map[uint64]bool     // the numbers of the goroutines that have been shown
	glimpse   glimpse
	fiber     snapshot.Fiber
	elsewhere bool // the caller is in another bubble of testing/synctest, which has its own time
	stopped   bool
}

// look visits all fibers of the runtime.
//
//go:norace
func (v *viewer) look() {
	v.nurseries, v.objects, v.sites = map[*Nursery]*snapshot.Nursery{}, map[uint64]*met{}, map[uintptr]site{}
	v.guests = map[uint64]bool{}
	sched.Walk(func(t *sched.Task) bool { return v.task(t) })
	if !v.stopped {
		pending := map[*sched.Task]bool{} // workers may move a task to another queue during the walk
		v.rt.s.Queued(1000, func(t *sched.Task) bool {
			if pending[t] {
				return true
			}
			pending[t] = true
			return v.task(t)
		})
	}
	if !v.stopped {
		v.onGoroutines()
	}
	if !v.stopped {
		v.addFibersInLine()
	}
	for i, w := range v.rt.s.Workers() {
		x := snapshot.Worker{ID: i, State: snapshot.WorkerState(w.State), Queue: w.Queue, Beats: w.Beats}
		if w.Task != nil {
			x.Fiber = fiberOf(w.Task).id
			if !v.elsewhere {
				x.Since = w.Since
			}
		}
		v.s.Workers = append(v.s.Workers, x)
	}
}

// glimpse is what a snapshot reads of a fiber at one moment.
type glimpse struct {
	f       *Fiber // nil for a goroutine
	p       *park.Parker
	state   snapshot.State
	wait    sched.Wait
	due     int64     // the deadline of the fiber's scope, on the runtime's clock; 0 if there is none
	until   time.Time // the deadline of the context of package context around the scope
	foreign bool
	g       uint64      // the fiber's goroutine
	on      [mostOn]any // what the fiber waits for
	n       int
	more    int       // number of cases that are not in on
	since   time.Time // when the operation around the wait began, if there is one: see Chan.SendScope
	call    string    // see snapshot.Fiber.Call
}

const computing = "running" // the value of snapshot.Fiber.Call for a fiber that computes

// callText returns the value of snapshot.Fiber.Call.
//
//go:norace
func callText(a coro.Activity) string {
	switch a {
	case coro.Running:
		return computing
	case coro.InSyscall:
		return "syscall"
	case coro.InIOWait:
		return "IO wait"
	case coro.InWait:
		return "native wait"
	}
	return ""
}

// mostOn is how many cases of a select a snapshot shows.
const mostOn = 64

// task adds the fiber of a task if the fiber belongs to this runtime.
func (v *viewer) task(t *sched.Task) bool {
	g := &v.glimpse
	if !g.look(t, v.rt, v.o.Stacks) {
		return true
	}
	waits := v.fiber.Wait[:0]
	v.fiber = snapshot.Fiber{State: g.state, Waits: g.wait.Number, Wait: waits, Call: g.call}
	if !v.elsewhere {
		v.fiber.Since = earlier(g.since, g.wait.Since)
	}
	if g.state == snapshot.StateWaiting {
		v.fiber.Foreign, v.fiber.More = g.foreign, g.more
		v.fiber.Until = earlier(g.until, earlier(v.time(g.due), v.time(g.wait.Due)))
		for _, on := range g.on[:g.n] {
			if on, ok := on.(subject); ok {
				v.wish(on, &v.fiber)
			}
		}
	}
	return v.add(g.f, g.g)
}

// look reads the fiber of a task. It returns false if the task is not a fiber of rt, or has ended.
//
//go:norace
func (g *glimpse) look(t *sched.Task, rt *Runtime, stacks bool) bool {
	race.Disable()
	defer race.Enable()
	f := fiberOf(t)
	if f.nursery == nil || f.nursery.rt != rt || f.ended() {
		return false
	}
	g.reset(f, &t.Parker)
	if stacks {
		g.g = t.Goroutine()
	}
	var ok bool
	if g.wait, ok = t.Look(); ok && g.subjects() {
		g.state = snapshot.StateWaiting
		switch sc := f.waitScope.Load(); sc {
		case noScope:
			g.foreign = true
		case noInterrupt:
		default:
			g.under(sc)
		}
		return true
	}
	g.wait = sched.Wait{Number: uint64(t.Word().Ticket())}
	place, since := t.Place()
	switch place {
	case sched.OnWorker, sched.Held:
		g.state = snapshot.StateRunning
		if rt.policy == nil { // a policy lets one fiber run at a time, which is the caller or stands still
			g.call = callText(t.Activity())
		}
		if g.call != "" && g.call != computing || g.call == "" && place == sched.Held {
			g.state = snapshot.StateBlocking
		}
	case sched.InCall:
		g.state, g.wait.Since, g.call = snapshot.StateBlocking, since, callText(t.Activity())
	case sched.Nowhere:
		g.state = snapshot.StateReady // or it started to wait, or was woken, while Look read it
		if !t.Started() {
			g.state = snapshot.StatePending
		}
	}
	return true
}

// reset prepares g for the wait of f, or of a goroutine if f is nil, with the parker p.
//
//go:norace
func (g *glimpse) reset(f *Fiber, p *park.Parker) {
	for i := range g.on[:g.n] {
		g.on[i] = nil
	}
	g.f, g.p, g.n, g.more, g.g, g.due, g.until, g.foreign = f, p, 0, 0, 0, 0, time.Time{}, false
	g.since, g.call = time.Time{}, ""
}

// subjects reads what the fiber waits for. It returns false if the wait has ended in the meantime.
//
//go:norace
func (g *glimpse) subjects() bool {
	g.on[0], g.n = g.wait.On, 1
	if s, ok := g.wait.On.(*scratch); ok {
		on := s.on
		if !g.still() { // if the wait continues, the three words of the slice that was read belong together
			return false
		}
		g.n = 0
		for i := range on {
			x := wait.LookAt(&on[i])
			switch {
			case x == nil:
			case g.n == mostOn:
				g.more++
			default:
				g.on[g.n] = x
				g.n++
			}
		}
		if !g.still() { // if the wait continues, each of the subjects belongs to it
			return false
		}
	}
	for i, on := range g.on[:g.n] {
		if w, ok := on.(*want); ok {
			g.on[i] = w.look()
		}
	}
	return g.still()
}

// under reads from sc, the scope of the wait, when the wait ends, and what it is a part of.
//
//go:norace
func (g *glimpse) under(sc *scope) {
	as, in := sc.sendAs(g.f)
	if as == nil || !g.still() { // if the wait has ended, sc may be the scope of a later wait
		g.due, g.until = sc.until()
		return
	}
	g.due, g.until = in.until() // a wait inside the operation may end earlier, but the operation then repeats it
	g.on[0], g.n, g.more, g.since, g.wait.Due = as, 1, 0, as.since, 0
}

// still reports whether the wait continues.
//
//go:norace
func (g *glimpse) still() bool {
	word := g.p.Word()
	return word.Parked() && uint64(word.Ticket()) == g.wait.Number
}

// look returns a copy of a want while its fiber may be changing it: see sched.Task.Look.
//
//go:norace
func (w *want) look() *want {
	x := &want{n: w.n, q: (*Queue)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&w.q))))}
	from, to := (*[2]unsafe.Pointer)(unsafe.Pointer(&w.r)), (*[2]unsafe.Pointer)(unsafe.Pointer(&x.r))
	to[0], to[1] = atomic.LoadPointer(&from[0]), atomic.LoadPointer(&from[1])
	return x
}

// time converts a time of the runtime's clock. It returns the zero time for 0.
func (v *viewer) time(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return v.now.Add(time.Duration(at - v.clockNow))
}

// until returns the deadlines of the scope: due on the runtime's clock, and at from a context of package context. Zero
// values mean that there is none. until calls no method of a foreign context.
//
//go:norace
func (sc *scope) until() (due int64, at time.Time) {
	for ; sc != nil; sc = sc.parent {
		c := sc.rest.Load()
		if c == nil {
			continue
		}
		if c.timed {
			if x := (*timedScope)(unsafe.Pointer(sc)).at; due == 0 || x < due {
				due = x
			}
		}
		if c.link != nil {
			at = earlier(at, c.link.until)
		}
	}
	return due, at
}

// earlier returns the earlier of two times. A zero time means none.
//
//go:norace
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// wish adds the subject on to what the fiber x waits for.
func (v *viewer) wish(on subject, x *snapshot.Fiber) {
	op := on.op()
	w := snapshot.Wait{Kind: snapshot.WaitUse, Object: op.Object}
	name := op.Name
	switch op.Kind {
	case policy.Send:
		w.Kind = snapshot.WaitSend
	case policy.Recv:
		w.Kind = snapshot.WaitRecv
	case policy.Sleep:
		w.Kind = snapshot.WaitSleep
	case policy.Wait:
		w.Kind, w.Fiber, w.Object = snapshot.WaitEnd, op.Object, 0
		if name == "" {
			name = "fiber"
		}
		name += " #" + strconv.FormatUint(op.Object, 10)
	case policy.Join:
		w.Kind, w.Nursery, w.Object = snapshot.WaitJoin, op.Object, 0
	case policy.Go:
		w.Kind, w.Nursery, w.Object = snapshot.WaitPlace, op.Object, 0
	case policy.Use:
		if op.Object == 0 {
			w.Kind = snapshot.WaitCancel
		}
	}
	if w.Object == 0 {
		w.Text = op.Waits(name)
	} else {
		o := v.object(on, op)
		w.Text = o.text(w.Kind, op)
		countWait(&o.Object, w.Kind, x.Since)
	}
	x.Wait = append(x.Wait, w)
}

// countWait counts a fiber that waits for the object.
func countWait(o *snapshot.Object, kind snapshot.WaitKind, since time.Time) {
	switch kind {
	case snapshot.WaitSend:
		o.Senders++
	case snapshot.WaitRecv:
		o.Receivers++
	default:
		o.Waiters++
	}
	if !since.IsZero() && (o.Oldest.IsZero() || since.Before(o.Oldest)) {
		o.Oldest = since
	}
}

// met is an object that the viewer has found a fiber waiting for.
type met struct {
	snapshot.Object
	on    subject
	texts map[wording]string // texts of waits for the object
}

// wording identifies the words for a wait.
type wording struct {
	word string
	verb *policy.Verb
}

// text returns a description of a wait for the object.
func (o *met) text(kind snapshot.WaitKind, op policy.Op) string {
	word := wording{op.Word(), op.Verb}
	text, ok := o.texts[word]
	if !ok {
		name := o.Name
		if name == "" {
			name = "#" + strconv.FormatUint(o.ID, 10)
		}
		switch {
		case o.Note != "":
			name += " (" + o.Note + ")"
		case kind == snapshot.WaitSend && o.Cap > 0 && o.Len >= o.Cap:
			name += " (full, " + strconv.Itoa(o.Len) + " of " + strconv.Itoa(o.Cap) + ")"
		}
		text = op.Waits(name)
		o.texts[word] = text
	}
	return text
}

// object returns the object that a fiber waits for.
func (v *viewer) object(on subject, op policy.Op) *met {
	o := v.objects[op.Object]
	if o == nil {
		o = &met{
			Object: snapshot.Object{ID: op.Object, Name: op.Name, Kind: "object", Ends: op.Ends()},
			on:     on, texts: map[wording]string{},
		}
		o.describe()
		v.objects[op.Object] = o
	}
	return o
}

func (o *met) describe() {
	if d, ok := o.on.(described); ok {
		o.Holders = nil
		d.describe(&o.Object)
	}
}

// add completes v.fiber, which describes f, and adds it to the snapshot. g is the number of the goroutine that runs f,
// or 0. add reports whether to continue.
//
//go:norace
func (v *viewer) add(f *Fiber, g uint64) bool {
	x := &v.fiber
	n := v.nursery(f.nursery)
	x.ID, x.Name, x.Main, x.Nursery = f.id, f.Name(), f.isMain(), n.ID
	at := v.site(f.pc)
	x.Spawned, x.System = at.text, at.own
	if !x.Main && !inLine(x) {
		n.Children++
	}
	if v.stacks != nil {
		x.Stack = v.stacks[g]
		x.At = source.Line(x.Stack)
	}
	return v.keep()
}

// keep adds v.fiber, which is complete, to the snapshot. It reports whether to continue.
func (v *viewer) keep() bool {
	x := &v.fiber
	if v.o.Each != nil {
		if !v.o.Each(x) {
			v.stopped = true
		}
		return !v.stopped
	}
	if len(v.s.Fibers) >= v.o.Fibers {
		v.s.Omitted++
		return true
	}
	v.s.Fibers = append(v.s.Fibers, *x)
	x.Wait = nil // the snapshot now refers to it
	return true
}

// nursery returns the description of a nursery. If the snapshot does not have the nursery yet, nursery adds it, and the
// nurseries around it.
//
//go:norace
func (v *viewer) nursery(n *Nursery) *snapshot.Nursery {
	x := v.nurseries[n]
	if x == nil {
		x = &snapshot.Nursery{ID: n.number()}
		v.nurseries[n] = x
		if n.owner != nil {
			x.Owner = n.owner.id
		}
		if n.owner != nil && n.owner.nursery != n {
			x.Parent = v.nursery(n.owner.nursery).ID
		}
	}
	return x
}

// addFibersInLine adds the fibers that wait for their first place in a nursery with a limit.
func (v *viewer) addFibersInLine() {
	all := make([]*Nursery, 0, len(v.nurseries))
	for n := range v.nurseries {
		all = append(all, n)
	}
	for _, n := range all {
		wait := snapshot.Wait{Kind: snapshot.WaitPlace, Nursery: v.nurseries[n].ID, Text: enterText}
		var some [64]*Fiber
		for k := n.lined(nil, &some); k > 0; k = n.lined(some[k-1], &some) {
			for _, f := range some[:k] {
				v.fiber = snapshot.Fiber{State: snapshot.StateWaiting, Wait: append(v.fiber.Wait[:0], wait)}
				if !v.add(f, 0) {
					return
				}
			}
		}
	}
}

var enterText = (&policy.Op{Kind: policy.Go}).Waits("")

// inLine reports whether a fiber waits for its first place, and so has not started.
func inLine(f *snapshot.Fiber) bool {
	return f.Waits == 0 && len(f.Wait) == 1 && f.Wait[0].Kind == snapshot.WaitPlace
}

// lined stores in some as many fibers as fit of those that wait in line for their first place, and returns their
// number. It begins with the fiber behind after, or with the first one if after is nil. Fibers leave the line at its
// head. So if after has left it, so have all fibers that were before after, and lined begins with the first one that is
// still in line.
//
//go:norace
func (n *Nursery) lined(after *Fiber, some *[64]*Fiber) (k int) {
	race.Disable()
	defer race.Enable()
	if n.limits() == nil {
		return 0
	}
	c := n.coldPart()
	c.childMu.Lock()
	defer c.childMu.Unlock()
	f := c.limiter.line
	if after != nil && !after.listed && (after.next != nil || after == c.limiter.lineEnd) { // after is still in line
		f = after.next
	}
	for ; f != nil && k < len(some); f = f.next {
		some[k] = f
		k++
	}
	return k
}

// site is a place in the source of the program or of coir.
type site struct {
	text string // file:line
	own  bool
}

// site returns the place of pc. The place of 0 is empty.
func (v *viewer) site(pc uintptr) site {
	at, ok := v.sites[pc]
	if !ok && pc != 0 {
		frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
		at = site{frame.File + ":" + strconv.Itoa(frame.Line), source.Own(frame.Function, frame.File)}
		v.sites[pc] = at
	}
	return at
}

// stacks returns the stacks of all goroutines, indexed by goroutine number.
func stacks() map[uint64]string {
	all := map[uint64]string{}
	for text := range strings.SplitSeq(string(sched.AllStacks()), "\n\n") {
		number, _, _ := strings.Cut(strings.TrimPrefix(text, "goroutine "), " ")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil {
			all[n] = text
		}
	}
	return all
}

// finish adds the collected data to the snapshot, in a fixed order.
func (v *viewer) finish() {
	s := v.s
	for n, x := range v.nurseries {
		x.Deadline = v.deadline(n)
		n.describe(x)
		s.Nurseries = append(s.Nurseries, *x)
	}
	for _, o := range v.objects {
		o.describe() // after all fibers: see package snapshot
		s.Objects = append(s.Objects, o.Object)
	}
	v.listed()
	for i := range s.Objects {
		for k, id := range s.Objects[i].Holders {
			if c := v.children[id]; c != nil {
				s.Objects[i].Holders[k] = c.f.id
			} else {
				v.outside(id)
			}
		}
	}
	slices.SortFunc(s.Fibers, func(a, b snapshot.Fiber) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Outside, func(a, b snapshot.Fiber) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Nurseries, func(a, b snapshot.Nursery) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Objects, func(a, b snapshot.Object) int { return cmp.Compare(a.ID, b.ID) })
	stats := v.rt.Stats()
	s.Process = process()
	s.Process.Spawned, s.Process.Live = int64(stats.Spawned), int64(stats.Spawned-stats.Ended)
	s.Took = time.Since(s.Taken)
}

// listed adds the listed objects that no fiber waits for.
func (v *viewer) listed() {
	n := 0
	for node := listing.after(nil); node != nil; node = listing.after(node) {
		var o snapshot.Object
		if showListed(node, &o) && v.objects[o.ID] == nil {
			if n++; n > mostListed {
				return
			}
			v.s.Objects = append(v.s.Objects, o)
		}
	}
}

// deadline returns the deadline of a nursery, or the zero time.
//
//go:norace
func (v *viewer) deadline(n *Nursery) time.Time {
	race.Disable()
	due, at := n.scope.until()
	race.Enable()
	return earlier(at, v.time(due))
}

// describe sets the limit of the nursery, and how it has ended.
//
//go:norace
func (n *Nursery) describe(x *snapshot.Nursery) {
	var e *ending
	race.Disable()
	if l := n.limits(); l != nil {
		x.Limit = l.places
	}
	if n.scope.state.Load() == scopeCancelled {
		e = plainCancel
		if c := n.scope.rest.Load(); c != nil && c.how != nil {
			e = c.how
		}
	}
	race.Enable()
	if e != nil {
		race.Acquire(unsafe.Pointer(&n.scope)) // as in scope.ending
		x.Ended, x.Cause = true, e.text()
	}
}

// text returns the text of the ending's cause.
func (e *ending) text() (text string) {
	defer func() {
		if recover() != nil {
			text = "(the Error method of its cause panics)"
		}
	}()
	if e.cause != nil {
		return causeText(e.cause)
	}
	return e.err.Error()
}

// number returns the nursery's number, which is unique among nurseries and objects.
//
//go:norace
func (n *Nursery) number() uint64 {
	c := n.coldPart()
	race.Disable()
	defer race.Enable()
	c.childMu.Lock()
	defer c.childMu.Unlock()
	if c.id == 0 {
		c.id = channel.NewObjectID()
	}
	return c.id
}

// process returns what a snapshot records about the process.
var process = sync.OnceValue(func() snapshot.Process {
	p := snapshot.Process{PID: os.Getpid(), Program: filepath.Base(os.Args[0]), Go: runtime.Version(), Coir: "(devel)"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" {
				p.Coir = m.Version
			}
		}
	}
	return p
})
