package sim

import (
	"context"
	"reflect"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
)

// A program may do its work where sim does not see it: in a goroutine, in a wait outside coir, or without any operation
// of coir. Such a schedule fails, whether the work took a microsecond or a minute. The function watch finds a wait that
// takes long. If the wait has ended before the next operation of the fiber, coro.Waited finds it. To find a goroutine
// that a fiber starts, sim compares how many goroutines the process had started before and after the schedule. The
// count does not show which fiber started one, nor where, so sim runs the schedule again, and counts after each step.

// unseen finds work that sim does not see.
//
//   - To find a goroutine, only a schedule that passed, or was empty, is run again.
//   - misses[:nlooks] has an entry for each call of look in the running schedule. No run of the schedule makes an entry
//     smaller.
type unseen struct {
	last    site // the place of the last operation, if the trace is recorded
	sees    bool // sim can find waits outside coir that have ended
	acts    bool // a schedule had a step or a decision, or used the simulation otherwise
	sample  [1]metrics.Sample
	born    int64 // the number of goroutines that the process had started when the schedule began
	usual   int64 // a schedule that starts no more goroutines than this is not run again
	hunts   int
	counts  bool // count the goroutines that are started in each step
	first   bool // this is the first run that counts
	counted int64
	misses  []uint8 // for each call of look, the number of runs that did not start a goroutine before it
	nlooks  int
	known   map[string]bool // the numbers of the goroutines that ran before the schedule
}

// KindEmpty is the failure of a program that does nothing that sim sees: no operation of coir, and no decision.
const KindEmpty Kind = "empty"

const (
	emptyText = "the simulation saw no operation of coir, so it has only one schedule, and has tested nothing. " +
		"Call the program from the function, with its ctx, and let it use coir's fibers, channels and time"
	adviceSleep = "Real time is not the simulation's. Use coir.Sleep in place of time.Sleep, and coir.After or a " +
		"pace.Ticker in place of a timer or ticker of package time"
	adviceOver = "What it waited for is not a part of the schedule. Use a coir.Chan in place of a native channel, " +
		"coir.After or a pace.Ticker in place of a timer of package time, a nursery in place of goroutines, and package " +
		"netio in place of package net"
	adviceStart = "Start a fiber in its place, in a nursery. A goroutine that the program does not depend on may be " +
		"started before the simulation"
)

// waitWords describes a wait. The text follows "waits outside of coir, ".
var waitWords = [...]string{
	coro.Slept:     "in time.Sleep",
	coro.Received:  "to receive from a native channel",
	coro.Sent:      "to send to a native channel",
	coro.Selected:  "in a native select",
	coro.Grouped:   "for a sync.WaitGroup",
	coro.Signalled: "for a sync.Cond",
	coro.Polled:    "for the network, or a pipe of the system",
}

// seesWaits reports whether sim can find waits that have ended. In a bubble of testing/synctest it cannot, because the
// runtime notes other reasons for waits there.
func seesWaits() bool { return bubble.Here() == 0 && tellsWaits() }

// look checks whether the running fiber, number i, has waited outside coir or started a goroutine since its last
// operation. It is called before an operation, and when the program's function has returned.
//
// Spec: SM-06 (an outside goroutine is reported)
//
//go:norace
func (w *world) look(i int32, how coro.Wait) {
	if how != coro.NotWaited && w.sees {
		coro.ForgetWait()
		advice := adviceOver
		if how == coro.Slept {
			advice = adviceSleep
		}
		w.stop(&Failure{Kind: KindBlocked, over: true, Text: "fiber " + w.fibers[i].f.Name() + " waits outside of coir, " +
			waitWords[how] + between(w.last, w.fibers[i].site) + ". " + advice})
		return
	}
	if w.counts {
		w.countStarts(i)
	}
}

// between returns words for the operations between which something happened, if they are known. The place of the event
// itself is unknown, because its stack is gone.
//
//go:norace
func between(last, now site) string {
	switch {
	case last.file != "" && now.file != "":
		return ", between the operations at " + place(last.file, last.line) + " and " + place(now.file, now.line)
	case last.file != "" && last.begins:
		return ", in the function at " + place(last.file, last.line)
	case last.file != "":
		return ", after the operation at " + place(last.file, last.line)
	case now.file != "":
		return ", before the operation at " + place(now.file, now.line)
	}
	return ""
}

// begun is called when a schedule begins.
//
//go:norace
func (w *world) begun() {
	coro.ForgetWait()
	w.nlooks, w.last = 0, site{}
}

// looked is called when the program's function has returned. It makes the last checks of the schedule.
//
//go:norace
func (w *world) looked(fn func(context.Context, *Sim)) {
	w.acts = w.acts || w.nsteps > 0 || w.ndec > 0 || w.clock.Len() > 0
	if w.fail != nil {
		return
	}
	main := &w.fibers[0]
	if w.last = main.site; w.nsteps == 0 {
		w.last = functionAt(fn)
	}
	main.site = site{}
	how := coro.Waited()
	race.Disable() // as in the policy's own calls of stop
	if w.look(0, how); w.fail == nil && !w.acts {
		w.stop(&Failure{Kind: KindEmpty, Text: emptyText})
	}
	race.Enable()
}

// functionAt returns where a function of the program begins.
func functionAt(fn func(context.Context, *Sim)) (at site) {
	if f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()); f != nil {
		at.begins = true
		at.file, at.line = f.FileLine(f.Entry())
	}
	return at
}

// created returns how many goroutines the process has started so far, without those of the world's runtime.
//
//go:norace
func (w *world) created() int64 {
	metrics.Read(w.sample[:])
	if w.sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(w.sample[0].Value.Uint64()) - w.host.Goroutines()
}

// countStarts counts the goroutines that were started in the step that ends here. If there were some in the runs so
// far, it checks whether the running fiber has started one of them. One run may have had none: a tick of a monitor
// runs on a goroutine that the library counts only when it runs, so one that was created before the step and runs
// during the step hides another.
//
//go:norace
func (w *world) countStarts(i int32) {
	now := w.created()
	n := now - w.counted
	w.counted = now
	if w.nlooks == len(w.misses) {
		w.misses = doubled(w.misses)
	}
	at := w.nlooks
	w.nlooks++
	if w.first {
		w.misses[at] = 0
	}
	if n <= 0 {
		w.misses[at]++
		return
	}
	if w.first || w.misses[at] > mayMiss {
		return
	}
	race.EnterUser()
	from := w.startedHere()
	race.LeaveUser()
	if from != "" {
		w.stop(&Failure{Kind: KindUncontrolled, Text: "fiber " + w.fibers[i].f.Name() + " starts a goroutine, at " + from +
			", which sim does not control. " + adviceStart})
	}
}

// numbers returns the numbers of the goroutines in a stack dump.
func numbers(dump []byte) map[string]bool {
	all := map[string]bool{}
	for one := range strings.SplitSeq(string(dump), "\n\n") {
		all[goroutineOf(one)] = true
	}
	return all
}

// startedHere returns the place of a go statement of the program that the running goroutine has executed in this
// schedule, if the new goroutine still runs, or "".
func (w *world) startedHere() string {
	by := " in goroutine " + strconv.FormatUint(coro.GoroutineID(), 10) + "\n"
	for one := range strings.SplitSeq(string(stacks())+"\n", "\n\n") {
		_, last, ok := strings.Cut(one, "\ncreated by ")
		creator, rest, mine := strings.Cut(last+"\n", by)
		if !ok || !mine || w.known[goroutineOf(one)] {
			continue
		}
		at, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		file, number := cutLast(at, ":")
		line, _ := strconv.Atoi(number)
		if !ours(creator, file) { // ours includes iter.Pull, whose coroutine does not run on its own
			return place(file, line)
		}
	}
	return ""
}

const (
	startTries = 4 // the number of runs of a schedule to find the step in which a goroutine is started
	mayMiss    = 1 // the number of these runs that may have started none
	huntTries  = 8 // the number of further runs, on one processor, that are not interrupted
	mostRuns   = 4 * huntTries
	mostHunts  = 8
	startsFor  = 64 // the number of first schedules that are checked for goroutines
	startEvery = 8  // after that, only each eighth is checked, because counting goroutines takes half a microsecond
	settleFor  = 100 * time.Microsecond

	preemptAfter = 2 * time.Millisecond // a run that took longer may have been interrupted
)

// onOne is held while the process has one processor.
var onOne sync.Mutex

// runChecked runs schedule number n. If n is one of the schedules to check, it looks for goroutines that the fibers
// start, which may run the program several times. If once is true, it runs the program only once and does not look.
func (w *world) runChecked(ctx context.Context, s *Sim, fn func(context.Context, *Sim), n int, once bool) *Failure {
	if once || n >= startsFor && n%startEvery != 0 {
		return w.schedule(ctx, s, fn)
	}
	w.born = w.created()
	return w.huntGoroutines(ctx, s, fn, w.schedule(ctx, s, fn))
}

// huntGoroutines is called after a schedule, whose result is was. If the schedule passed or was empty, and goroutines
// were started meanwhile, huntGoroutines runs the schedule again. If a fiber has started one of the goroutines, it
// returns a failure, and otherwise was.
//
// Other parts of the process may start goroutines at any time. So huntGoroutines continues only while there is a step
// in which each run starts one, except for mayMiss. Such a goroutine may end before the step does, and is then not
// found. So the last runs use one processor. There the goroutine cannot begin before the fiber stops, so it still runs
// at the end of the step, unless the fiber has waited for it. A busy machine may interrupt the fiber earlier, so there
// are several such runs, and more if they take so long that they may have been interrupted. A wait for a mutex is no
// sign of a goroutine, because package desk waits in this way for its own goroutines.
func (w *world) huntGoroutines(
	ctx context.Context, s *Sim, fn func(context.Context, *Sim), was *Failure,
) *Failure {
	if was != nil && was.Kind != KindEmpty || w.hunts == mostHunts || !w.sees {
		return was
	}
	n := w.created() - w.born
	for until := time.Now().Add(settleFor); n > w.usual && time.Now().Before(until); {
		runtime.Gosched() // the library may not yet have counted one of its own goroutines
		n = w.created() - w.born
	}
	if n <= w.usual && was == nil { // an empty program fails anyway, so its count, which may be too low, does not decide
		return was
	}
	script := make([]int, w.ndec)
	for i := range script {
		script[i] = w.decisions[i].chosen
	}
	w.first = true
	for range startTries {
		if f := w.countedRun(ctx, s, fn, script); f != nil {
			return f
		}
		if !w.suspects() {
			return was
		}
	}
	w.hunts++
	onOne.Lock()
	defer onOne.Unlock()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for tries, runs := 0, 0; tries < huntTries && runs < mostRuns; runs++ {
		began := time.Now()
		if f := w.countedRun(ctx, s, fn, script); f != nil {
			return f
		}
		n = min(n, w.counted-w.born)
		if time.Since(began) < preemptAfter {
			tries++
		}
	}
	w.usual = max(w.usual, n) // such as those of iter.Pull
	return was
}

// countedRun runs a schedule again, and counts the goroutines that are started in each of its steps.
func (w *world) countedRun(
	ctx context.Context, s *Sim, fn func(context.Context, *Sim), script []int,
) *Failure {
	w.counts = true
	if !w.first {
		w.known = numbers(stacks())
	}
	w.born = w.created()
	w.counted = w.born
	f := w.follow(ctx, s, fn, script, nil)
	w.counts, w.first = false, false
	if f != nil && f.Kind == KindEmpty {
		return nil
	}
	return f
}

// suspects reports whether there is a step in which each run so far has started a goroutine, except for mayMiss.
func (w *world) suspects() bool {
	for _, n := range w.misses[:w.nlooks] {
		if n <= mayMiss {
			return true
		}
	}
	return false
}
