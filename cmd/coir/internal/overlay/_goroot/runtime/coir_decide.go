package runtime

import (
	"internal/coir"
	"internal/search"
)

// coirChoices asks the strategy, and keeps the decisions.
//
//   - Decision i is coirDecisions[i], if i < coirMaxDecisions: those beyond are counted, and lost.
//   - Each decision has two ways or more.
//   - A schedule is its decisions: what else the goroutines do depends on them, on coir.Config, and on what comes from
//     outside.
type coirChoices struct {
	strategy search.Strategy
	fork     search.Fork
	kind     uint8    // of the last decision
	holder   guintptr // the goroutine that could keep the turn
	ndec     int
	chose    int32 // the decision that led to what happens next, for coirLog; -1: there was none
}

type coirDecision struct {
	ways, way uint16
	kind      uint8
	step      uint32
}

var coirDecisions [coirMaxDecisions]coirDecision

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
		coirDecisions[s.ndec] = coirDecision{uint16(n), uint16(k), kind, uint32(s.steps)}
	} else {
		s.out.Overflow = true
		s.out.LostDecision = s.out.LostDecision || k != 0
	}
	s.ndec++
	s.mix(uint64(n)<<16 | uint64(k))
	return k
}

// coirWorld is the schedule as its strategy sees it.
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

// coirCasesFairAfter is the number of choices after which a goroutine's selects are fair.
const coirCasesFairAfter = 100

// coirSelect puts the chosen case first. The channels are locked, and pollorder has the cases in their order.
func coirSelect(scases []scase, pollorder []uint16, nsends int) {
	gp := getg()
	s := &coirSched
	if !coirActs(gp) {
		return
	}
	for _, i := range pollorder { // the channels that it looks at are part of the trace
		obj := coirChannel(scases[i].c)
		s.mix(uint64(obj))
		coirNews(gp.coir.id, obj, coir.OpSelect)
		if a := coirActorOf(gp); s.trace && a != nil {
			e := &coirCases[s.ncases%coir.KeptCases]
			e.step, e.obj, e.i, e.send = a.point, obj, i, int(i) < nsends
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
	// In a loop whose first case is always ready the others would never be chosen, so after a while the cases take
	// turns.
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
