package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What is wrong with a program, by two snapshots of it. One snapshot does not show it: it is not of one moment. Two
// show which fibers have not moved between them, and the rest follows from that. The cycles of waits are in
// explain_cycles.go, the other signs in explain_signs.go, the words in explain_words.go.
//
// A cycle is told as certain by this argument. Each of its fibers is in the same wait in both snapshots, so it waited
// during the whole time between them. In the earlier snapshot each object was read after all the fibers, so a fiber
// that it names as a holder was then already in that wait, and a fiber that waits does not unlock. So all of them
// waited, and held, at one moment. If a snapshot read objects before fibers, the argument would be wrong:
// TestOrderedLocksAreNoDeadlock shows both.

// Explanation says one thing that is wrong with a program.
type Explanation struct {
	Kind Problem `json:"kind"`

	// Certain says that by what both snapshots show it cannot be otherwise. What is not certain is likely. Only a
	// deadlock can be certain: its fibers wait until one of the waits is cancelled, or until another fiber unlocks a
	// lock that it has not locked.
	Certain bool `json:"certain"`

	// Text is a sentence that names fibers, objects and lines. It has no control characters, whatever the names are, and
	// is of bounded length. It is not escaped for HTML.
	Text string `json:"text"`

	Fibers  []uint64  `json:"fibers"`            // the fibers that it is about; those of a cycle first, in its order
	Objects []uint64  `json:"objects,omitempty"` // the objects that it is about
	Since   time.Time `json:"since,omitzero"`    // when the oldest of the waits began, if known
}

// Problem is a kind of explanation: what is wrong.
type Problem string

// The problems, the most severe first.
const (
	// ProblemDeadlock: fibers wait for each other in a cycle.
	ProblemDeadlock Problem = "deadlock"
	// ProblemAllWaiting: every fiber waits, none of them for a time. Only a goroutine outside of coir could end that.
	ProblemAllWaiting Problem = "all-waiting"
	// ProblemCancelIgnored: the context of a nursery has ended, and fibers of the nursery have not.
	ProblemCancelIgnored Problem = "cancel-ignored"
	// ProblemReceiverGone: fibers wait to send to a channel, and the last fiber that received from it has ended.
	ProblemReceiverGone Problem = "receiver-gone"
	// ProblemStarved: a fiber is ready, and does not get to run.
	ProblemStarved Problem = "starved"
	// ProblemNeverYields: a fiber holds its worker, and does not yield.
	ProblemNeverYields Problem = "never-yields"
	// ProblemChannelFull: a channel has been full for long, and nothing is received from it.
	ProblemChannelFull Problem = "channel-full"
	// ProblemBlockingCalls: fibers hold their workers in calls that block. There is one explanation for each spawn site.
	ProblemBlockingCalls Problem = "blocking-calls"
	// ProblemTicketOld: fibers wait for the answer of a ticket for long.
	ProblemTicketOld Problem = "ticket-old"
)

// severity is the order of the problems.
var severity = []Problem{
	ProblemDeadlock, ProblemAllWaiting, ProblemCancelIgnored, ProblemReceiverGone, ProblemStarved, ProblemNeverYields,
	ProblemChannelFull, ProblemBlockingCalls, ProblemTicketOld,
}

// How long something lasts before it is told.
const (
	leastGap    = 100 * time.Millisecond // between the snapshots, for what is seen only by comparing them
	leastWait   = time.Second            // a wait of a likely cycle, or for a receiver that is gone
	leastFull   = 5 * time.Second        // a channel that is full
	leastTicket = time.Minute            // a wait for the answer of a ticket
)

// leastCrowd is how many explanations that differ only in names are told as one.
const leastCrowd = 3

// Explain says what is wrong, by two snapshots of one runtime, the earlier first. It returns the certain explanations
// first, then by severity. It only reads the snapshots, and its time is proportional to their size, but for sorting.
// No explanation is about a fiber with [Fiber.System].
//
// The longer the time between the snapshots, the more Explain can say: for some kinds it must be 100 ms. It returns nil
// if the later snapshot was begun before the earlier was complete, or is of another process.
func Explain(earlier, later *Snapshot) []Explanation {
	// Spec: OB-15 (the wait-for graph names cycles)
	p := compare(earlier, later)
	if p == nil {
		return nil
	}
	p.findCycles()
	p.findAllWaiting()
	p.findCancelIgnored()
	p.findReceiverGone()
	p.findNeverYields() // before findStarved, which names these fibers, and findBlockingCalls, which leaves them out
	p.findStarved()
	p.findChannelFull()
	p.findBlockingCalls()
	p.findTicketOld()
	return p.result()
}

// pair is what two snapshots show together.
type pair struct {
	earlier, later *Snapshot
	gap            time.Duration // from the end of the earlier to the beginning of the later
	quiet          bool          // every fiber waits, and none for a time

	fibers    []both // those of the later snapshot, by number
	at        map[uint64]int
	earlierOf map[uint64]*Fiber
	objects   []thing // those in both snapshots, by number
	objectAt  map[uint64]int
	nurseries map[uint64]*Nursery // of the later snapshot
	ended     map[uint64]bool     // the nurseries whose context has ended in both
	members   map[uint64][]int    // the fibers of a nursery, as indexes

	hogs  map[int]bool // the fibers that ProblemNeverYields is about
	still bool         // no worker has run another fiber

	told  []found
	stuck map[int]bool // the fibers that a deadlock is about
}

// both is a fiber of the later snapshot.
type both struct {
	*Fiber
	before    *Fiber    // in the earlier snapshot, or nil
	same      bool      // it is in the same wait in both
	limit     time.Time // when the wait ends by itself, at the latest; zero if it does not
	cancelled bool      // a cancel may be about to end the wait
	foreign   bool      // the end of a context that is not coir's may end the wait
}

// thing is an object that is in both snapshots.
type thing struct {
	*Object
	before  *Object
	holders []uint64 // sorted; nil if they are not the same in both
	senders []int    // fibers that wait to send in both, as indexes
	users   []int    // fibers that wait for it otherwise in both
}

// found is an explanation with what decides its place.
type found struct {
	Explanation
	like string // those of one kind that have the same one may be told together
}

// compare returns what two snapshots show together, or nil if they cannot be compared.
func compare(earlier, later *Snapshot) *pair {
	if earlier == nil || later == nil || earlier == later || earlier.Process.PID != later.Process.PID {
		return nil
	}
	gap := later.Taken.Sub(earlier.Taken.Add(earlier.Took))
	if gap < 0 {
		return nil
	}
	p := &pair{
		earlier: earlier, later: later, gap: gap,
		at:        make(map[uint64]int, len(later.Fibers)),
		earlierOf: make(map[uint64]*Fiber, len(earlier.Fibers)),
		objectAt:  make(map[uint64]int, len(later.Objects)),
		nurseries: make(map[uint64]*Nursery, len(later.Nurseries)),
		ended:     map[uint64]bool{},
		members:   map[uint64][]int{},
		hogs:      map[int]bool{},
		stuck:     map[int]bool{},
	}
	p.compareNurseries()
	p.compareFibers()
	p.compareObjects()
	p.quiet = p.isQuiet()
	return p
}

func (p *pair) compareNurseries() {
	before := map[uint64]bool{}
	for i := range p.earlier.Nurseries {
		n := &p.earlier.Nurseries[i]
		before[n.ID] = n.Ended
	}
	for i := range p.later.Nurseries {
		n := &p.later.Nurseries[i]
		p.nurseries[n.ID] = n
		p.ended[n.ID] = n.Ended && before[n.ID]
	}
}

func (p *pair) compareFibers() {
	for i := range p.earlier.Fibers {
		f := &p.earlier.Fibers[i]
		p.earlierOf[f.ID] = f
	}
	sorted := make([]*Fiber, len(p.later.Fibers))
	for i := range p.later.Fibers {
		sorted[i] = &p.later.Fibers[i]
	}
	slices.SortFunc(sorted, func(a, b *Fiber) int { return cmp.Compare(a.ID, b.ID) })
	sorted = slices.CompactFunc(sorted, func(a, b *Fiber) bool { return a.ID == b.ID })
	p.fibers = make([]both, len(sorted))
	for i, f := range sorted {
		p.fibers[i].Fiber = f
	}
	deadlines := map[uint64]time.Time{}
	for i := range p.fibers {
		f := &p.fibers[i]
		p.at[f.ID] = i
		p.members[f.Nursery] = append(p.members[f.Nursery], i)
		f.before = p.earlierOf[f.ID]
		f.same = f.before != nil && f.State == StateWaiting && f.before.State == StateWaiting &&
			f.Waits == f.before.Waits && f.More == 0 && // else another case may end it
			slices.EqualFunc(f.Wait, f.before.Wait, sameWait)
		f.limit = f.Until
		if f.before != nil {
			f.limit = first(f.limit, f.before.Until)
		}
		if !slices.ContainsFunc(f.Wait, func(w Wait) bool { return w.Kind != WaitJoin }) {
			continue // neither a cancel nor a deadline ends the wait for children
		}
		f.limit = first(f.limit, p.deadline(f.Nursery, deadlines))
		n := p.nurseries[f.Nursery]
		f.cancelled = n != nil && n.Ended
		f.foreign = f.Foreign || f.before != nil && f.before.Foreign
	}
}

// sameWait reports whether a wait is for the same thing. Its text may differ: it may have a count or a time.
func sameWait(a, b Wait) bool {
	a.Text, b.Text = "", ""
	return a == b
}

// first returns the earlier of two times. Zero means none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// deadline returns the first deadline of a nursery and those around it. known has those that were found already.
func (p *pair) deadline(id uint64, known map[uint64]time.Time) time.Time {
	var way []uint64
	var limit time.Time
	for {
		d, ok := known[id]
		n := p.nurseries[id]
		if ok || n == nil {
			limit = d
			break
		}
		known[id] = time.Time{} // a dump may have a nursery in itself
		way, id = append(way, id), n.Parent
	}
	for _, id := range slices.Backward(way) {
		limit = first(limit, p.nurseries[id].Deadline)
		known[id] = limit
	}
	return limit
}

func (p *pair) compareObjects() {
	before := make(map[uint64]*Object, len(p.earlier.Objects))
	for i := range p.earlier.Objects {
		before[p.earlier.Objects[i].ID] = &p.earlier.Objects[i]
	}
	for i := range p.later.Objects {
		if o := &p.later.Objects[i]; before[o.ID] != nil {
			p.objects = append(p.objects, thing{Object: o, before: before[o.ID]})
		}
	}
	slices.SortStableFunc(p.objects, func(a, b thing) int { return cmp.Compare(a.ID, b.ID) })
	p.objects = slices.CompactFunc(p.objects, func(a, b thing) bool { return a.ID == b.ID })
	for i := range p.objects {
		o := &p.objects[i]
		p.objectAt[o.ID] = i
		if now, then := set(o.Holders), set(o.before.Holders); slices.Equal(now, then) {
			o.holders = now
		}
	}
	for i := range p.fibers {
		f := &p.fibers[i]
		if !f.same || f.System {
			continue
		}
		for _, w := range f.Wait {
			o := p.object(w.Object)
			switch {
			case o == nil:
			case w.Kind == WaitSend:
				o.senders = add(o.senders, i)
			case w.Kind == WaitUse:
				o.users = add(o.users, i)
			}
		}
	}
}

// add appends i, unless it is the last already: a select may have two cases on one object.
func add(to []int, i int) []int {
	if len(to) > 0 && to[len(to)-1] == i {
		return to
	}
	return append(to, i)
}

// object returns an object that is in both snapshots, or nil.
func (p *pair) object(id uint64) *thing {
	if i, ok := p.objectAt[id]; ok {
		return &p.objects[i]
	}
	return nil
}

// set returns the numbers sorted, each once.
func set(ids []uint64) []uint64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// isQuiet reports whether every fiber waits, as in the earlier snapshot, and no wait could end by itself. A wait for an
// object that no fiber ends, such as a timer or the network, could; so could that for a ticket, whose answer comes from
// outside. If a fiber has begun or ended since, it may have done so during the later snapshot, and may have ended waits
// that this shows.
func (p *pair) isQuiet() bool {
	if p.later.Omitted > 0 || p.earlier.Omitted > 0 || p.later.Process.Live > int64(len(p.later.Fibers)) ||
		p.later.Process.Spawned != p.earlier.Process.Spawned {
		return false
	}
	for id := range p.earlierOf {
		if _, ok := p.at[id]; !ok {
			return false
		}
	}
	program := 0
	for i := range p.fibers {
		f := &p.fibers[i]
		if !f.same || f.mayPass() || len(f.Wait) == 0 || slices.ContainsFunc(f.Wait, p.mayEnd) {
			return false
		}
		if !f.System {
			program++
		}
	}
	return program > 0
}

// mayEnd reports whether a wait may end without another fiber, as far as its kind says.
func (p *pair) mayEnd(w Wait) bool {
	switch w.Kind {
	case WaitSend, WaitRecv, WaitJoin, WaitPlace:
		return false
	case WaitEnd:
		_, ok := p.at[w.Fiber]
		return !ok
	case WaitUse:
		o := p.object(w.Object)
		return o == nil || o.Ends == "" || o.Kind == ticket || o.Kind == condition
	}
	return true
}

// old reports whether a wait that is the same in both snapshots is old enough to be told as likely to be stuck. If
// every fiber waits, its age does not matter.
func (p *pair) old(f *both) bool {
	return p.quiet || p.ageOf(f).d >= leastWait
}

// span is how long something lasts, or at least lasts.
type span struct {
	d     time.Duration
	least bool
}

// since returns how long something lasts that began at a time. If that is zero, it lasted between the snapshots.
func (p *pair) since(t time.Time) span {
	if t.IsZero() {
		return span{p.gap, true}
	}
	return span{max(p.later.Taken.Sub(t), 0), false}
}

// ageOf returns how long a fiber waits that is in the same wait in both snapshots.
func (p *pair) ageOf(f *both) span { return p.since(began(f)) }

// began returns when a wait began that is the same in both snapshots, or zero.
func began(f *both) time.Time {
	if f.Since.IsZero() && f.before != nil {
		return f.before.Since
	}
	return f.Since
}

// oldest returns when the oldest wait of fibers began, or zero. Those that do not wait do not count.
func (p *pair) oldest(fibers []int) (t time.Time) {
	for _, i := range fibers {
		if p.fibers[i].same {
			t = first(t, began(&p.fibers[i]))
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

// tell adds an explanation about fibers.
func (p *pair) tell(kind Problem, like, text string, fibers []int, since time.Time, objects ...uint64) {
	p.told = append(p.told, found{Explanation{
		Kind: kind, Text: text, Fibers: p.ids(fibers), Objects: objects, Since: since,
	}, like})
}

// result returns the explanations in order. Many of one kind that are alike are told as one.
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

// together returns one explanation for several.
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

// unique removes the numbers that came before, and keeps the order.
func unique(ids []uint64) []uint64 {
	seen := make(map[uint64]bool, len(ids))
	return slices.DeleteFunc(ids, func(id uint64) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// before is the order of explanations.
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
