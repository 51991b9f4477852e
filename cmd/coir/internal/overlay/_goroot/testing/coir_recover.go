package testing

import (
	"internal/coir"
	"internal/replay"
)

// coirRecovery describes the first schedule of a search in which a handler panicked, and net/http recovered that. The
// command prints it as a note if the test passes.
type coirRecovery struct {
	config        coirConfig
	script        []int
	token         string // empty: not all decisions were recorded
	found         int    // the number of the schedule
	request, text string
	pcs           []uintptr // the stack of the panic
}

// noteRecovered counts the schedule r, in which a handler panicked, and keeps the first such schedule. r must be the
// last schedule.
func (x *coirExplorer) noteRecovered(r *coirRun) {
	x.recovered++
	if x.recovery != nil {
		return
	}
	var pcs [64]uintptr
	f := &coirRecovery{
		config: r.config, script: replay.Script(r.allDecisions()), found: max(x.count, coirSet.only+1),
		request: r.Request, text: r.RecoveredText, pcs: append([]uintptr(nil), pcs[:coirRecoveredPCs(pcs[:])]...),
	}
	if !r.LostDecision {
		f.token = coirEncode(f.config, f.script, r.Hash)
	}
	x.recovery = f
}

// shrinkRecovery shrinks the schedule of the note about a panic of a handler, which makes its token shorter.
func (x *coirExplorer) shrinkRecovery() {
	f := x.recovery
	if f == nil || f.token == "" || replay.Switches(f.script) == 0 || coirSet.shrink <= 0 {
		return
	}
	defer x.during(coirRepeats)()
	x.recovers = true
	defer func() { x.recovers = false }()
	again := func(script []int) (r coirRun) {
		r = x.run(f.config.by(script))
		x.leaks(&r)
		return r
	}
	r := again(f.script)
	if r.kind != coir.KindRecovered || r.touched() {
		return
	}
	shrunk := newFailure(&r, f.found)
	x.shrink(new(coirRecord), shrunk)
	f.config = shrunk.config
	if r = again(shrunk.script); r.kind == coir.KindRecovered && !r.LostDecision {
		f.token = coirEncode(r.config, shrunk.script, r.Hash)
	}
}

// record adds the note to a record.
func (f *coirRecovery) record(r *coirRecord, schedules int) {
	if f != nil {
		r.add("handlers", schedules, f.found, f.token, f.request, f.text, r.stack(f.pcs))
	}
}
