package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// This file reports schedules that are not controlled: what they wait for outside, and what each goroutine waits for.

// inKernel reports whether a goroutine waits in the kernel: for a socket, a pipe or a system call.
func (a *actor) inKernel() bool {
	return a.state == coir.Calling || a.state == coir.Waiting && a.wait == coir.WaitKernel
}

// kernelCall returns the function that waits in the kernel, such as "net read". It is the outermost of the innermost
// calls into packages net, os, syscall and os/exec.
func kernelCall(stack []place) (call string) {
	for _, p := range stack {
		slash := strings.LastIndex(p.function, "/") + 1
		name, function, _ := strings.Cut(p.function[slash:], ".")
		switch name = p.function[:slash] + name; {
		case name == "net" || name == "os" || name == "syscall" || name == "os/exec":
			if strings.HasPrefix(function, "(") {
				_, function, _ = strings.Cut(function, ").")
			}
			function, _, _ = strings.Cut(function, ".")
			call = name + " " + strings.ToLower(function)
		case call != "":
			return call
		}
	}
	return call
}

// tooLong describes a schedule that was given up.
func (r *result) tooLong() string {
	if r.busy {
		return "a schedule has " + chart.Grouped(r.steps) + " steps, and for five million of them " +
			"there was no moment at which all goroutines waited"
	}
	return "a schedule has " + chart.Grouped(r.steps) + " steps and has not ended"
}

// waitsOutside describes what a schedule that is not controlled waits for, and where.
func (r *record) waitsOutside(dir string) string {
	what := map[int]string{
		coir.ForCall:      "a system call",
		coir.ForOutside:   "the network",
		coir.ForComputing: "a computation without end",
		coir.ForStep:      "the end of a step that takes more than half a minute",
		coir.ForSignal:    "a signal",
		coir.ForGoroutine: "a goroutine outside",
	}[r.waitsIn]
	ids := slices.DeleteFunc(r.ids(), func(id int) bool {
		a := r.actors[id]
		switch r.waitsIn {
		case coir.ForCall, coir.ForOutside:
			return !a.inKernel()
		case coir.ForComputing:
			return a.state != coir.Ready
		}
		return a.state != coir.Waiting || id == 1
	})
	slices.SortStableFunc(ids, func(a, b int) int { // first the goroutines that wait at a line of the program
		return foreign(r, a) - foreign(r, b)
	})
	if len(ids) == 0 {
		return what
	}
	a := r.actors[ids[0]]
	if r.waitsIn <= coir.ForOutside && a.call != "" {
		what = a.call
	}
	return what + a.at.said(" at %s", dir)
}

// foreign returns 1 if a goroutine waits only in code of the standard library, and otherwise 0.
func foreign(r *record, id int) int {
	if at := r.actors[id].at; at.file == "" || r.standard(at) {
		return 1
	}
	return 0
}

// notControlled describes what the last schedule that was not controlled waits for. Other schedules of the test may
// have been controlled.
func (r *result) notControlled(dir string) string {
	if r.stopped && r.uncontrolled == 0 {
		return "not controlled: all schedules but the first: each needs its own process, and this strategy cannot continue " +
			"in another process. Use another strategy\n"
	}
	if r.once != nil && r.uncontrolled == 0 { // with -strict
		return r.once.failedOnce(dir)
	}
	head := "not controlled: "
	if r.outcome == coir.VerdictPass {
		head = fmt.Sprintf("%s not controlled: ", report.Count(r.uncontrolled, "schedule"))
	}
	last, what := r.waiting, ""
	switch {
	case last != nil:
		what = last.waitsOutside(dir)
	case r.outcome == coir.VerdictLong:
		last, what = &r.record, r.tooLong()
	default:
		last, what = &r.record, r.waitsOutside(dir)
	}
	var b strings.Builder
	last.waiters(&b, dir)
	last.ending(dir).SayCauses(&b)
	return head + what + "\n" + indent(b.String())
}

// failedOnce describes a failure that did not happen again.
func (r *record) failedOnce(dir string) string {
	return fmt.Sprintf("%s, only after other schedules in the same process:\n%s%s",
		r.headline(), r.explain(dir), indent(tail(plain(r.log), 20)))
}
