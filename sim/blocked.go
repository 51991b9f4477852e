package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
	"github.com/coir-go/coir/internal/source"
)

// A fiber that waits outside coir stops the world: only one fiber runs at a time, and the one that could end the wait
// does not run. No fiber can notice this, so a goroutine outside does, in real time. The scheduler reports that there
// has been no switch for a while, and from then on watch samples the stack of the fiber's goroutine. If watch finds it
// a few times in the same native wait without a step in between, the schedule has failed. The context of the schedule
// is then cancelled, which ends waits for that context. Sim cannot end any other wait: it abandons the wait, with its
// world. If the wait ends later, the schedule runs to its end, and the world is closed.
//
// The method Ended of a coir.Watcher may wait too. The world calls it when it moves the clock or cancels the schedule,
// on the goroutine of the fiber that ran last or of the worker. So the scheduler also reports that the world does not
// return. For the same reason watch does not cancel the schedule itself: it would wait in Ended as well.

// KindBlocked is the failure of a program in which a fiber, or the method Ended of a [coir.Watcher], waits outside
// coir: for a native channel, a mutex, the Done channel of a context, the network, in time.Sleep, or in a function of
// [iter.Pull].
const KindBlocked Kind = "blocked"

const (
	stallAfter  = 300 * time.Millisecond // the time without a switch before watch samples
	lookEvery   = 40 * time.Millisecond
	looks       = 3 // the number of samples that must agree
	freeWithin  = 100 * time.Millisecond
	computesFor = time.Second // the time before a computation is reported
	blockedLeft = "; it cannot be ended from outside, so its goroutine is left behind, and those of the other fibers"
	adviceWaits = "Fibers run one at a time here, so no other fiber can end that wait. "
	adviceChan  = adviceWaits + "Use a coir.Chan in place of a native channel; " +
		"in place of <-ctx.Done(), use coir.WaitCancel(ctx)"
	adviceMutex = adviceWaits + "Another fiber holds it across an operation of coir: " +
		"unlock before the operation, or use a locks.Mutex"
	adviceNet    = "The network of a simulation is that of package netio: dial and listen with it"
	adviceGroup  = adviceWaits + "Start fibers in a nursery, whose Run waits for them, or use a coir.Chan"
	advicePulled = "The function of iter.Pull runs in a goroutine of its own, which is not a fiber. " +
		"Range over the sequence, or receive with Recv; iter.Pull is for sequences that do not wait"
)

// watch is called, in a goroutine of the scheduler, when there has been no switch for a while. It samples the stack
// until there is a switch, or until the world is closed.
func (w *world) watch(s coir.Stall) {
	nexts, beat := w.nexts.Load(), w.beat.Load()
	id := goroutineOf(s.Stack)
	last, same, told := "", 0, false
	since := time.Now().Add(-s.For)
	for w.nexts.Load() == nexts && id != "" && !w.closedWithin(lookEvery) {
		if now := w.beat.Load(); now != beat { // the world makes steps, so it is not blocked
			last, same, told, beat, since = "", 0, false, now, time.Now()
			continue
		}
		stack := stackOf(id)
		if stack != last {
			last, same = stack, 0
		}
		if same++; same >= looks && w.beat.Load() == beat && w.nexts.Load() == nexts {
			if what, advice := nativeWait(stack); what != "" {
				// If the wait has ended, watch continues, because the scheduler does not report the next wait of the
				// same fiber.
				if w.blocked(s.Fiber, what, advice, stack) {
					return
				}
			}
		}
		if !told && time.Since(since) > computesFor {
			told = true
			does := "computes, or waits for the system"
			if inNet(stack) {
				does = "waits in package net, and no other fiber runs meanwhile. " + adviceNet
			}
			who, _ := waiter(s.Fiber, stack)
			fmt.Printf("sim: no choice point for %v: %s %s\n%s\n",
				time.Since(since).Round(time.Millisecond), who, does, stack)
		}
	}
}

// waiter describes what waits on a stack: the running fiber f, or a method Ended of the program. For a method it
// returns nil in place of f, which may have parked or ended before.
func waiter(f *coir.Fiber, stack string) (who string, fiber *coir.Fiber) {
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, library+".") && strings.Contains(line, ".callEnded") {
			return "the method Ended of a coir.Watcher", nil
		}
	}
	if f == nil {
		return "the simulation", nil
	}
	return "fiber " + f.Name(), f
}

// nativeStop describes a native wait.
type nativeStop struct {
	fiber  *coir.Fiber       // nil if a method Ended waits
	mutex  bool              // the wait is for a mutex
	places map[string]string // where each fiber is in the program, by its address
}

// closedWithin waits up to d for the world to close, and reports whether it did.
func (w *world) closedWithin(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.closed:
		return true
	case <-t.C:
		return false
	}
}

// blocked ends the schedule, in which watch has found a native wait. It returns false if this has ended the wait: then
// the schedule is on its way to its end, and may still come to another wait.
//
// Spec: SM-06 (an outside goroutine is reported)
func (w *world) blocked(f *coir.Fiber, what, advice, stack string) bool {
	who, f := waiter(f, stack)
	text := who + " " + what
	if at := ownPlace(stack); at != "" {
		text += ", at " + at
	}
	in := &nativeStop{fiber: f, mutex: advice == adviceMutex, places: fiberPlaces()}
	first := w.stray.Load()
	beat := w.beat.Load()
	if abort := w.abort.Load(); abort != nil && (first == nil || first.Kind != KindBlocked) {
		// This replaces an earlier stray, such as that of a function of iter.Pull, because it has more detail.
		w.stray.Store(&Failure{Kind: KindBlocked, Text: text + ". " + advice, native: in})
		aborted := make(chan struct{})
		w.stopping.Store(true)
		go func() {
			defer close(aborted)
			(*abort)(errStopped)
			w.stopping.Store(false)
		}() // not in this goroutine, because it may wait in a method Ended, perhaps for the same mutex
		select {
		case <-aborted:
		case <-time.After(freeWithin):
		}
		for until := time.Now().Add(freeWithin); time.Now().Before(until); time.Sleep(time.Millisecond) {
			if w.beat.Load() != beat {
				return false
			}
		}
	}
	w.given.CompareAndSwap(nil, w.abandoned(text+blockedLeft+". "+advice, in))
	select {
	case w.giveUp <- struct{}{}:
	default: // already reported
	}
	return true
}

// abandoned returns the failure of a schedule that keeps waiting. Nothing changes the world, unless the wait ends at
// this moment: then the failure has no trace.
//
//go:norace
func (w *world) abandoned(text string, in *nativeStop) (f *Failure) {
	defer func() {
		if recover() != nil {
			f = &Failure{Kind: KindBlocked, Text: text}
		}
	}()
	f = &Failure{Kind: KindBlocked, Text: text, native: in}
	f.freeze(w)
	f.Token = encode(w.mode, f.script, f.hash, f.hashes)
	return f
}

// runInFiber calls fn in a fiber of the world, and then closes the world. If a schedule keeps waiting outside coir,
// runInFiber returns that failure, and abandons fn and the world.
func (w *world) runInFiber(fn func(ctx context.Context)) *Failure {
	bubble.Simulates()
	done := make(chan struct{})
	var broken any
	returned := false
	go func() {
		defer close(done)
		defer w.close()
		defer func() { broken = recover() }()
		err := w.rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
			fn(ctx)
			return nil
		})
		if err != nil {
			panic("sim: " + err.Error())
		}
		returned = true
	}()
	select {
	case <-done:
	case <-w.giveUp:
		return w.given.Load()
	}
	switch {
	case broken != nil:
		panic(broken)
	case !returned: // fn has ended its goroutine, so end that of the caller
		if w.exited != nil && w.quit != nil {
			w.quit(w.exited)
		}
		runtime.Goexit()
	}
	return nil
}

// left reports whether the world has been abandoned.
func (w *world) left() bool { return w.given.Load() != nil }

// nativeWait describes the wait of the goroutine of a stack, if only another goroutine can end that wait, and advises
// what to write instead.
func nativeWait(stack string) (what, advice string) {
	if switched(stack) {
		return "", ""
	}
	_, state, _ := strings.Cut(stack, "[")
	state = state[:max(strings.IndexAny(state, ",]"), 0)]
	state, _, _ = strings.Cut(state, " (") // nil chan, no cases, durable
	for _, line := range strings.Split(stack, "\n") {
		if strings.HasPrefix(line, library+"/sim.") && strings.Contains(line, "drawn") {
			return "", "" // waits for the goroutine that called Drawn
		}
	}
	switch {
	case state == "sleep":
		return "waits outside of coir, in time.Sleep", adviceSleep
	case state == "IO wait" && inNet(stack):
		return "waits outside of coir, in package net", adviceNet
	case state == "IO wait":
		return "waits outside of coir, for the network, or a pipe of the system", adviceOver
	case state == "coroutine":
		return "waits outside of coir, for a function of iter.Pull", advicePulled
	case state == "chan receive":
		return "waits outside of coir, to receive from a native channel", adviceChan
	case state == "chan send":
		return "waits outside of coir, to send to a native channel", adviceChan
	case state == "select" && inNet(stack):
		return "waits outside of coir, in package net", adviceNet
	case state == "select":
		return "waits outside of coir, in a native select", adviceChan
	case state == "sync.Mutex.Lock" || strings.HasPrefix(state, "sync.RWMutex"):
		return "waits outside of coir, for a native mutex", adviceMutex
	case state == "sync.WaitGroup.Wait" || state == "sync.Cond.Wait" || state == "semacquire":
		what = strings.TrimSuffix(strings.Replace(state, "semacquire", "sync.WaitGroup", 1), ".Wait")
		return "waits outside of coir, for a " + what, adviceGroup
	}
	return "", ""
}

// switched reports whether the goroutine of a stack waits in coir's own switch, which means that its fiber does not
// run. The scheduler may have switched after it reported the fiber, and before watch began to count.
func switched(stack string) bool {
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, library) {
			rest := line[len(library):]
			return strings.HasPrefix(rest, "/internal/coro.") || strings.HasPrefix(rest, "/internal/sched.")
		}
	}
	return false
}

// inNet reports whether the goroutine of a stack waits in package net: for the kernel, or, in a dial, in a select.
func inNet(stack string) bool {
	for line := range strings.Lines(stack) {
		switch {
		case strings.HasPrefix(line, "net/http."):
			return true
		case strings.HasPrefix(line, "net."): // not a module whose name begins in the same way
			name, _, _ := strings.Cut(line, "(")
			return !strings.Contains(name, "/")
		case strings.HasPrefix(line, library):
			return false
		}
	}
	return false
}

// goroutineOf returns the number of the goroutine of a stack.
func goroutineOf(stack string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
	if _, err := strconv.Atoi(id); err != nil {
		return ""
	}
	return id
}

// stackOf returns the stack of one goroutine. If that goroutine waits in race.Alone, which in a race build calls a
// function in another goroutine, stackOf returns the stack of the other.
func stackOf(id string) (stack string) {
	const alone = library + "/internal/race.Alone"
	all := strings.Split(strings.TrimSpace(string(stacks())), "\n\n")
	for i := slices.IndexFunc(all, func(one string) bool { return goroutineOf(one) == id }); i >= 0; {
		stack = all[i]
		if !strings.Contains(stack, "\n"+alone+"(") {
			break
		}
		by := "\ncreated by " + alone + " in goroutine " + goroutineOf(stack) + "\n"
		i = slices.IndexFunc(all, func(one string) bool { return strings.Contains(one, by) })
	}
	return stack
}

// stacks returns the stacks of all goroutines.
func stacks() []byte {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) || len(buf) >= 1<<26 {
			return buf[:n]
		}
		buf = make([]byte, 4*len(buf))
	}
}

// fiberPlaces returns where in the program each fiber is, by the address of the fiber. A schedule that is blocked is
// not run again to record its lines, so they come from the stacks: the function that runs a fiber has it as its
// argument.
func fiberPlaces() map[string]string {
	places := map[string]string{}
	for one := range strings.SplitSeq(string(stacks()), "\n\n") {
		if _, after, ok := strings.Cut(one, "\n"+library+".(*thunk).RunThunk("); ok {
			fiber, _, _ := strings.Cut(after, ")")
			places[fiber] = ownPlace(one)
		}
	}
	return places
}

// ownPlace returns the innermost place of a stack that is neither the library's nor of the standard library, or "".
func ownPlace(stack string) string {
	file, line := cutLast(source.Line(stack), ":")
	if file == "" {
		return ""
	}
	n, _ := strconv.Atoi(line)
	return place(file, n)
}

// mayHold returns the fibers that may hold the mutex that another fiber waits for, the most recently active first. They
// are inside an operation. Fibers that wait for their children are included only if there are no others.
func (r *findings) mayHold() (fibers []int) {
	if r.native == nil || !r.native.mutex {
		return nil
	}
	for _, joins := range []bool{false, true} {
		for i := range r.fibers {
			c := &r.fibers[i]
			if !c.ended && c.f != r.native.fiber && c.op.Kind != policy.Start && (c.op.Kind == policy.Join) == joins {
				fibers = append(fibers, i)
			}
		}
		if len(fibers) > 0 {
			break
		}
	}
	slices.SortStableFunc(fibers, func(i, j int) int { return r.lastStep(j) - r.lastStep(i) })
	return fibers
}

// lastStep returns the number of the last step of a fiber, or 0 if that step was not kept.
func (r *findings) lastStep(fiber int) int {
	for s := len(r.trace) - 1; s >= 0; s-- {
		if int(r.trace[s].fiber) == fiber {
			return r.before + s + 1
		}
	}
	return 0
}

const mostHolders = 5

// holdsMutex writes the fibers that may hold the mutex that another one waits for.
//
// Guarded by TestReportNamesTheHolderOfANativeMutex.
func (r *findings) holdsMutex(b *strings.Builder) {
	all := r.mayHold()
	for k, i := range all {
		if k == mostHolders {
			fmt.Fprintf(b, "  ... and %s more\n", report.Count(len(all)-k, "fiber"))
			return
		}
		c := &r.fibers[i]
		verb := "may hold it"
		if len(all) == 1 {
			verb = "probably holds it"
		}
		fmt.Fprintf(b, "  %s %s: it is in %s", r.labels[i], verb, r.words(c.op, c.on, c.cases))
		if at := r.native.places[fmt.Sprintf("%p", c.f)]; at != "" {
			fmt.Fprintf(b, ", at %s", at)
		}
		if n := r.lastStep(i); n > 0 {
			fmt.Fprintf(b, " (its last step is %d)", n)
		}
		b.WriteString("\n")
	}
}
