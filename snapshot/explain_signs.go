package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// This file finds signs of trouble other than cycles of waits. None of them is certain, because a program may do such
// things on purpose; except that an object may know its own trouble for certain.

// Kinds of objects.
const (
	channel = "channel"
	remote  = "remote channel" // of package remote
	ticket  = "ticket"         // of a desk
	pool    = KindPool

	semaphore = "semaphore" // of package locks
)

// findAllWaiting reports that every fiber waits, unless all of them belong to deadlocks that were reported.
func (p *pair) findAllWaiting() {
	if !p.quiet && p.ends.IsZero() {
		return
	}
	var all, goroutines []int
	told := true
	for i := range p.fibers {
		switch f := &p.fibers[i]; {
		case f.System:
		case f.isGoroutine():
			goroutines = append(goroutines, i)
		default:
			all = append(all, i)
			told = told && p.stuck[i]
		}
	}
	if told {
		return
	}
	since := p.oldest(all)
	text := fmt.Sprintf("%s%s: %s", pick(all, "the only fiber waits", "every fiber waits"), p.lasts(since, all), p.does(all))
	if len(goroutines) > 0 {
		text += "; so " + pick(goroutines, "does a goroutine: ", "do goroutines: ") + p.does(goroutines) +
			"; only another goroutine could end that"
		all = append(all, goroutines...)
	} else {
		text += "; only a goroutine outside of coir could end that"
	}
	if !p.ends.IsZero() {
		text += fmt.Sprintf(" before the deadline, in %s", span{d: p.ends.Sub(p.later.Taken)})
	}
	p.tell(ProblemAllWaiting, "", text, all, since)
}

// findCancelIgnored reports fibers that have not ended although their nursery was cancelled.
func (p *pair) findCancelIgnored() {
	if p.gap < leastGap {
		return
	}
	for i := range p.families {
		n := &p.families[i]
		if !n.ended {
			continue
		}
		left := p.left(n)
		// A fiber that joins another reported nursery is not the cause.
		if !slices.ContainsFunc(left, func(i int) bool { return !p.joinsTold(&p.fibers[i]) }) {
			continue
		}
		text := "nursery " + fmt.Sprint(n.ID)
		if owner, ok := p.fiber(n.Owner); ok && !p.fibers[owner].System {
			text = "the nursery of " + p.fibers[owner].name()
		}
		text += " was cancelled"
		if n.Cause != "" {
			text += " (" + clean(n.Cause, mostText) + ")"
		}
		text += fmt.Sprintf(", and %s not ended: %s",
			pick(left, "1 fiber has", fmt.Sprintf("%d fibers have", len(left))), p.does(left))
		p.tell(ProblemCancelIgnored, p.fibers[left[0]].like(), text, left, p.oldest(left))
		p.told[len(p.told)-1].SaysAge = false
	}
}

// left returns the fibers of a nursery that are in both snapshots. It omits the fiber that only waits for the others,
// and the fibers that have not been able to run and to see the cancel.
func (p *pair) left(n *family) (left []int) {
	for _, i := range n.fibers {
		f := &p.fibers[i]
		joins := slices.ContainsFunc(f.Wait, func(w Wait) bool { return w.Kind == WaitJoin && w.Nursery == n.ID })
		if f.before != nil && !f.System && !joins && f.State != StateReady && f.State != StatePending && !f.inLine() {
			left = append(left, i)
		}
	}
	return left
}

// joinsTold reports whether a fiber waits for the children of a nursery that was cancelled too.
func (p *pair) joinsTold(f *both) bool {
	return slices.ContainsFunc(f.Wait, func(w Wait) bool {
		if w.Kind != WaitJoin {
			return false
		}
		n := p.familyOf(w.Nursery)
		return n != nil && n.ended && slices.ContainsFunc(n.fibers, func(i int) bool { return !p.fibers[i].System })
	})
}

// findHolderGone reports fibers that wait for a lock whose holder has ended. A holder that is not in the snapshot may
// also be a fiber of another runtime, so this is not certain.
func (p *pair) findHolderGone() {
	gone := func(o *thing) bool {
		return o.isLock() && len(o.holders) == 1 && o.Waiters > 0 && p.later.Omitted == 0 &&
			!p.alive(o.holders[0]) && !p.isFree(o.holders[0])
	}
	for _, o := range p.gather(WaitUse, gone) {
		if stuck := p.held(o.waiters); len(stuck) > 0 {
			since := p.oldest(stuck)
			text := fmt.Sprintf("%s %s%s; %s, which holds it, has ended", p.who(stuck), p.verb(stuck), p.lasts(since, stuck),
				p.nameOf(o.holders[0]))
			p.tell(ProblemHolderGone, o.like(), text, stuck, since, o.ID)
		}
	}
}

// alive reports whether a fiber is in the later snapshot.
func (p *pair) alive(id uint64) bool {
	_, ok := p.fiber(id)
	return ok
}

// findReceiverGone reports fibers that wait to send to a channel whose last receiver has ended.
func (p *pair) findReceiverGone() {
	for _, o := range p.gather(WaitSend, p.gone) {
		stuck := p.held(o.waiters)
		if len(stuck) == 0 {
			continue
		}
		since := p.oldest(stuck)
		text := fmt.Sprintf("%s %s%s; %s, which was the last to receive from it, has ended",
			p.who(stuck), p.verb(stuck), p.lasts(since, stuck), p.nameOf(o.Receiver))
		p.tell(ProblemReceiverGone, o.like(), text, stuck, since, o.ID)
	}
}

// held returns the fibers that have waited for long, for one thing, in a wait without a limit.
func (p *pair) held(fibers []int) []int {
	return slices.DeleteFunc(slices.Clone(fibers), func(i int) bool {
		f := &p.fibers[i]
		return len(f.Wait) > 1 || f.mayPass() || !p.old(f)
	})
}

// gone reports whether the last receivers of a channel have ended, and no other fiber receives in their place.
func (p *pair) gone(o *thing) bool {
	if o.Receiver == 0 || o.before.Receiver != o.Receiver || o.Received != o.before.Received || o.Senders == 0 ||
		o.Receivers > 0 || p.later.Omitted > 0 {
		return false
	}
	return !p.alive(o.Receiver) && !p.alive(o.ReceiverBefore)
}

// hog is a fiber that has occupied its worker all the time between the snapshots.
type hog struct {
	began time.Time // since when; zero if that is not known
	calls bool      // it was in a call that blocks, in one of the snapshots at least
}

// findNeverYields reports fibers that have occupied their workers all the time between the snapshots, and were in calls
// that block in neither of them.
func (p *pair) findNeverYields() {
	if p.gap < leastGap {
		return
	}
	before := map[int]*Worker{}
	for i := range p.earlier.Workers {
		before[p.earlier.Workers[i].ID] = &p.earlier.Workers[i]
	}
	p.still = len(p.later.Workers) > 0
	for i := range p.later.Workers {
		w := &p.later.Workers[i]
		b := before[w.ID]
		if b == nil || w.Fiber == 0 || w.Fiber != b.Fiber || w.Beats != b.Beats {
			p.still = false
			continue
		}
		k, ok := p.fiber(w.Fiber)
		if ok && busy(w) && busy(b) && p.holds(&p.fibers[k]) {
			f := &p.fibers[k]
			p.hogs[k] = hog{first(w.Since, b.Since), f.blockedIn() != ""}
		}
	}
	computes := func(i int) bool { return p.fibers[i].computes() && p.fibers[i].before.computes() }
	never := func(i int) bool {
		h, ok := p.hogs[i]
		return ok && !h.calls
	}
	for _, same := range p.bySite(func(i int) bool { return never(i) && computes(i) }) {
		since, lasts := p.occupied(same)
		f := &p.fibers[same[0]]
		text := fmt.Sprintf("%s%s %s for %s without yielding", p.names(same), spawned(f.Spawned),
			pick(same, "computes", "compute"), lasts)
		p.tellHogs(f.like(), text+f.isAt(), same, since, lasts)
	}
	for _, same := range p.bySite(func(i int) bool { return never(i) && !computes(i) }) {
		since, lasts := p.occupied(same)
		f := &p.fibers[same[0]]
		text := fmt.Sprintf("%s%s likely %s for %s", p.names(same), spawned(f.Spawned),
			pick(same, "has not yielded its worker", "have not yielded their workers"), lasts)
		p.tellHogs(f.like(), text+f.isAt(), same, since, lasts)
	}
}

// tellHogs reports fibers that do not yield. since and lasts are the results of occupied, and text has lasts.
func (p *pair) tellHogs(like, text string, same []int, since time.Time, lasts span) {
	p.tell(ProblemNeverYields, like, text, same, since)
	p.told[len(p.told)-1].SaysAge = lasts.d == p.since(since).d
}

// occupied returns the time since when the first of some fibers has occupied its worker, and for how long all of them
// have.
func (p *pair) occupied(fibers []int) (since time.Time, lasts span) {
	seen := p.earlier.Taken.Add(p.earlier.Took)
	lasts.least = len(fibers) > 1
	var youngest time.Time
	for _, i := range fibers {
		at := p.hogs[i].began
		if at.IsZero() {
			at, lasts.least = seen, true
		}
		since = first(since, at)
		if at.After(youngest) {
			youngest = at
		}
	}
	lasts.d = max(p.later.Taken.Sub(youngest), 0)
	return since, lasts
}

// busy reports whether a worker runs a fiber that is not in a call that blocks.
func busy(w *Worker) bool { return w.State == WorkerStateRunning || w.State == WorkerStateHeld }

// holds reports whether a fiber of the program has a worker in both snapshots, according to the fiber's own state.
func (p *pair) holds(f *both) bool {
	on := func(s State) bool { return s == StateRunning || s == StateBlocking }
	return !f.System && f.before != nil && on(f.State) && on(f.before.State) && f.Waits == f.before.Waits
}

// bySite returns the fibers that have a property, grouped by the line that spawned them. The groups are in the order of
// their first fibers.
func (p *pair) bySite(has func(i int) bool) (groups [][]int) {
	at := map[string]int{}
	for i := range p.fibers {
		if p.fibers[i].System || !has(i) {
			continue
		}
		key := p.fibers[i].like()
		k, ok := at[key]
		if !ok {
			k = len(groups)
			at[key] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	return groups
}

// findStarved reports fibers that are ready but do not run. A fiber that yields again and again looks the same. So
// findStarved reports fibers only if the workers have switched too seldom to run each ready fiber. A fiber that has not
// begun counts only if no worker could have begun it, and if it does not wait for a place in its nursery.
func (p *pair) findStarved() {
	if p.gap < leastGap || p.turns() >= p.ready() {
		return
	}
	hogs := slices.Sorted(maps.Keys(p.hogs))
	for _, same := range p.bySite(p.starves) {
		f := &p.fibers[same[0]]
		text := fmt.Sprintf("%s%s %s ready to run, and likely %s not run for %s", p.names(same), spawned(f.Spawned),
			pick(same, "is", "are"), pick(same, "has", "have"), span{p.gap, true})
		if p.still && len(hogs) > 0 {
			text += fmt.Sprintf("; %s, which %s the workers", p.names(hogs),
				pick(hogs, "does not yield, holds", "do not yield, hold"))
		}
		p.tell(ProblemStarved, f.like(), text, same, p.oldest(same))
	}
}

// turns returns the number of times that the workers have run a fiber between the snapshots.
func (p *pair) turns() (n uint64) {
	before := map[int]uint64{}
	for _, w := range p.earlier.Workers {
		before[w.ID] = w.Beats
	}
	for _, w := range p.later.Workers {
		n += max(w.Beats, before[w.ID]) - before[w.ID]
	}
	return n
}

// ready returns the number of ready fibers.
func (p *pair) ready() (n uint64) {
	for i := range p.fibers {
		if s := p.fibers[i].State; s == StateReady || s == StatePending {
			n++
		}
	}
	return n
}

// starves reports whether a fiber could run in both snapshots, and has not begun a wait between them.
func (p *pair) starves(i int) bool {
	f := &p.fibers[i]
	if f.before == nil || f.State != f.before.State || f.Waits != f.before.Waits {
		return false
	}
	return f.State == StateReady || f.State == StatePending && p.still && len(p.hogs) > 0 && f.family.Limit == 0
}

// findTrouble reports objects that have said in both snapshots that something is wrong with them, and the fibers that
// wait for them. What these fibers wait for may change meanwhile, because they may try again.
func (p *pair) findTrouble() {
	waiters := map[uint64][]int{}
	for i := range p.objects {
		if p.objects[i].troubled(p) {
			waiters[p.objects[i].ID] = nil
		}
	}
	if len(waiters) == 0 {
		return
	}
	for i := range p.fibers {
		f := &p.fibers[i]
		if f.System || f.before == nil {
			continue
		}
		for _, w := range f.Wait {
			if all, ok := waiters[w.Object]; ok && (len(all) == 0 || all[len(all)-1] != i) {
				waiters[w.Object] = append(all, i)
			}
		}
	}
	for i := range p.objects {
		o := &p.objects[i]
		all, ok := waiters[o.ID]
		if !ok {
			continue
		}
		name := o.name()
		if o.Name != "" {
			name = clean(o.Kind, mostName) + " " + name
		}
		text := fmt.Sprintf("%s has trouble for %s: %s", name, p.since(o.TroubleSince), clean(o.Trouble, mostText))
		if len(all) > 0 {
			text += "; " + p.does(all)
		} else {
			text += "; no fiber waits for it"
		}
		p.tell(ProblemTrouble, o.like(), text, all, o.TroubleSince, o.ID)
		p.told[len(p.told)-1].Certain = o.TroubleCertain && o.before.TroubleCertain
	}
}

// troubled reports whether an object has had trouble all the time between the snapshots, and for long enough.
func (o *thing) troubled(p *pair) bool {
	return o.Trouble != "" && o.before.Trouble != "" && o.TroubleSince.Equal(o.before.TroubleSince) &&
		p.since(o.TroubleSince).d >= leastTrouble
}

// findChannelFull reports full channels from which nothing is received, and channels of capacity 0 from which nothing
// has ever been received. It omits channels whose receiver has ended, channels with trouble, and channels whose senders
// are all in deadlocks, because these were reported already.
func (p *pair) findChannelFull() {
	gone := p.reported(ProblemReceiverGone, ProblemTrouble)
	full := func(o *thing) bool {
		unused := o.Kind == channel && o.Cap == 0 && o.Received == 0 // otherwise a sender may often wait for long
		return (o.Cap > 0 || unused) && o.Len == o.Cap && o.before.Len == o.before.Cap && o.Received == o.before.Received &&
			!gone[o.ID] && !o.Oldest.IsZero() && (p.since(o.Oldest).d >= leastFull || p.stands(o))
	}
	if p.gap < leastGap {
		return
	}
	for _, o := range p.gatherAlso(WaitSend, full) {
		if !p.isNews(o) {
			continue
		}
		holds := fmt.Sprintf("full, %d of %d", o.Len, o.Cap)
		if o.Cap == 0 {
			holds = "of capacity 0"
		}
		text := fmt.Sprintf("%s %s to send to %s (%s)%s%s", p.who(o.waiters), pick(o.waiters, "waits", "wait"), o.name(),
			holds, p.line(o.waiters), p.lasts(o.Oldest, o.waiters))
		who, receivers := p.receivers(o)
		if !strings.HasPrefix(who, "nothing") {
			text += p.stood(o, "received")
		}
		p.tell(ProblemChannelFull, o.like(), text+"; "+who, append(slices.Clip(o.waiters), receivers...), o.Oldest, o.ID)
	}
}

// receivers says who received from a channel last, and what they do now. It also returns those that have not ended.
func (p *pair) receivers(o *thing) (text string, all []int) {
	does := func(id uint64, what string) bool {
		k, ok := p.fiber(id)
		if !ok || p.fibers[k].System {
			return false
		}
		text, all = fmt.Sprintf("%s, which was the %sto receive from it, %s", p.fibers[k].name(), what, p.chain(k)), nil
		if !slices.Contains(o.waiters, k) {
			all = []int{k}
		}
		return true
	}
	nothing := "nothing was received from it for " + span{p.gap, true}.String()
	switch {
	case does(o.Receiver, "last "):
	case o.Kind == remote:
		return nothing + " by this process", nil
	case o.ToOutside:
		return nothing + "; the last to receive from it was a goroutine that is not a fiber", nil
	case o.Receiver != 0 && does(o.ReceiverBefore, "last but one "):
		text = p.nameOf(o.Receiver) + ", which was the last to receive from it, has ended; " + text
	case o.Received == 0:
		return "nothing has ever been received from it", nil
	default:
		return nothing, nil
	}
	return text, all
}

// findExhausted reports pools and semaphores from which nothing can be taken. It omits those whose waiters are all in
// deadlocks.
func (p *pair) findExhausted() {
	lent := func(o *thing) bool {
		return o.Kind == pool && o.Len >= o.Cap && o.before.Len >= o.before.Cap && !o.Closed &&
			(p.stays(o) || !o.moved() && p.stands(o))
	}
	for _, o := range p.gatherAlso(WaitRecv, lent) {
		p.tellExhausted(o, fmt.Sprintf("for a value of %s (%d of %d lent)", o.name(), o.Len, o.Cap), p.borrowers(o))
	}
	taken := func(o *thing) bool { return o.Kind == semaphore && p.stays(o) }
	for _, o := range p.gather(WaitUse, taken) {
		p.tellExhausted(o, "to acquire "+o.name(), "coir does not know who has the permits")
	}
}

// tellExhausted reports a pool or a semaphore. want is what its waiters wait for, and who says who has that.
func (p *pair) tellExhausted(o *thing, want, who string) {
	if !p.isNews(o) {
		return
	}
	text := fmt.Sprintf("%s %s %s%s%s; %s", p.crowd(o.waiters), pick(o.waiters, "waits", "wait"), want,
		p.line(o.waiters), p.lasts(o.Oldest, o.waiters)+p.stood(o, "given back"), who)
	p.tell(ProblemExhausted, o.like(), text, o.waiters, o.Oldest, o.ID)
}

// borrowers says who has the values of a pool, and what they do.
func (p *pair) borrowers(o *thing) string {
	if !o.borrowersKnown() {
		return "coir does not know who has the values"
	}
	if len(o.holders) == 1 {
		return fmt.Sprintf("%s, which has all of them%s, %s", p.nameOf(o.holders[0]), p.heldFor(o), p.chainOf(o.holders[0]))
	}
	var alive []int
	var texts []string
	gone := 0
	for _, id := range o.holders {
		if i, ok := p.fiber(id); ok {
			alive = append(alive, i)
		} else if gone++; gone <= mostNames {
			texts = append(texts, p.nameOf(id)+" "+p.chainOf(id))
		}
	}
	if len(alive) > 0 {
		texts = append([]string{p.does(alive)}, texts...)
	}
	if more := gone - mostNames; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	text := "those that have the values: " + strings.Join(texts, "; ")
	if since := o.heldSince(); !since.IsZero() {
		text += fmt.Sprintf("; %s has had one for the longest time, in each snapshot for %s", p.nameOf(o.longest()),
			p.since(since))
	}
	return text
}

// findLockHeld reports locks that fibers have waited for for a long time, and locks that have had one holder all the
// time. It omits those whose holder has ended, and those whose waiters are all in deadlocks.
func (p *pair) findLockHeld() {
	gone := p.reported(ProblemHolderGone)
	held := func(o *thing) bool {
		return o.isLock() && len(o.holders) == len(o.Holders) && len(o.Holders) == len(o.before.Holders) && !gone[o.ID] &&
			(p.stays(o) || p.keeps(o))
	}
	for _, o := range p.gatherAlso(WaitUse, held) {
		if !p.isNews(o) {
			continue
		}
		text := fmt.Sprintf("%s %s%s%s%s; ", p.crowd(o.waiters), pick(o.waiters, "waits ", "wait "),
			p.waitText(p.waitFor(o), "its"), p.line(o.waiters), p.lasts(o.Oldest, o.waiters))
		switch len(o.holders) {
		case 0:
			text += "coir does not know who holds it"
		case 1:
			text += p.nameOf(o.holders[0]) + ", which holds it" + p.heldFor(o) + ", " + p.chainOf(o.holders[0])
		default:
			text += fmt.Sprintf("it has %d holders, one of which is %s, which %s", len(o.holders), p.nameOf(o.holders[0]),
				p.chainOf(o.holders[0]))
		}
		if n := o.GaveUp - min(o.GaveUp, o.before.GaveUp); n > 0 && !p.stays(o) {
			text += "; " + count(int(n), "other wait") + " for it ended without it"
		}
		p.tell(ProblemLockHeld, o.like(), text, o.waiters, o.Oldest, o.ID)
	}
}

// waitFor returns the wait of the first waiter of an object for it.
func (p *pair) waitFor(o *thing) Wait {
	all := p.fibers[o.waiters[0]].Wait
	return all[slices.IndexFunc(all, func(w Wait) bool { return w.Object == o.ID })]
}

// stays reports whether no fiber has got the object between the snapshots, and its oldest wait is a long one. Waiters
// are served in the order of arrival, so the oldest one would have got it.
func (p *pair) stays(o *thing) bool {
	return !o.Oldest.IsZero() && o.Oldest.Equal(o.before.Oldest) && !o.moved() && p.since(o.Oldest).d >= leastFull
}

// keeps reports whether one holder has likely had a lock all the time between the snapshots, although no wait is as
// long. A holder that has not begun to wait since then has not waited for its turn among the waiters. If the holder may
// have moved, waits that last for long and end without the lock are the sign.
func (p *pair) keeps(o *thing) bool {
	if len(o.holders) != 1 || !p.stands(o) {
		return false
	}
	if i, ok := p.fiber(o.holders[0]); ok {
		f := &p.fibers[i]
		if f.before != nil && f.Waits == f.before.Waits && f.State != StateOutside && f.before.State != StateOutside {
			return true
		}
	}
	waited := max(p.later.Taken.Sub(o.Oldest), p.earlier.Taken.Sub(o.before.Oldest))
	return o.GaveUp > o.before.GaveUp && waited >= leastWait
}

// heldFor says for how long an object has had its only holder in each snapshot, in words that follow others. It says
// nothing if only the age of the oldest wait is known, which says more.
func (p *pair) heldFor(o *thing) string {
	since := o.heldSince()
	if since.IsZero() && !p.stays(o) {
		since = p.earlier.Taken
	}
	if since.IsZero() {
		return ""
	}
	return " (in each snapshot for " + p.since(since).String() + ")"
}

// heldSince returns the first of the times in HeldSince, or zero if none is known.
func (o *thing) heldSince() (since time.Time) {
	for _, t := range o.HeldSince {
		since = first(since, t)
	}
	return since
}

// longest returns the holder that has had the object for the longest time, as far as that is known.
func (o *thing) longest() uint64 {
	at := 0
	for i := range o.HeldSince[:min(len(o.HeldSince), len(o.Holders))] {
		if t := o.HeldSince[i]; !t.IsZero() && (o.HeldSince[at].IsZero() || t.Before(o.HeldSince[at])) {
			at = i
		}
	}
	return o.Holders[at]
}

// moved reports whether a value was sent or received between the snapshots.
func (o *thing) moved() bool { return o.Sent != o.before.Sent || o.Received != o.before.Received }

// stands reports whether fibers waited for an object in both snapshots, which are so far apart that an object from
// which nothing was received between them is stuck. If waits have time limits, none of them need be a long one. Two
// snapshots that are close together are enough if others before them have shown waits, and all holders, for as long.
func (p *pair) stands(o *thing) bool {
	if o.Oldest.IsZero() || o.before.Oldest.IsZero() {
		return false
	}
	long := func(t time.Time) bool { return !t.IsZero() && p.since(t).d >= leastFull }
	return p.gap >= leastFull || p.gap >= leastGap && long(o.WaitedSince) && len(o.HeldSince) > 0 &&
		!slices.ContainsFunc(o.HeldSince, func(t time.Time) bool { return !long(t) })
}

// stood says for how long nothing was done with an object, if its waits do not say so.
func (p *pair) stood(o *thing, done string) string {
	if p.since(o.Oldest).d >= leastFull {
		return ""
	}
	return fmt.Sprintf("; nothing was %s for %s", done, span{p.gap, true})
}

// reported returns the objects that problems of these kinds were reported of.
func (p *pair) reported(kinds ...Problem) map[uint64]bool {
	objects := map[uint64]bool{}
	for i := range p.told {
		if slices.Contains(kinds, p.told[i].Kind) {
			objects[p.told[i].Objects[0]] = true
		}
	}
	return objects
}

// isNews reports whether one of the waiters of an object is in no deadlock that was reported.
func (p *pair) isNews(o *thing) bool {
	return slices.ContainsFunc(o.waiters, func(i int) bool { return !p.stuck[i] })
}

// findBlockingCalls reports fibers that occupy their workers in calls that block. It omits those in coir.Blocking,
// because another worker has taken over for them, and such a call may last as long as the program.
func (p *pair) findBlockingCalls() {
	calls := func(i int) bool { return p.hogs[i].calls }
	for _, same := range p.bySite(calls) {
		var since time.Time
		for _, i := range same {
			since = first(since, p.hogs[i].began)
		}
		lasts := " for " + p.since(since).String()
		if !since.IsZero() {
			lasts = p.lasts(since, same)
		}
		f := &p.fibers[same[0]]
		is, at := pick(same, "is", "are"), f.at()
		in := f.blockedIn()
		other := func(i int) bool { return p.fibers[i].blockedIn() != in }
		between := func(i int) bool { return !p.fibers[i].blockedInBoth() }
		does := is + " blocked in " + callWords(in)
		switch {
		case slices.ContainsFunc(same, other):
			does, at = pick(same, "is in a call that blocks", "are in calls that block"), f.isAt()
		case slices.ContainsFunc(same, between):
			does = is + " again and again blocked in " + callWords(in)
		}
		text := fmt.Sprintf("%s%s %s%s", p.names(same), spawned(f.Spawned), does, lasts)
		p.tell(ProblemBlockingCalls, f.like(), text+at, same, since)
	}
}

// blockedIn returns the result of Blocked in the later snapshot, or else in the earlier one.
func (f *both) blockedIn() string { return cmp.Or(f.Blocked(), f.before.Blocked()) }

// blockedInBoth reports whether a fiber is blocked in Go in both snapshots.
func (f *both) blockedInBoth() bool { return f.Blocked() != "" && f.before.Blocked() != "" }

// findTicketOld reports fibers that have waited for the answers of tickets for a long time, and tickets for which
// fibers have waited again and again.
func (p *pair) findTicketOld() {
	again := func(o *thing) bool {
		return !o.WaitedSince.IsZero() && p.since(o.WaitedSince).d >= leastTicket && p.stands(o)
	}
	old := func(o *thing) bool {
		return o.Kind == ticket && !o.Oldest.IsZero() && (p.since(o.Oldest).d >= leastTicket || again(o))
	}
	for _, o := range p.gatherAlso(WaitUse, old) {
		name := o.name()
		if o.Name != "" {
			name = "ticket " + name
		}
		text := fmt.Sprintf("%s %s for the answer of %s%s%s", p.who(o.waiters), pick(o.waiters, "waits", "wait"), name,
			p.line(o.waiters), p.lasts(o.Oldest, o.waiters))
		if p.since(o.Oldest).d < leastTicket {
			text += fmt.Sprintf("; it was waited for in each snapshot for %s", p.since(o.WaitedSince))
		}
		p.tell(ProblemTicketOld, o.like(), text, o.waiters, o.Oldest, o.ID)
	}
}
