package sim

import (
	"time"

	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// recorder records what happens in a schedule.
//
//   - nsteps operations have been performed. Operation number s is *traced(s), if forgotten() <= s < nsteps.
//   - The lengths of trace and cases, which are rings, are powers of two.
//   - The hash covers all operations, and nothing that differs from process to process. For each markEvery of them
//     there is a byte in hashes.
//   - lengths is a hash of the length of each sleep. It is compared only with that of another run in the same process,
//     and is not part of the hash in tokens.
//   - Objects are numbered in the order in which operations name them.
type recorder struct {
	whole bool // keep all operations, and a log
	rests bool // also log the code after an operation that has not waited, which is a separate choice
	tells bool // also record data that only a report needs; see tell.go

	objects idTable
	trace   []event // the last operations
	nsteps  int
	cases   []choice // the last cases of selects; see keepCases
	ncases  int
	hash    uint64
	lengths uint64
	hashes  list[byte] // a byte of the hash for each markEvery operations

	log       list[happening] // all happenings, in order, if whole is set
	chose     int32           // the decision that led to the next happening, or -1
	watchable bool            // a selector has been given a case

	sites    []site // the places of the operations in trace, if tells
	made     list[making]
	marks    list[mark] // of Errorf, Logf and Sometimes
	branches []branch   // the branches of the decisions, if tells

	races int  // how many races the detector had reported before the schedule
	raced bool // it has reported another one, for which race is the mark
	race  mark
}

// event is an operation in the trace.
type event struct {
	fiber  int32
	object int32 // -1: none
	op     policy.Op
	cases  span
	at     time.Duration
	how    policy.Outcome
	which  int32 // the chosen case of a select or -1 if unknown, or the number of values of a TryRecv or -1 for one
}

// happening is a part of a schedule in which one fiber ran without a stop, or a move of the clock. [DPOR] needs to know
// what made each possible.
type happening struct {
	fiber    int32 // search.Clock for the clock
	step     int32 // of the operation in the trace; -1 for the code after a wait, or the beginning of a fiber
	decision int32 // the decision that caused it; -1 if it was the only way
	wake     int32 // the log entry that ended the wait, or began the fiber; otherwise -1
	idle     bool  // time moved because no fiber could run
	watched  bool  // a selector had been given a case before
	rest     bool  // it is the code after an operation that has not waited
}

// choice is a case of a select.
type choice struct {
	op     policy.Op
	object int32 // -1: none
}

// span is the position of the cases of one select among all cases.
type span struct {
	first int
	n     int32 // -1 if unknown, or not kept
}

// The numbers of FNV-1a, with 64 bits.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

//go:norace
func (r *recorder) reset() {
	r.objects.clear()
	r.nsteps, r.ncases, r.hash, r.hashes.n = 0, 0, fnvBasis, 0
	r.lengths = 0
	r.log.n, r.chose, r.watchable = 0, -1, false
	r.made.n, r.marks.n = 0, 0
}

// forgetRaces is called before a schedule. Its runs belong together, because the detector reports a race only in the
// first of them.
func (r *recorder) forgetRaces() { r.races, r.raced = race.Errors(), false }

// lookForRaces finds out whether the race detector has reported a race since the last step of fiber i, which runs.
//
//go:norace
func (r *recorder) lookForRaces(i int32) {
	if race.Enabled && !r.raced && race.Errors() > r.races {
		r.raced, r.race = true, mark{step: r.nsteps, fiber: i, kind: raceMark}
	}
}

// record adds an operation to the trace. A schedule may have any length, so only its last mostKept operations are kept,
// in a ring whose length is a power of two. The hash covers all. If r.whole is set, the whole trace is kept.
//
// Guarded by TestALongScheduleIsReplayedAndTold.
//
//go:norace
func (r *recorder) record(e event) {
	if r.nsteps == len(r.trace) && (r.whole || r.nsteps < mostKept) {
		r.trace = doubled(r.trace)
	}
	*r.traced(r.nsteps) = e
	if e.op.For != 0 {
		r.lengths = (r.lengths ^ uint64(e.op.For) ^ uint64(r.nsteps)<<48) * fnvPrime
	}
	r.nsteps++
}

// mostKept is the number of operations of a schedule that are kept: some 6 MB.
const mostKept = 1 << 16

// traced returns operation number step, which has been kept.
//
//go:norace
func (r *recorder) traced(step int) *event { return &r.trace[step&(len(r.trace)-1)] }

// forgotten returns how many of the first operations were not kept.
//
//go:norace
func (r *recorder) forgotten() int { return max(0, r.nsteps-len(r.trace)) }

// keepCases copies the cases of a select. As with operations, only the last ones are kept.
//
//go:norace
func (r *recorder) keepCases(op policy.Op) span {
	n := len(op.Cases)
	if op.Cases == nil || n > mostKept {
		return span{n: -1}
	}
	for r.ncases+n > len(r.cases) && (len(r.cases) < mostKept || r.whole && r.ncases <= len(r.cases)) {
		r.cases = doubled(r.cases)
	}
	at := r.ncases
	for i := range op.Cases {
		c := &op.Cases[i]
		x := choice{*c, r.objectOf(*c)}
		x.op.Cases, x.op.Stack = nil, nil
		r.cases[r.ncases&(len(r.cases)-1)] = x
		r.ncases++
		r.mixOp(1<<39, x.object, c)
	}
	return span{at, int32(n)}
}

// outcome records how the operation of x ended.
//
//go:norace
func (r *recorder) outcome(x *fiber, how policy.Outcome, which int) {
	x.how = how
	if x.step >= r.forgotten() {
		e := r.traced(x.step)
		e.how, e.which = how, int32(which)
	}
}

// markHash is called when an operation has been recorded and added to the hash. From time to time it records a byte of
// the hash, for the token.
//
//go:norace
func (r *recorder) markHash() {
	if r.nsteps%markEvery != 0 {
		return
	}
	r.hashes.add(byte(r.hash>>56 ^ r.hash>>24))
	invariant.Check(r.hashes.n == r.nsteps/markEvery, "an operation is not in the hash")
}

// mixOp mixes an operation on an object into the hash; who identifies the operation's fiber. All uses of objects have
// the same kind, so the verb distinguishes them: by its name, because its address differs from process to process.
//
//go:norace
func (r *recorder) mixOp(who uint64, object int32, op *policy.Op) {
	r.mix(who | uint64(uint32(object+1))<<8 | uint64(op.Kind))
	if op.Verb != nil {
		for i := range len(op.Verb.Name) {
			r.mix(uint64(op.Verb.Name[i]))
		}
	}
}

//go:norace
func (r *recorder) mix(x uint64) {
	for range 8 {
		r.hash = (r.hash ^ x&0xff) * fnvPrime
		x >>= 8
	}
}

//go:norace
func (r *recorder) objectOf(op policy.Op) int32 {
	if op.Object == 0 {
		return -1
	}
	i, _ := r.objects.find(op.Object<<8 | uint64(kindOfObject(op.Kind)))
	return i
}

// kindOfObject keeps the numbers of channels and of fibers separate.
//
//go:norace
func kindOfObject(k policy.Kind) uint8 {
	switch k {
	case policy.Wait, policy.Start, policy.End:
		return 1
	}
	return 0
}

// happens adds to the log.
//
//go:norace
func (r *recorder) happens(h happening) {
	h.decision, r.chose = r.chose, -1
	h.watched = r.watchable
	if !r.whole {
		return
	}
	r.log.add(h)
}

// continued logs, if rests is set, that fiber i continues after an operation.
//
//go:norace
func (r *recorder) continued(i int32) {
	if r.rests {
		r.happens(happening{fiber: i, step: -1, wake: -1, rest: true})
	}
}
