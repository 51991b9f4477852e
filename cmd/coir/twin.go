package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// This file compares the failure with its twin: a schedule that passes, and has as many of its first decisions as
// possible in common with the failure. Package replay finds the twin in the process of the test; see also package sim.

// divergence has the operations of a failure and of its twin from the first difference on, in the order in which they
// began.
type divergence struct {
	here, there []*step
	inside      bool // they differ only in steps inside of libraries
}

// diverge returns the divergence of the failure and its twin, or nil if it is not known. Both have been traced. If
// there is a difference outside of libraries, it is the first of those, because a reader does not know what a library
// does inside.
func (r *record) diverge() *divergence {
	if r.diverged != nil || r.cut() || r.twin.cut() {
		return r.diverged
	}
	for _, inside := range []bool{false, true} {
		here, there := r.begun(), r.twin.begun()
		if !inside {
			hidden := asides(here, there)
			here, there = slices.DeleteFunc(here, hidden), slices.DeleteFunc(there, hidden)
		}
		same, most := 0, min(len(here), len(there))
		for same < most && r.equal(here[same], there[same]) && !r.choice(here[same], there[same]) {
			same++
		}
		if same < len(here) && same < len(there) {
			r.diverged = &divergence{here[same:], there[same:], inside}
			break
		}
	}
	return r.diverged
}

// equal reports whether two steps of the failure and of its twin are the same operation of the same goroutine. Their
// results may differ, and so may their numbers, because they also count what libraries do inside. An earlier request
// may have another name.
func (r *record) equal(here, there *step) bool {
	if here.n == there.n && here.g == there.g {
		return true
	}
	n := r.name()
	return here.op == there.op && here.place == there.place && here.via == there.via &&
		r.object(here.op, here.object) == r.twin.object(there.op, there.object) &&
		n.goroutines[r.actors[r.by(here.g, here.n)]] == n.goroutines[r.twin.actors[r.twin.by(there.g, there.n)]]
}

// asides returns a function that reports whether a step is aside. What is aside in one schedule is aside in the others.
func asides(schedules ...[]*step) func(*step) bool {
	type operation struct {
		at  place
		via string
		op  int
	}
	aside := map[operation]bool{}
	for _, s := range slices.Concat(schedules...) {
		if s.aside {
			aside[operation{s.place, s.via, s.op}] = true
		}
	}
	return func(s *step) bool { return aside[operation{s.place, s.via, s.op}] }
}

// choice reports whether the schedules differ in the case that a select took.
func (r *record) choice(here, there *step) bool {
	return r.twin.kind == coir.Case && here.n == r.twin.step && here.chose != there.chose
}

// begun returns the steps of a report in the order of their operations. Steps
// whose operations have not begun come last.
func (r *record) begun() (all []*step) {
	all = r.inOrder()
	for i := range r.known {
		if s := &r.known[i]; s.done == 0 {
			all = append(all, s)
		}
	}
	return slices.DeleteFunc(all, func(s *step) bool { _, ok := r.rows[s]; return !ok })
}

// sayDivergence says where the schedule diverges from one that passes, in a table of a width.
func (r *record) sayDivergence(dir string, width int) string {
	r.traced(dir)
	t, p := r.twin, r.diverged
	if t == nil || t.record != nil && p == nil {
		return ""
	}
	var b strings.Builder
	d := &report.Divergence{Tried: t.tried, Sure: t.sure, What: "test", Decisions: t.decisions}
	if p != nil {
		d.Why, d.Verdict, d.Later = r.why(p, dir), kinds[r.failure.kind], r.failedAt()-p.here[0].n
		d.Own = r.mine(p.here[0].place)
		d.Changes = r.changes(p, dir)
		d.Fails, d.Passes = r.listed(p.here), t.listed(p.there)
	}
	r.end.Width = width
	r.end.SayDivergence(&b, d)
	return b.String()
}

// failedAt returns the number of the step at which the schedule fails. In a deadlock or a leak, that is the step in
// which the last goroutine began to wait; waits for time do not count. A livelock never ends, so failedAt returns 0.
// Otherwise it is the step that completes the failure.
func (r *record) failedAt() (n int) {
	switch r.failure.kind {
	case coir.KindDeadlock, coir.KindLeak:
	case coir.KindLivelock:
		return 0
	default:
		return r.endStep()
	}
	for i := range r.known {
		s := &r.known[i]
		timed := slices.ContainsFunc(s.cases, func(c selectCase) bool { return r.made[c.object].timer })
		if s.last && r.stuck(s.g) && !timed && !r.made[s.object].timer {
			n = max(n, s.n)
		}
	}
	return n
}

// listed returns steps together with their goroutines.
func (r *record) listed(steps []*step) report.Listing {
	l := report.Listing{Of: r.end.Of}
	for i, s := range steps {
		d := r.end.Steps[r.rows[s]]
		if d.Aside && i > 0 {
			continue
		}
		d.Number = 0 // the numbers have the order of the points, not of the operations
		l.Steps = append(l.Steps, d)
	}
	return l
}

// why describes what the failure and its twin did where they diverge.
func (r *record) why(p *divergence, dir string) string {
	first := " first"
	if p.here[0].n == p.there[0].n && p.here[0].g == p.there[0].g {
		first = ""
	}
	here, there := r.way(p.here[0], first, dir), r.twin.way(p.there[0], first, dir)
	if here == there {
		here, there = here+p.here[0].taken(), there+p.there[0].taken()
	}
	text := fmt.Sprintf("%s; in the schedule that passes, %s", here, there)
	if p.inside {
		text += "; apart from the order of such steps inside of libraries, the two are the same"
	}
	return text
}

// taken returns which case a select took, as words to append.
func (s *step) taken() string {
	i := slices.IndexFunc(s.cases, func(c selectCase) bool { return c.n == s.chose-1 })
	return fmt.Sprintf(" (case %d)", i+1)
}

// way returns a sentence that says what a goroutine did in a step. first is appended to the operation.
func (r *record) way(s *step, first, dir string) string {
	who := r.end.Of[r.end.Steps[r.rows[s]].Actor].Label()
	return does(who, r.words(*s), r.past(s)) + first + s.place.said(", at %s", dir)
}

// verbs are the operations in the past tense and in the infinitive, with the words that stand before the object.
var verbs = map[int][2]string{
	coir.OpSend: {"sent to", "send to"}, coir.OpRecv: {"received from", "receive from"}, coir.OpClose: {"closed", "close"},
	coir.OpLock: {"locked", "lock"}, coir.OpTryLock: {"tried to lock", "try to lock"},
	coir.OpUnlock: {"unlocked", "unlock"},
	coir.OpRLock:  {"read-locked", "read-lock"}, coir.OpRUnlock: {"read-unlocked", "read-unlock"},
	coir.OpTryRLock: {"tried to read-lock", "try to read-lock"},
	coir.OpWLock:    {"locked", "lock"}, coir.OpTryWLock: {"tried to lock", "try to lock"},
	coir.OpWUnlock: {"unlocked", "unlock"},
	coir.OpAdd:     {"added to", "add to"}, coir.OpDone: {"called Done of", "call Done of"},
	coir.OpWait:     {"called Wait of", "call Wait of"},
	coir.OpCondWait: {"waited for a signal of", "wait for a signal of"}, coir.OpSignal: {"signalled", "signal"},
	coir.OpBroadcast: {"broadcast to", "broadcast to"}, coir.OpOnce: {"called Do of", "call Do of"},
	coir.OpAtomicLoad: {"loaded", "load"}, coir.OpAtomicStore: {"stored to", "store to"},
	coir.OpAtomicSwap: {"swapped", "swap"}, coir.OpAtomicCAS: {"compared and swapped", "compare and swap"},
	coir.OpAtomicAdd: {"added to", "add to"}, coir.OpAtomicBits: {"set or cleared bits of", "set or clear bits of"},
	coir.OpMapLoad: {"loaded from", "load from"}, coir.OpMapStore: {"stored to", "store to"},
	coir.OpDial: {"dialled", "dial"}, coir.OpAccept: {"accepted from", "accept from"},
	coir.OpNetRead: {"read from", "read from"}, coir.OpNetWrite: {"wrote to", "write to"},
	coir.OpNetClose: {"closed", "close"},
	coir.OpPipeRead: {"read from", "read from"}, coir.OpPipeWrite: {"wrote to", "write to"},
	coir.OpPipeClose: {"closed", "close"},
}

// past describes a step in the past tense: locked s.mu, or waited to lock s.mu.
func (r *record) past(s *step) string {
	words := r.words(*s)
	waited := s.waited || !r.happened(s)
	words = strings.Replace(words, ": waits", "", 1)
	selected, selects := strings.CutPrefix(words, "select ")
	switch {
	case coir.IsFault(s.op):
		return "met a " + words
	case s.op == coir.OpGo:
		return "started a goroutine"
	case s.op == coir.OpYield:
		return "gave up the turn"
	case coirs(s.via) || s.op == coir.OpFail:
		return "called " + words
	case s.cancels():
		return strings.Replace(words, "cancel", "cancelled", 1)
	case s.calls():
		return "called " + words
	case s.chose < 0:
		return "took the default case of a select"
	case selects:
		for _, op := range []int{coir.OpSend, coir.OpRecv} {
			if object, ok := strings.CutPrefix(selected, coir.Ops[op].Name+" "); ok && s.chose > 0 {
				return verbs[op][0] + " " + object + " in a select"
			}
		}
		return "waited in a select: " + selected
	}
	verb, ok := verbs[s.op]
	_, object, named := strings.Cut(strings.TrimPrefix(words, coir.Ops[s.op].Name), " ")
	switch {
	case !ok || !named:
		return "did " + words
	case s.op == coir.OpOnce:
		object = strings.TrimPrefix(words, "do ")
	}
	if waited {
		return "waited to " + verb[1] + " " + object
	}
	return verb[0] + " " + object
}

// does puts the name of a goroutine before what it did: the words of a step, or if these are an operation, such as lock
// s.mu, the words in the past tense.
func does(who, words, past string) string {
	switch client, asks := strings.CutPrefix(words, "client "); {
	case strings.HasPrefix(words, "waits for "):
		return who + " " + words
	case strings.HasPrefix(words, "handler "):
		if who == words || strings.HasPrefix(who, words+" (") {
			return who + " began"
		}
		return who + " began to handle " + strings.TrimPrefix(words, "handler ")
	case asks && strings.Contains(client, " -> "):
		return who + " sent " + client
	case asks:
		if request, answer, ok := strings.Cut(client, " <- "); ok {
			return who + " got " + answer + " for " + request
		}
		request, _, _ := strings.Cut(client, ": ")
		return who + " got an error for " + request
	}
	return who + " " + past
}

// passing returns the twin in the form that the chart needs, or nil if there is none.
func (r *record) passing(dir string) *chart.Twin {
	if r.twin == nil || r.twin.record == nil {
		return nil
	}
	d := r.twin.traced(dir)
	p := r.diverge()
	if p == nil {
		return nil
	}
	return report.Twin(d.Chart, r.rows[p.here[0]], r.twin.rows[p.there[0]], r.why(p, dir), kinds[r.failure.kind],
		r.steps, r.twin.steps)
}
