package testing

import (
	"fmt"
	"internal/coir"
	"internal/replay"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The record of a test is a file with one fact per line. Fields are separated by tabs, and texts are quoted. The first
// is the name of the fact. The command reads the others in the order in which they are written here: see read.go there.
// Both come from the same commit, because the command contains the overlay.

type coirRecord struct {
	b      strings.Builder
	stacks map[string]int
}

func (r *coirRecord) add(what string, fields ...any) {
	r.b.WriteString(what)
	for _, f := range fields {
		r.b.WriteByte('\t')
		if s, ok := f.(string); ok {
			r.b.WriteString(strconv.Quote(s))
			continue
		}
		fmt.Fprint(&r.b, f)
	}
	r.b.WriteByte('\n')
}

// write writes the record immediately, because the process may end at any time.
func (r *coirRecord) write() {
	if coirSet.record == "" {
		os.Stdout.WriteString(r.b.String())
		return
	}
	f, err := os.OpenFile(coirSet.record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		f.WriteString(r.b.String())
		err = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "coir: cannot write the record:", err)
	}
}

func (x *coirExplorer) summary(r *coirRecord, verdict coir.Verdict) {
	coirPart.note(r, x, verdict)
	count, racing := x.tally(verdict)
	r.add("summary", string(verdict), coirPart.count+count, coirPart.leftBehind+x.leftBehind, x.all, x.complete,
		strconv.FormatUint(x.trace, 16))
	r.add("racing", coirPart.racing+racing)
	r.add("time", coirPart.timeUp || x.timeUp, coirPart.decided || x.decided)
	if x.noSlow {
		r.add("noslow")
	}
	r.add("outside", x.touched)
	r.add("skips", x.skips)
	r.add("beside", x.repeated, x.shrinks, x.ranSaved, x.ranToken, x.ranKept)
	x.recovery.record(r, x.recovered)
}

// tally returns the number of schedules, and the number of schedules with a racing clock. If the test has failed, count
// includes all schedules, and racing is 0. Otherwise count includes neither those with a racing clock nor those that
// repeated an earlier schedule.
func (x *coirExplorer) tally(verdict coir.Verdict) (count, racing int) {
	if verdict == coir.VerdictFail || verdict == coir.VerdictAgain {
		return x.count, 0
	}
	return x.count - x.racing - x.repeated, x.racing
}

func (x *coirExplorer) record(verdict coir.Verdict) {
	var r coirRecord
	x.summary(&r, verdict)
	r.write()
}

// recordRun records that a schedule was given up after too many steps, or because the test itself explores schedules.
func (x *coirExplorer) recordRun(run *coirRun) {
	var r coirRecord
	r.add("steps", run.Steps, run.TooBusy)
	x.summary(&r, coir.Verdict(run.kind)) // VerdictLong or VerdictSimulates
	r.write()
}

// recordKernel records that a schedule needs the kernel's network. The command then runs the test in another process,
// because the unfinished schedule has left goroutines behind.
func (x *coirExplorer) recordKernel(run *coirRun) {
	var r coirRecord
	r.add("network", run.NeedsKernel)
	x.summary(&r, coir.VerdictKernel)
	r.write()
}

func (x *coirExplorer) recordError(text string) {
	var r coirRecord
	r.add("error", text)
	x.summary(&r, coir.VerdictError)
	r.write()
}

// recordNever records that conditions of explore.Sometimes were never true.
func (x *coirExplorer) recordNever(names []any) {
	var r coirRecord
	r.add("never", names...)
	x.summary(&r, coir.VerdictNever)
	r.write()
}

// recordAgain asks the command to run a schedule in another process.
func (x *coirExplorer) recordAgain(token string, found int) {
	var r coirRecord
	r.add("again", token, found)
	x.summary(&r, coir.VerdictAgain)
	r.write()
}

// recordLeft records the goroutines of a schedule, for the note about those that each schedule leaves behind.
func (x *coirExplorer) recordLeft(run *coirRun) {
	var r coirRecord
	r.actors(run, true)
	x.summary(&r, coir.VerdictPass)
	r.write()
}

// recordFailure records the schedule that the command reports. found is the number of the schedule that failed first.
func (x *coirExplorer) recordFailure(r *coirRecord, run *coirRun, kind coir.Kind, found int, stable bool) {
	r.failure(run, kind, found, stable)
	verdict := coir.VerdictFail
	if x.asNote {
		verdict = coir.VerdictSlow
	}
	x.summary(r, verdict)
	r.write()
}

// failure records a schedule that failed.
func (r *coirRecord) failure(run *coirRun, kind coir.Kind, found int, stable bool) {
	script := replay.Script(run.allDecisions())
	token := coirEncode(run.config, script, run.Hash)
	if run.LostDecision {
		token = ""
	}
	r.add("failure", string(kind), run.text, found, run.config.Seed, replay.Switches(script), token, stable, run.Outside,
		run.PanicG, run.Steps, run.Now)
	r.schedule(run, kind == coir.KindDeadlock || kind == coir.KindLeak)
	r.add("output", run.output)
}

// schedule records the steps, channels and goroutines of a schedule. wait says that all of its goroutines wait.
func (r *coirRecord) schedule(run *coirRun, wait bool) {
	at, first := 0, max(0, int(run.Steps)-coir.KeptSteps)
	for ; first > 0 && at < run.Decisions; at++ {
		if int(coirDecisionAt(at).Step) > first {
			break
		}
	}
	for i := first; i < int(run.Steps); i++ {
		switches, kind := 0, uint8(0) // decisions at this step for another way than the first; the kind of the last
		for ; at < run.Decisions; at++ {
			d := coirDecisionAt(at)
			if int(d.Step) > i+1 {
				break
			}
			if d.Way != 0 {
				switches, kind = switches+1, d.Kind
			}
		}
		var pcs [64]uintptr
		s, stack := coirStepAt(i), r.stack(pcs[:coirStepPCs(i, pcs[:])])
		r.add("step", i+1, s.G, s.Op, s.Obj, s.At, stack, switches, kind, s.Done, s.Chose, s.Bytes, s.Second, s.On)
	}
	for i := 0; ; i++ {
		step, text, ok := coirNoteAt(i)
		if !ok {
			break
		}
		r.add("note", step, text)
	}
	for i := max(0, run.Cases-coir.KeptCases); i < run.Cases; i++ {
		c := coirCaseAt(i)
		r.add("case", c.Step, c.Obj, c.Index, c.Send)
	}
	if run.Recovered > 0 {
		var pcs [64]uintptr
		r.add("recovered", run.RecoveredG, run.Request, run.RecoveredText, r.stack(pcs[:coirRecoveredPCs(pcs[:])]))
	}
	for i := max(1, run.Channels-coir.KeptChannels+1); i <= run.Channels; i++ {
		var pcs [64]uintptr
		if obj, timer, room, npc := coirChannelAt(i, pcs[:]); obj != 0 {
			r.add("channel", obj, timer, room, r.stack(pcs[:npc]))
		}
	}
	r.actors(run, wait)
}

// actors records the goroutines of a schedule. wait says that all of them wait. Then actors also asks fibers what they
// wait for. Otherwise a goroutine could hold a lock of module coir, and the call would never return.
func (r *coirRecord) actors(run *coirRun, wait bool) {
	for i := 1; i <= run.Actors && i < coir.KeptActors; i++ {
		a := coirActorAt(i)
		var pcs [64]uintptr
		made, at := r.stack([]uintptr{a.Go}), r.stack(pcs[:coirActorPCs(i, pcs[:])])
		var born [128]uintptr
		fiber, role := coirActorName(i)
		text, holders := "", []uint64(nil)
		if wait && fiber.Waits != nil {
			text, holders = fiber.Waits()
		}
		r.add("actor", i, a.Parent, a.Op, a.State, a.Wait, a.Reason, a.Obj, a.Step, a.Since, made, at, fiber.Name, fiber.ID,
			text, fmt.Sprint(holders), role, r.stack(born[:coirBirth(i, born[:])]))
	}
}

// stack records a stack, unless it has already been recorded, and returns its number. The recorded stack begins with
// the function that called the runtime, and ends with the function of the test.
func (r *coirRecord) stack(pcs []uintptr) int {
	if len(pcs) == 0 {
		return 0
	}
	var fields []any
	frames := runtime.CallersFrames(pcs)
	for more := true; more && len(fields) < 3*96; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function == "" || strings.HasSuffix(f.Function, ".coirPoint") ||
			strings.HasSuffix(f.Function, ".coirPointBefore") ||
			len(fields) == 0 && strings.HasPrefix(f.Function, "runtime.") && f.Function != "runtime.gopanic" {
			continue
		}
		if f.Function == "testing.coirExplore" || f.Function == "runtime.goexit" {
			break
		}
		fields = append(fields, f.File, f.Line, f.Function)
	}
	key := fmt.Sprint(fields...)
	n, ok := r.stacks[key]
	if !ok {
		if r.stacks == nil {
			r.stacks = map[string]int{}
		}
		n = len(r.stacks) + 1
		r.stacks[key] = n
		r.add("at", append([]any{n}, fields...)...)
	}
	return n
}

// coirWaitsFor returns what a schedule waits for, if all its goroutines wait for something outside.
func coirWaitsFor(r *coirRun) int {
	if r.Signals {
		return coir.ForSignal
	}
	return coir.ForGoroutine
}

// recordUncontrolled records that a schedule is not controlled, why, and what each goroutine waits for.
func (x *coirExplorer) recordUncontrolled(run *coirRun, what int) {
	var r coirRecord
	r.add("uncontrolled", what, x.at.Load(), x.used.Load())
	r.schedule(run, false)
	x.summary(&r, coir.VerdictUncontrolled)
	r.write()
}

// recordMore asks the command to run the remaining schedules in another process.
func (x *coirExplorer) recordMore() {
	var r coirRecord
	r.add("more", x.at.Load(), int64(time.Since(x.began)))
	x.summary(&r, coir.VerdictMore)
	r.write()
}
