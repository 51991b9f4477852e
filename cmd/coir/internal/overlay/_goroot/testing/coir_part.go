package testing

import (
	"internal/coir"
	"internal/synctest"
	"sync"
	_ "unsafe" // for go:linkname
)

// This file is for explore.Test of module coir, which explores only a part of a test. The code around the part runs
// once, as under go test: not in a bubble, and in real time.
//
// A test is known to have such a part as soon as it calls explore.Test. The first schedule, which does not count, runs
// the whole test in a bubble. If it reaches a part, the schedule ends there. Then the test runs as under go test, and
// its parts are explored one after another.

// coirPart is the state of the parts of the test.
var coirPart coirParts

type coirParts struct {
	asked bool // the test has parts
	on    bool // the test runs as under go test, and its parts are explored
	mu    sync.Mutex
	ended bool // a part has ended the exploration, so no other part can use this process
	noted bool // a result has been recorded

	// Sums over the parts explored so far: schedules, those with a racing clock, and those that left goroutines behind;
	// whether a search ended because the budget was spent, and whether a schedule had a decision.
	count, racing, leftBehind int
	timeUp, decided           bool
}

// CoirExplore explores a part of the test. It returns false if the process does not explore. Package explore of module
// coir finds it by name.
func (t *T) CoirExplore(fn func(*T)) bool {
	return t.coirExplorePart(&coirExplorer{fn: func(t *T) {
		coirExact()
		fn(t)
	}})
}

// CoirReplay is like CoirExplore, but runs only the schedule of a token and some similar ones.
func (t *T) CoirReplay(token string, fn func(*T)) bool {
	if _, _, err := coirDecode(token); err != "" {
		t.Fatalf("cannot read %s: %s", token, err)
	}
	return t.coirExplorePart(&coirExplorer{fn: fn, only: token})
}

func (t *T) coirExplorePart(x *coirExplorer) bool {
	p := &coirPart
	switch {
	case !coirSet.on:
		return false
	case coir.On && synctest.IsInBubble():
		if p.asked = true; p.on {
			panic("an explored part cannot contain another explored part")
		}
		t.SkipNow()
	}
	p.mu.Lock() // parallel subtests
	defer p.mu.Unlock()
	if p.ended {
		t.SkipNow()
	}
	x.t = t
	x.start()
	count, racing := x.tally(coir.VerdictPass)
	p.count += count
	p.racing += racing
	p.timeUp, p.decided = p.timeUp || x.timeUp, p.decided || x.decided
	p.leftBehind += x.leftBehind
	return true
}

// coirRunParts runs a test with parts.
func coirRunParts(t *T, fn func(*T)) {
	coirPart.on = true
	ok := false
	t.Cleanup(func() { // after parallel subtests
		switch x := (&coirExplorer{t: t}); {
		case coirPart.ended:
		case t.Failed() || !ok && !t.Skipped():
			x.recordError("the test fails outside of explore.Test")
		case !coirPart.noted && t.Skipped():
			x.record(coir.VerdictSkip)
		case !coirPart.noted:
			x.record(coir.VerdictPass)
		}
	})
	fn(t)
	ok = true
}

// note is called for each summary that x records.
func (p *coirParts) note(r *coirRecord, x *coirExplorer, verdict coir.Verdict) {
	if !p.on {
		return
	}
	p.noted = true
	if verdict != coir.VerdictPass && verdict != coir.VerdictSkip && verdict != coir.VerdictSlow {
		p.ended = true
		r.add("part", x.t.name)
	}
}

// CoirFault reports whether a fault happens; see explore.Fault.
func (t *T) CoirFault() bool { return coirSet.on && coirFault() }

// coirSight is a condition of explore.Sometimes.
type coirSight struct {
	name string
	seen bool
	next *coirSight
}

// CoirSometimes records whether a condition was ever true; see explore.Sometimes. Only the goroutine that has the turn
// uses the list.
//
//go:norace
func (t *T) CoirSometimes(cond bool, name string) {
	at := &coirSights
	for *at != nil && (*at).name != name {
		at = &(*at).next
	}
	if *at == nil {
		*at = &coirSight{name: name}
	}
	(*at).seen = (*at).seen || cond
}

// coirSights lists the conditions of the explored test.
var coirSights *coirSight

// coirNever returns the names of the conditions that were never true.
func coirNever() (all []any) {
	for s := coirSights; s != nil; s = s.next {
		if !s.seen {
			all = append(all, s.name)
		}
	}
	return all
}

//go:linkname coirFault
func coirFault() bool
