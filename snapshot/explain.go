package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Explain compares two snapshots, because the parts of one are from different moments. Two snapshots show which fibers
// have not moved between them, and the rest follows from that. explain_cycles.go finds the cycles of waits,
// explain_signs.go finds the other signs of trouble, and explain_words.go puts both into words.
//
// Why a cycle is certain: each of its fibers is in the same wait in both snapshots, so it waited during the whole time
// between them. The earlier snapshot read each object after all fibers. So a fiber that it names as a holder was in
// that wait already, and a fiber that waits does not unlock. So all of them waited, and held, at one moment. If a
// snapshot read objects before fibers, this would not follow: TestOrderedLocksAreNoDeadlock shows both.

// Explanation describes one thing that is wrong with a program.
type Explanation struct {
	Kind Problem `json:"kind"`

	// Certain says that the two snapshots prove the problem; otherwise the problem is likely. Two kinds can be certain.
	// The fibers of a certain deadlock wait until one of the waits is cancelled, or until a fiber unlocks a lock that
	// another fiber has locked. A certain trouble is known to its object: see [Object.TroubleCertain].
	Certain bool `json:"certain"`

	// Text is a sentence that names fibers, objects and lines. Whatever the names contain, it has no control characters
	// and a bounded length. It is not escaped for HTML.
	Text string `json:"text"`

	Fibers  []uint64 `json:"fibers"`            // the fibers concerned; those of a cycle come first, in its order
	Objects []uint64 `json:"objects,omitempty"` // the objects concerned

	// Since is the time when the oldest of the waits began. For a deadlock, it is the time when the last wait of the cycle
	// began, because nothing in the cycle has moved since then. It is zero if that time is not known.
	Since time.Time `json:"since,omitzero"`

	// SaysAge says that Text has the time since then, or the age of the oldest wait.
	SaysAge bool `json:"saysAge,omitempty"`
}

// Problem is a kind of problem.
type Problem string

// The problems, the most severe first.
const (
	// ProblemDeadlock: fibers wait for each other in a cycle.
	ProblemDeadlock Problem = "deadlock"
	// ProblemAllWaiting: every fiber waits, and no wait has a time limit. Only a goroutine outside of coir, or the
	// deadline of the Run, could end that.
	ProblemAllWaiting Problem = "all-waiting"
	// ProblemCancelIgnored: the context of a nursery has ended, and fibers of the nursery have not.
	ProblemCancelIgnored Problem = "cancel-ignored"
	// ProblemHolderGone: fibers wait for a lock, and the fiber that holds it has ended.
	ProblemHolderGone Problem = "holder-gone"
	// ProblemReceiverGone: fibers wait to send to a channel, and the last fibers that received from it have ended.
	ProblemReceiverGone Problem = "receiver-gone"
	// ProblemStarved: a fiber is ready to run, but does not run.
	ProblemStarved Problem = "starved"
	// ProblemNeverYields: a fiber occupies its worker and does not yield. It computes, as far as that is known.
	ProblemNeverYields Problem = "never-yields"
	// ProblemTrouble: an object reports that something is wrong with it: see [Object.Trouble]. Perhaps no fiber waits for
	// it.
	ProblemTrouble Problem = "trouble"
	// ProblemChannelFull: a channel has been full for a long time, and nothing is received from it.
	ProblemChannelFull Problem = "channel-full"
	// ProblemExhausted: all values of a pool have been lent for a long time, or a semaphore has had no free permits, and
	// fibers wait for them.
	ProblemExhausted Problem = "exhausted"
	// ProblemLockHeld: fibers have waited for a lock for a long time, and it has not been unlocked.
	ProblemLockHeld Problem = "lock-held"
	// ProblemBlockingCalls: fibers occupy their workers in calls that block, outside of coir.Blocking. There is one
	// explanation for each spawn site.
	ProblemBlockingCalls Problem = "blocking-calls"
	// ProblemTicketOld: fibers have waited for the answer of a ticket for a long time.
	ProblemTicketOld Problem = "ticket-old"
)

// severity lists the problems, the most severe first.
var severity = []Problem{
	ProblemDeadlock, ProblemAllWaiting, ProblemCancelIgnored, ProblemHolderGone, ProblemReceiverGone, ProblemStarved,
	ProblemNeverYields, ProblemTrouble, ProblemChannelFull, ProblemExhausted, ProblemLockHeld, ProblemBlockingCalls,
	ProblemTicketOld,
}

// Problems returns all kinds of problems, the most severe first.
func Problems() []Problem { return slices.Clone(severity) }

// Minimum durations before a report.
const (
	leastGap     = 100 * time.Millisecond // between the snapshots, for problems that only a comparison shows
	leastWait    = time.Second            // of a wait in a likely cycle, or for a fiber that has ended
	leastFull    = 5 * time.Second        // for which a channel is full, a pool is exhausted, or a lock is held
	leastTicket  = time.Minute            // of a wait for the answer of a ticket
	leastTrouble = time.Second            // of trouble
)

// leastCrowd is the number of explanations from which on they are reported as one, if they differ only in names.
const leastCrowd = 3

// Explain compares two snapshots of one runtime, and explains what is wrong. It returns certain explanations before
// likely ones, and more severe ones before others. It only reads the snapshots. Apart from sorting, its time is
// proportional to their size. No explanation is about a fiber with [Fiber.System].
//
// The longer the time between the snapshots, the more Explain can say: for some kinds it must be 100 ms. It returns nil
// if the later snapshot was begun before the earlier one was complete, or comes from another process.
func Explain(earlier, later *Snapshot) []Explanation {
	// Spec: OB-15 (the wait-for graph names cycles)
	p := compare(earlier, later)
	if p == nil {
		return nil
	}
	p.findCycles()
	p.findAllWaiting()
	p.findCancelIgnored()
	p.findHolderGone()
	p.findReceiverGone()
	p.findNeverYields() // before findStarved and findBlockingCalls, which use what it finds
	p.findStarved()
	p.findTrouble() // before findChannelFull, which omits these objects
	p.findChannelFull()
	p.findExhausted()
	p.findLockHeld()
	p.findBlockingCalls()
	p.findTicketOld()
	return p.result()
}

// pair holds what two snapshots show together.
type pair struct {
	earlier, later *Snapshot
	gap            time.Duration // from the end of the earlier to the beginning of the later
	quiet          bool          // every fiber waits, and no wait has a time limit
	ends           time.Time     // if every fiber has waited for long, the deadline of the Run, which ends that; else zero

	// Each slice is sorted by number. The slice after it has the numbers, for a binary search.
	fibers    []both // the fibers of the later snapshot
	fiberIDs  []uint64
	objects   []thing // the objects that are in both snapshots
	objectIDs []uint64
	families  []family // the nurseries of the later snapshot
	familyIDs []uint64

	before    []Fiber // the fibers of the earlier snapshot
	beforeIDs []uint64
	ended     int // how many fibers of the earlier snapshot are not in the later one

	hogs  map[int]hog // fibers that have occupied their workers all the time between the snapshots
	still bool        // no worker has run another fiber between the snapshots

	told  []found
	stuck map[int]bool // fibers of reported deadlocks
}

// both is a fiber of the later snapshot, with its state in the earlier one.
type both struct {
	*Fiber
	before    *Fiber    // in the earlier snapshot, or nil
	family    *family   // its nursery; an empty one for a goroutine
	limit     time.Time // when the wait ends by itself, at the latest; zero if it does not
	same      bool      // it is in the same wait in both snapshots
	cancelled bool      // a cancel may be about to end the wait
	foreign   bool      // the end of a context from outside of coir may end the wait
}

// family is a nursery and the fibers of the later snapshot in it.
type family struct {
	*Nursery
	ended    bool      // its context has ended in both snapshots
	deadline time.Time // the earliest deadline of this nursery and of the nurseries around it
	run      time.Time // the deadline of the outermost nursery
	known    bool      // deadline and run are set
	fibers   []int     // their indexes
}

// noFamily is the family of goroutines.
var noFamily = &family{Nursery: new(Nursery)}

// thing is an object that is in both snapshots.
type thing struct {
	*Object
	before  *Object
	holders []uint64 // sorted; nil if they are not the same in both snapshots
	waiters []int    // the indexes of the fibers that wait for it, or wait to send to it, in both snapshots: see gather
}

// found is an explanation, with a key for grouping.
type found struct {
	Explanation
	like string // explanations of one kind and with the same key may be reported together
}

// compare compares two snapshots. It returns nil if they cannot be compared.
func compare(earlier, later *Snapshot) *pair {
	if earlier == nil || later == nil || earlier == later || earlier.Process.PID != later.Process.PID {
		return nil
	}
	gap := later.Taken.Sub(earlier.Taken.Add(earlier.Took))
	if gap < 0 {
		return nil
	}
	p := &pair{earlier: earlier, later: later, gap: gap, hogs: map[int]hog{}, stuck: map[int]bool{}}
	p.compareNurseries()
	p.compareFibers()
	p.compareObjects()
	p.findQuiet()
	return p
}

// byID returns entries sorted by their numbers, each number once, and the numbers. A runtime lists its nurseries and
// objects in this order already, but not its fibers, because a new fiber takes the place of one that has ended.
func byID[T any](all []T, id func(*T) uint64) (sorted []T, ids []uint64) {
	type place struct {
		id uint64
		at int
	}
	places, inOrder := make([]place, len(all)), true
	for i := range all {
		places[i] = place{id(&all[i]), i}
		inOrder = inOrder && (i == 0 || places[i].id > places[i-1].id)
	}
	if sorted = all; !inOrder { // sort places instead of entries, because entries are large
		slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.at, b.at)) })
		places = slices.CompactFunc(places, func(a, b place) bool { return a.id == b.id })
		sorted = make([]T, len(places))
		for i, p := range places {
			sorted[i] = all[p.at]
		}
	}
	ids = make([]uint64, len(places))
	for i, p := range places {
		ids[i] = p.id
	}
	return sorted, ids
}

// inBoth calls f with the index of each number that is in both of two sorted lists.
func inBoth(earlier, later []uint64, f func(was, is int)) {
	was := 0
	for is, id := range later {
		for was < len(earlier) && earlier[was] < id {
			was++
		}
		if was < len(earlier) && earlier[was] == id {
			f(was, is)
		}
	}
}

func nurseryID(n *Nursery) uint64 { return n.ID }
func fiberID(f *Fiber) uint64     { return f.ID }
func objectID(o *Object) uint64   { return o.ID }

func (p *pair) compareNurseries() {
	all := slices.Clip(p.later.Nurseries)
	_, p.familyIDs = byID(all, nurseryID)
	for i := range p.later.Fibers { // a dump may not have all nurseries
		if p.later.Fibers[i].isGoroutine() {
			continue
		}
		id := p.later.Fibers[i].Nursery
		if last := len(all) - 1; (last < 0 || all[last].ID != id) && !p.listed(id) {
			all = append(all, Nursery{ID: id})
		}
	}
	later, ids := byID(all, nurseryID)
	p.families, p.familyIDs = make([]family, len(later)), ids
	for i := range later {
		p.families[i].Nursery = &later[i]
	}
	earlier, before := byID(p.earlier.Nurseries, nurseryID)
	inBoth(before, ids, func(was, is int) { p.families[is].ended = earlier[was].Ended && later[is].Ended })
	for i := range p.families {
		p.findDeadline(&p.families[i])
	}
}

// listed reports whether a nursery is in the later snapshot.
func (p *pair) listed(id uint64) bool {
	_, ok := slices.BinarySearch(p.familyIDs, id)
	return ok
}

// familyOf returns a nursery of the later snapshot, or nil.
func (p *pair) familyOf(id uint64) *family {
	if i, ok := slices.BinarySearch(p.familyIDs, id); ok {
		return &p.families[i]
	}
	return nil
}

// findDeadline sets the deadlines of a nursery and of the nurseries around it.
func (p *pair) findDeadline(f *family) {
	var way []*family
	for f != nil && !f.known {
		f.known = true // in a wrong dump a nursery may be inside itself
		way, f = append(way, f), p.familyOf(f.Parent)
	}
	var limit, run time.Time
	if f != nil {
		limit, run = f.deadline, f.run
	} else {
		run = way[len(way)-1].Deadline
	}
	for _, f := range slices.Backward(way) {
		limit = first(limit, f.Deadline)
		f.deadline, f.run = limit, run
	}
}

func (p *pair) compareFibers() {
	later, ids := byID(p.later.Fibers, fiberID)
	p.before, p.beforeIDs = byID(p.earlier.Fibers, fiberID)
	p.fibers, p.fiberIDs, p.ended = make([]both, len(later)), ids, len(p.before)
	inBoth(p.beforeIDs, ids, func(was, is int) {
		p.fibers[is].before = &p.before[was]
		p.ended--
	})
	var last *family // children of one nursery often follow each other
	for i := range p.fibers {
		f := &p.fibers[i]
		f.Fiber = &later[i]
		if f.isGoroutine() {
			f.family = noFamily
			f.compare()
			continue
		}
		if last == nil || last.ID != f.Nursery {
			last = p.familyOf(f.Nursery)
		}
		f.family, last.fibers = last, append(last.fibers, i)
		f.compare()
	}
}

// compare compares a fiber in the two snapshots.
func (f *both) compare() {
	f.limit = f.Until
	if f.before != nil {
		f.limit = first(f.limit, f.before.Until)
		f.same = f.waits() && f.before.waits() && f.Waits == f.before.Waits &&
			f.More == 0 && // otherwise a case that is not listed may end it
			slices.EqualFunc(f.Wait, f.before.Wait, sameWait)
	}
	if !slices.ContainsFunc(f.Wait, func(w Wait) bool { return w.Kind != WaitJoin && w.Kind != WaitPlace }) {
		return // a wait for children, or for a place, ends neither by a cancel nor by a deadline
	}
	f.limit = first(f.limit, f.family.deadline)
	f.cancelled = f.family.Ended
	f.foreign = f.Foreign || f.before != nil && f.before.Foreign
}

// isGoroutine reports whether f is a goroutine that is not a fiber.
func (f *Fiber) isGoroutine() bool { return f.State == StateGoroutine }

// waits reports whether f waits for something of coir.
func (f *Fiber) waits() bool { return f.State == StateWaiting || f.isGoroutine() }

// sameWait reports whether two waits are for the same thing. Their texts may differ, because a text may contain a count
// or a time.
func sameWait(a, b Wait) bool {
	return a.Kind == b.Kind && a.Object == b.Object && a.Fiber == b.Fiber && a.Nursery == b.Nursery
}

// fiber returns the index of a fiber of the later snapshot.
func (p *pair) fiber(id uint64) (i int, ok bool) { return slices.BinarySearch(p.fiberIDs, id) }

// first returns the earlier of two times. A zero time means none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (p *pair) compareObjects() {
	earlier, before := byID(p.earlier.Objects, objectID)
	later, ids := byID(p.later.Objects, objectID)
	p.objects, p.objectIDs = make([]thing, 0, min(len(earlier), len(later))), make([]uint64, 0, len(ids))
	inBoth(before, ids, func(was, is int) {
		o := thing{Object: &later[is], before: &earlier[was]}
		o.holders = sameHolders(o.Holders, o.before.Holders)
		p.objects, p.objectIDs = append(p.objects, o), append(p.objectIDs, o.ID)
	})
}

// sameHolders returns the holders of an object, sorted, if they are the same in both snapshots.
func sameHolders(now, before []uint64) []uint64 {
	if len(now) > 1 || len(before) > 1 {
		now, before = set(now), set(before)
	}
	if slices.Equal(now, before) {
		return now
	}
	return nil
}

// set returns the numbers sorted, each once.
func set(ids []uint64) []uint64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// object returns an object that is in both snapshots, or nil.
func (p *pair) object(id uint64) *thing {
	if id == 0 {
		return nil
	}
	if i, ok := slices.BinarySearch(p.objectIDs, id); ok {
		return &p.objects[i]
	}
	return nil
}

// gather sets the waiters of the interesting objects: the fibers of the program that are in the same wait of that kind
// in both snapshots. It returns the objects that have waiters.
func (p *pair) gather(kind WaitKind, interesting func(*thing) bool) []*thing {
	return p.gatherIf(kind, interesting, func(f *both, _ *thing) bool { return f.same })
}

// gatherAlso is like gather. The waiters of an object that stands, see stands, are all that the later snapshot shows,
// because each of their waits may have a time limit that is shorter than the time between the snapshots.
func (p *pair) gatherAlso(kind WaitKind, interesting func(*thing) bool) []*thing {
	return p.gatherIf(kind, interesting, func(f *both, o *thing) bool { return f.same || p.stands(o) })
}

func (p *pair) gatherIf(kind WaitKind, interesting func(*thing) bool, counts func(*both, *thing) bool) (all []*thing) {
	wanted := map[uint64]*thing{}
	for i := range p.objects {
		if o := &p.objects[i]; interesting(o) {
			o.waiters = nil
			wanted[o.ID] = o
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for i := range p.fibers {
		f := &p.fibers[i]
		if f.System || !f.waits() {
			continue
		}
		for _, w := range f.Wait {
			o := wanted[w.Object]
			if w.Kind != kind || o == nil || len(o.waiters) > 0 && o.waiters[len(o.waiters)-1] == i || !counts(f, o) {
				continue // if the last waiter is the same: a select has two cases on one object
			}
			if len(o.waiters) == 0 {
				all = append(all, o)
			}
			o.waiters = append(o.waiters, i)
		}
	}
	return all
}

// findQuiet finds out whether every fiber is in the same wait in both snapshots, and whether no wait could end by
// itself, at least not before the deadline of a Run. A wait for something that no fiber ends, such as a timer or the
// network, could end by itself, and so could a wait for a ticket, whose answer comes from outside. If a fiber has begun
// or ended since the earlier snapshot, it may have done so during the later one, and may have ended waits that the
// later one shows.
//
// Only the deadline of a Run counts. After the deadline of one wait, or of a nursery inside the Run, a program
// continues, as after a sleep.
//
// Other goroutines may do anything, so they do not count, with one exception: one that has begun or ended a wait for an
// object of coir since the earlier snapshot may just have ended other waits.
func (p *pair) findQuiet() {
	if p.later.Omitted > 0 || p.earlier.Omitted > 0 ||
		p.later.Process.Spawned != p.earlier.Process.Spawned || p.ended > 0 {
		return
	}
	program, begun, long := 0, int64(0), true
	var ends time.Time
	for i := range p.fibers {
		f := &p.fibers[i]
		if f.isGoroutine() {
			if !f.same {
				return
			}
			continue
		}
		if !f.same || f.cancelled || f.foreign || f.hasOwnLimit() || len(f.Wait) == 0 ||
			slices.ContainsFunc(f.Wait, p.mayEnd) {
			return
		}
		ends = first(ends, f.limit)
		long = long && (f.inLine() || p.ageOf(f).d >= leastWait)
		if !f.System {
			program++
		}
		if !f.inLine() {
			begun++
		}
	}
	switch {
	case program == 0 || p.later.Process.Live > begun:
	case ends.IsZero():
		p.quiet = true
	case long && ends.After(p.later.Taken):
		p.ends = ends
	}
}

// hasOwnLimit reports whether the wait of a fiber ends by itself before its Run ends. The times in two snapshots differ
// a little.
func (f *both) hasOwnLimit() bool {
	const little = 10 * time.Millisecond
	return !f.limit.IsZero() && (f.family.run.IsZero() || f.family.run.Sub(f.limit) > little)
}

// inLine reports whether a fiber has not begun, because it waits for its first place in a nursery with a limit.
func (f *Fiber) inLine() bool { return f.Waits == 0 && len(f.Wait) == 1 && f.Wait[0].Kind == WaitPlace }

// mayEnd reports whether a wait may end although no fiber ends it. A wait for a channel may end if a goroutine was the
// last to use the other side, because the goroutine may do so again. A wait for a lock or a pool may end if the lock,
// or a value, is held by a goroutine that does not wait.
func (p *pair) mayEnd(w Wait) bool {
	o := p.object(w.Object)
	switch w.Kind {
	case WaitJoin, WaitPlace:
		return false
	case WaitSend:
		return o != nil && o.ToOutside
	case WaitRecv:
		if o != nil && o.borrowersKnown() {
			return slices.ContainsFunc(o.Holders, p.isFree)
		}
		return o != nil && o.FromOutside
	case WaitEnd:
		_, ok := p.fiber(w.Fiber)
		return !ok
	case WaitUse:
		return o == nil || o.Ends == "" || o.Kind == ticket || slices.ContainsFunc(o.Holders, p.isFree)
	}
	return true
}

// outside returns a goroutine that is in the later snapshot only because it holds an object, or nil.
func (p *pair) outside(id uint64) *Fiber {
	for i := range p.later.Outside {
		if f := &p.later.Outside[i]; f.ID == id {
			return f
		}
	}
	return nil
}

// isFree reports whether id is the number of a goroutine that waits for nothing of coir.
func (p *pair) isFree(id uint64) bool { return id >= FirstGoroutine && !p.alive(id) }

// old reports whether a wait that is the same in both snapshots is old enough to be reported as likely to be stuck.
// The age does not matter if every fiber waits.
func (p *pair) old(f *both) bool {
	return p.quiet || p.ageOf(f).d >= leastWait
}

// span is a duration, or a lower bound of one.
type span struct {
	d     time.Duration
	least bool // d is a lower bound
}

// since returns the time from t until the later snapshot. If t is not known, since returns the time between the
// snapshots as a lower bound.
func (p *pair) since(t time.Time) span {
	if t.IsZero() {
		return span{p.gap, true}
	}
	return span{max(p.later.Taken.Sub(t), 0), false}
}

// ageOf returns the age of a wait that is the same in both snapshots.
func (p *pair) ageOf(f *both) span { return p.since(began(f)) }

// began returns the time when a wait that is the same in both snapshots began, or zero.
func began(f *both) time.Time {
	if f.Since.IsZero() && f.before != nil {
		return f.before.Since
	}
	return f.Since
}

// oldest returns the time when the oldest wait of some fibers began, or zero. It ignores fibers that do not wait.
func (p *pair) oldest(fibers []int) (t time.Time) {
	for _, i := range fibers {
		if p.fibers[i].same {
			t = first(t, began(&p.fibers[i]))
		}
	}
	return t
}

// newest returns the time when the newest wait of some fibers began, or zero if it is not known.
func (p *pair) newest(fibers []int) (t time.Time) {
	for _, i := range fibers {
		if at := began(&p.fibers[i]); at.After(t) {
			t = at
		}
	}
	return t
}

// ids returns the numbers of fibers.
func (p *pair) ids(fibers []int) []uint64 {
	ids := make([]uint64, len(fibers))
	for k, i := range fibers {
		ids[k] = p.fibers[i].ID
	}
	return ids
}

// tell adds an explanation about fibers, whose text says how old it is if since is known.
func (p *pair) tell(kind Problem, like, text string, fibers []int, since time.Time, objects ...uint64) {
	p.told = append(p.told, found{Explanation{
		Kind: kind, Text: text, Fibers: p.ids(fibers), Objects: objects, Since: since, SaysAge: !since.IsZero(),
	}, like})
}

// result returns the explanations in order. It joins explanations of one kind if many of them are similar.
func (p *pair) result() (all []Explanation) {
	slices.SortStableFunc(p.told, func(a, b found) int { return before(&a.Explanation, &b.Explanation) })
	type group struct {
		kind    Problem
		like    string
		certain bool
	}
	groups := map[group][]int{}
	for i := range p.told {
		x := &p.told[i]
		g := group{x.Kind, x.like, x.Certain}
		groups[g] = append(groups[g], i)
	}
	for i := range p.told {
		x := &p.told[i]
		same := groups[group{x.Kind, x.like, x.Certain}]
		switch {
		case len(same) < leastCrowd:
			all = append(all, x.Explanation)
		case same[0] == i: // the oldest
			all = append(all, p.together(same))
		}
	}
	return all
}

// together joins several explanations into one.
func (p *pair) together(same []int) Explanation {
	x := p.told[same[0]].Explanation
	had := len(x.Fibers)
	x.Fibers, x.Objects = slices.Clone(x.Fibers), slices.Clone(x.Objects)
	for _, i := range same[1:] {
		x.Fibers = append(x.Fibers, p.told[i].Fibers...)
		x.Objects = append(x.Objects, p.told[i].Objects...)
	}
	x.Fibers, x.Objects = unique(x.Fibers), unique(x.Objects)
	x.Text += fmt.Sprintf("; the same %d times more", len(same)-1)
	if more := len(x.Fibers) - had; more > 0 {
		x.Text += ", with " + count(more, "other fiber")
	}
	return x
}

// unique removes repeated numbers, and keeps the order of the others.
func unique(ids []uint64) []uint64 {
	seen := make(map[uint64]bool, len(ids))
	return slices.DeleteFunc(ids, func(id uint64) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// before compares explanations for sorting.
func before(a, b *Explanation) int {
	if a.Certain != b.Certain {
		if a.Certain {
			return -1
		}
		return 1
	}
	if c := cmp.Compare(slices.Index(severity, a.Kind), slices.Index(severity, b.Kind)); c != 0 {
		return c
	}
	if a.Since.IsZero() != b.Since.IsZero() {
		if b.Since.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Since.Compare(b.Since), slices.Compare(a.Fibers, b.Fibers), strings.Compare(a.Text, b.Text))
}
