package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/internal/policy"
)

// A fault is a rare event that a program must survive: a peer that aborts, a deadline that has already passed, a step
// of the clock. The program under test has a named site for each, and whether the fault happens there is a decision of
// the schedule like any other: the strategy makes it, a token repeats it, and shrinking keeps those that the failure
// needs.
//
// There are two decisions. On its first visit to a site, a schedule decides whether it has the fault at all. If it
// does, each visit decides whether the fault happens now. So there are schedules in which the fault never happens, or
// seldom, or often. A coin toss for each visit alone would rarely give a schedule without the fault.

// WithFaults sets the faults that may happen. A site with another name never fires, so the same program runs with and
// without faults. Result.Never lists faults that fired in no schedule. If the program did not reach one of them, whose
// name may be misspelt, it also lists the other faults that were reached.
func WithFaults(names ...string) Option { return func(s *settings) { s.faults = names } }

// Fault reports whether the named fault happens now. It returns false unless [WithFaults] names the fault. It also
// returns false for a nil Sim, so that code can be used outside a simulation with a nil *Sim.
//
// Packages may define faults of their own, through [coir.Simulation.Fault]: those of package netio begin with "netio".
//
// The caller implements the fault:
//
//	if s.Fault("cancel") { cancel(errGaveUp) }            // in a fiber of its own: at any moment
//	if s.Fault("deadline now") { d = 0 }                  // before coir.WithTimeout(ctx, d)
//	if s.Fault("slow") { coir.Sleep(ctx, time.Minute) }   // this fiber falls behind all others
//	if s.Fault("abort") { orders.Abort(errBroken) }       // between two operations on it
//	if s.Fault("clock step") { s.Advance(time.Hour) }     // timers fire late
//
//go:norace
func (s *Sim) Fault(name string) bool {
	if s == nil {
		return false
	}
	s.w.acts = true
	for i := range s.faults.sites {
		if x := &s.faults.sites[i]; x.name == name {
			if !x.asked {
				x.reached, x.asked, x.enabled = true, true, s.chooseFault(i, true)
			}
			if !x.enabled || !s.chooseFault(i, false) {
				return false
			}
			x.fired = true
			s.w.note(policy.Op{Kind: opFault, Name: name}, s.w.site())
			return true
		}
	}
	s.faults.missed(name)
	return false
}

// chooseFault decides about the fault of site i: with whole, whether the schedule has it at all; otherwise, whether it
// happens now.
//
//go:norace
func (s *Sim) chooseFault(i int, whole bool) bool {
	w, before := s.w, s.w.ndec
	w.fault = fault{i + 1, whole}
	d := s.choose(2)
	if w.fault = (fault{}); w.ndec > before {
		w.branchFault(s.faults.sites[i].name, whole)
	}
	return d == 1
}

// Advance advances the virtual time by d, even if fibers can run. Waits for times that pass on the way end.
//
//go:norace
func (s *Sim) Advance(d time.Duration) {
	s.w.host.Announce(s.ctx, policy.Op{Kind: opAdvance, For: d}, func() { s.w.clock.Advance(d) })
}

// faultPlan has the faults of an exploration.
type faultPlan struct {
	sites  []faultSite
	others [16]string // the first faults that the program reached, and that WithFaults does not name
	asks   bool       // record other faults even though WithFaults names none
}

type faultSite struct {
	name           string
	asked, enabled bool // in this schedule
	reached, fired bool // in any schedule
}

func planFaults(names []string) faultPlan {
	p := faultPlan{sites: make([]faultSite, len(names))}
	for i, name := range names {
		p.sites[i].name = name
	}
	return p
}

// begin resets the plan for the next schedule.
//
//go:norace
func (p *faultPlan) begin() {
	for i := range p.sites {
		p.sites[i].asked, p.sites[i].enabled = false, false
	}
}

// missed records that the program has reached a fault that WithFaults does not name.
//
//go:norace
func (p *faultPlan) missed(name string) {
	if len(p.sites) == 0 && !p.asks {
		return
	}
	for i := range p.others {
		if p.others[i] == "" {
			p.others[i] = name
		}
		if p.others[i] == name {
			return
		}
	}
}

// unnamed lists, for a replay that diverges, the faults that the program reached and that WithFaults does not name.
func (p *faultPlan) unnamed() string {
	var names []string
	for _, name := range p.others {
		if name != "" {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; the replay needs the faults of the recording: the program reached " + strings.Join(names, ", ") +
		", which sim.WithFaults does not name here"
}

// never returns the faults that have not fired. For a fault that was not reached it adds the names of those that were,
// because its name may be misspelt.
func (p *faultPlan) never() (names []string) {
	var reached []string
	for _, x := range p.sites {
		if x.reached {
			reached = append(reached, x.name)
		}
	}
	for _, name := range p.others {
		if name != "" {
			reached = append(reached, name)
		}
	}
	slices.Sort(reached)
	note := " (the program reached no fault)"
	if len(reached) > 0 {
		note = " (the program reached no fault of that name; it reached " + strings.Join(reached, ", ") + ")"
	}
	for _, x := range p.sites {
		switch {
		case x.fired:
		case x.reached:
			names = append(names, "fault "+x.name)
		default:
			names = append(names, "fault "+x.name+note)
		}
	}
	return names
}

// note adds an entry to the trace that is not an operation of the running fiber.
//
//go:norace
func (w *world) note(op policy.Op, at site) {
	w.record(event{fiber: w.current, object: -1, op: op, cases: span{n: -1}, at: w.clock.Now(), which: -1})
	if w.tells {
		w.keepSite(at)
	}
	w.mix(uint64(w.current)<<40 | uint64(op.Kind))
	w.markHash()
}
