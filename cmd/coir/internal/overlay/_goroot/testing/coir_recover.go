package testing

import "internal/replay"

// A schedule in which a handler panics, and net/http recovers that, fails, unless the handler panics in the plain
// schedule too: such a test probably wants the panic, and gets a note.

// coirRecovery describes the first schedule of a search in which a handler panicked. The command prints it as a note if
// the test passes.
type coirRecovery struct {
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
		found: max(x.count, min(coirSet.only+1, 1)), request: r.Request, text: r.RecoveredText,
		pcs: append([]uintptr(nil), pcs[:coirRecoveredPCs(pcs[:])]...),
	}
	if !r.LostDecision {
		f.token = coirEncode(r.config, replay.Script(r.allDecisions()), r.Hash)
	}
	x.recovery = f
}

// record adds the note to a record.
func (f *coirRecovery) record(r *coirRecord, schedules int) {
	if f != nil {
		r.add("handlers", schedules, f.found, f.token, f.request, f.text, r.stack(f.pcs))
	}
}
