package sim

import (
	"time"

	"github.com/coir-go/coir/internal/policy"
)

// A fault is what seldom happens and has to be survived: a peer that aborts, a deadline that has passed already, a step of the clock. The
// program under test has a named site for each, and whether it happens there is a decision of the schedule like any other: the
// strategy makes it, a token repeats it, and shrinking leaves those that the failure needs.
//
// There are two decisions. The first time that a schedule comes to a site it decides whether the fault exists in it at all; if so, each
// visit decides whether it happens now. So there are schedules without the fault, with a little of it and with much of it, which
// one coin for each visit would not give.

// Faults sets the faults that may happen. A site of another name never fires, so the same program runs with and without. A fault that
// has fired in no schedule is reported in Result.Never, as what Sometimes has not seen is.
func Faults(names ...string) Option { return func(s *settings) { s.faults = names } }

// Fault reports whether the fault of that name happens here and now. It is false unless [Faults] names it, and for a nil Sim: code
// that is also used outside of a simulation keeps a *Sim that is nil there.
//
// What the fault is, is written where it happens:
//
//	if s.Fault("cancel") { cancel(errGaveUp) }            // in a fiber of its own: at any moment, whoever waits
//	if s.Fault("deadline now") { d = 0 }                  // before coir.WithTimeout(ctx, d)
//	if s.Fault("slow") { coir.Sleep(ctx, time.Minute) }   // this fiber is behind all others
//	if s.Fault("abort") { orders.Abort(errBroken) }       // between two operations on it
//	if s.Fault("clock step") { s.Advance(time.Hour) }     // what waits for that time is late
//
//go:norace
func (s *Sim) Fault(name string) bool {
	if s == nil {
		return false
	}
	for i := range s.faults.sites {
		if x := &s.faults.sites[i]; x.name == name {
			if !x.asked {
				x.asked, x.enabled = true, s.choose(2) == 1
			}
			if !x.enabled || s.choose(2) == 0 {
				return false
			}
			x.fired = true
			s.w.note(policy.Op{Kind: opFault, Name: name})
			return true
		}
	}
	return false
}

// Advance moves the virtual time by d, though there may be fibers that can go on. What falls due on the way ends its wait.
//
//go:norace
func (s *Sim) Advance(d time.Duration) {
	s.w.host.Announce(s.ctx, policy.Op{Kind: opAdvance, For: d}, func() { s.w.clock.Advance(d) })
}

// faultPlan is the faults of an exploration.
type faultPlan struct{ sites []faultSite }

type faultSite struct {
	name           string
	asked, enabled bool // in this schedule
	fired          bool // in any
}

func planFaults(names []string) faultPlan {
	p := faultPlan{make([]faultSite, len(names))}
	for i, name := range names {
		p.sites[i].name = name
	}
	return p
}

// begin forgets the last schedule.
//
//go:norace
func (p *faultPlan) begin() {
	for i := range p.sites {
		p.sites[i].asked, p.sites[i].enabled = false, false
	}
}

// never returns the faults that have not fired.
func (p *faultPlan) never() (names []string) {
	for _, x := range p.sites {
		if !x.fired {
			names = append(names, "fault "+x.name)
		}
	}
	return names
}

// note adds something to the trace that is not an operation of the fiber that runs.
//
//go:norace
func (w *world) note(op policy.Op) {
	w.record(event{w.current, -1, op, span{n: -1}, w.clock.Now()})
	w.mix(uint64(w.current)<<40 | uint64(op.Kind))
}
