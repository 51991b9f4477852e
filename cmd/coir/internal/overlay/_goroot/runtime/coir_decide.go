package runtime

import (
	"internal/coir"
	"internal/search"
)

// coirChoices has the strategy, and the state of its decisions.
//
//   - Decision i is in coirDecisions[i] if i < coirMaxDecisions. Later decisions are counted, but not stored.
//   - Each decision has at least two ways.
//   - The decisions determine the schedule, together with coir.Config and events from outside.
type coirChoices struct {
	strategy search.Strategy
	fork     search.Fork
	kind     uint8    // the kind of the last decision
	holder   guintptr // the goroutine that could keep the turn; 0 if there is none
	ndec     int
	chose    int32 // the decision that led to the next event, for coirLog; -1 if none did
}

var coirDecisions [coirMaxDecisions]coir.Decision

// coirDecide makes the next decision, among n ways.
func coirDecide(gp *g, kind uint8, n int) int {
	s := &coirSched
	s.holder.set(gp)
	s.kind = kind
	s.fork.N, s.fork.Keep, s.fork.Yields = n, kind == coir.Keep, kind == coir.GiveUp
	k := s.strategy.Choose(&s.fork)
	if k < 0 || k >= n {
		s.out.Misfit = true
		k = 0
	}
	if kind != coir.Case && kind != coir.Fault {
		s.chose = int32(s.ndec)
	}
	if s.ndec < coirMaxDecisions {
		coirDecisions[s.ndec] = coir.Decision{Ways: uint16(n), Way: uint16(k), Kind: kind, Step: uint32(s.steps)}
	} else {
		s.out.Overflow = true
		s.out.LostDecision = s.out.LostDecision || k != 0
	}
	s.ndec++
	s.mix(uint64(n)<<16 | uint64(k))
	return k
}

// coirWorld gives a strategy access to the running schedule.
type coirWorld struct{}

// Actor implements search.World.
func (coirWorld) Actor(i int) int {
	s := &coirSched
	if s.kind == coir.Case || s.kind == coir.Fault {
		return search.Value
	}
	return int(s.way(s.holder.ptr(), s.kind, i).coir.id)
}

// Actors implements search.World.
func (coirWorld) Actors() int { return int(coirSched.actors) + 1 }

// Running implements search.World.
func (coirWorld) Running() int {
	if gp := coirSched.holder.ptr(); gp != nil {
		return int(gp.coir.id)
	}
	return -1
}

// Moves implements search.World.
func (coirWorld) Moves(actor int) int32 {
	if actor >= coir.KeptActors {
		return 0
	}
	gp := coirActors[actor].g.ptr()
	if gp == nil || gp.coir.run != coirSched.run || gp.coir.id != uint32(actor) {
		return 0
	}
	return gp.coir.moves
}

// Logged implements search.World.
func (coirWorld) Logged() int { return coirSched.nevents }

// After coirCasesFairAfter choices between ready cases, the selects of a goroutine are fair.
const coirCasesFairAfter = 100

// coirSelect decides which of the ready cases a select takes, and moves that case to the start of pollorder. The caller
// has locked the channels. pollorder contains the cases in the order of scases.
func coirSelect(scases []scase, pollorder []uint16, nsends int) {
	gp := getg()
	s := &coirSched
	if !coirActs(gp) {
		return
	}
	for _, i := range pollorder { // the channels of the select are part of the trace
		obj := coirChannel(scases[i].c)
		s.mix(uint64(obj))
		coirNews(gp.coir.id, obj, coir.OpSelect)
		if a := coirActorOf(gp); s.trace && a != nil {
			coirCases[s.ncases%coir.KeptCases] = coir.SelectCase{Step: a.point, Obj: obj, Index: i, Send: int(i) < nsends}
			s.ncases++
		}
	}
	n := 0
	for _, i := range pollorder {
		if coirCaseReady(&scases[i], int(i) < nsends) {
			n++
		}
	}
	if n < 2 {
		return
	}
	lock(&s.mu)
	k := coirDecide(gp, coir.Case, n)
	unlock(&s.mu)
	// If the first case of a select in a loop is always ready, a strategy may never choose another case. So after a while
	// the cases take turns.
	if gp.coir.cases++; gp.coir.cases > coirCasesFairAfter {
		k = (k + int(gp.coir.cases)) % n
	}
	for j, i := range pollorder {
		if !coirCaseReady(&scases[i], int(i) < nsends) {
			continue
		}
		if k == 0 {
			pollorder[0], pollorder[j] = i, pollorder[0]
			return
		}
		k--
	}
}

func coirCaseReady(cas *scase, send bool) bool {
	c := cas.c
	q := &c.sendq
	switch {
	case c.closed != 0:
		return true
	case send && c.qcount < c.dataqsiz, !send && c.qcount > 0:
		return true
	case send:
		q = &c.recvq
	}
	for sg := q.first; sg != nil; sg = sg.next {
		if !sg.isSelect || sg.g.selectDone.Load() == 0 {
			return true
		}
	}
	return false
}
