package testing

import (
	"internal/coir"
	"internal/synctest"
	"sync"
)

// This file is for explore.Test of module coir: a test of which one part is explored. The code around the part runs
// once, as under go test: not in a bubble, and in real time.
//
// A test is known to have such a part only when it gets there. The first schedule, which does not count, is the whole
// test in a bubble. If it reaches a part it ends there, and the test is run as it is, with its parts explored one after
// the other.

// coirPart has what is known of the parts of the test.
var coirPart coirParts

type coirParts struct {
	asked bool // the test has parts
	on    bool // it is run as it is, and its parts are explored
	mu    sync.Mutex
	ended bool // a part has ended the exploration: no other can share its process
	told  bool // something has been recorded
	// Of the parts before:
	count, left int
}

// CoirExplore explores a part of the test. It returns false if the process does not explore. Package explore of module
// coir calls it, and finds it by its name.
func (t *T) CoirExplore(fn func(*T)) bool {
	p := &coirPart
	switch {
	case !coirSet.on:
		return false
	case coir.On && synctest.IsInBubble():
		if p.asked = true; p.on {
			panic("explore.Test called inside explore.Test")
		}
		t.SkipNow()
	}
	p.mu.Lock() // parallel subtests
	defer p.mu.Unlock()
	if p.ended {
		t.SkipNow()
	}
	x := &coirExplorer{t: t, fn: func(t *T) {
		coirExact()
		fn(t)
	}}
	x.start()
	p.count += x.count
	p.left += x.left
	return true
}

// coirRunParts runs a test with parts.
func coirRunParts(t *T, fn func(*T)) {
	coirPart.on = true
	ok := false
	t.Cleanup(func() { // after subtests that are parallel
		switch x := (&coirExplorer{t: t}); {
		case coirPart.ended:
		case t.Failed() || !ok && !t.Skipped():
			x.recordError("the test fails outside of explore.Test")
		case !coirPart.told && t.Skipped():
			x.record("skip")
		case !coirPart.told:
			x.record("pass")
		}
	})
	fn(t)
	ok = true
}

// note is called for each summary.
func (p *coirParts) note(r *coirRecord, x *coirExplorer, outcome string) {
	if !p.on {
		return
	}
	p.told = true
	if outcome != "pass" && outcome != "skip" {
		p.ended = true
		r.add("part", x.t.name)
	}
}
