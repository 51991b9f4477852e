package sim

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
	"github.com/coir-go/coir/internal/source"
)

// This file finds goroutines that use objects of the simulation although sim does not control them. It also finds the
// user's own places on stacks that mostly contain functions of the library.

// exposed is the part of a world that goroutines outside use: those that watch whether a schedule makes progress (see
// watch), those that use objects of the simulation, and the one that called Explore. So all fields are atomic, or
// channels, or have a lock. Only quit and exited are not: exited is set before the schedule's fiber ends, and read
// after that.
type exposed struct {
	beat     atomic.Int64                            // the steps of all schedules
	nexts    atomic.Int64                            // the number of switches
	abort    atomic.Pointer[context.CancelCauseFunc] // cancels the current schedule
	stopping atomic.Bool                             // stop is cancelling the schedule
	stray    atomic.Pointer[Failure]                 // an operation of a goroutine outside, until a fiber sees it
	strays   strayList                               // the operations of goroutines outside in all schedules
	given    atomic.Pointer[Failure]                 // why the world has been abandoned
	giveUp   chan struct{}
	closed   chan struct{}
	ran      atomic.Int64   // the number of schedules that were run
	did      atomic.Int64   // the number of steps in them
	quit     func(*Failure) // called in the goroutine that called Explore, if the program has ended its goroutine
	exited   *Failure       // the failure that says where it did
}

// Stray implements policy.Policy. Goroutines that sim does not control call it, and fibers that use a deadline which it
// does not control; the next step reports what they did.
//
// Spec: SM-06 (an outside goroutine is reported)
func (w *world) Stray(op policy.Op) {
	if w.stopping.Load() {
		return // the cancellation by stop, which may run outside any fiber
	}
	if op.Kind == policy.Deadline {
		w.stray.CompareAndSwap(nil, &Failure{Kind: KindUncontrolled, Text: "a fiber uses a context with a deadline of " +
			"package context, which passes in real time, at " + userPlace(op.Stack) + useTimeout})
		return
	}
	what := describe(op) + ", at " + caller()
	w.strays.add(what)
	w.stray.CompareAndSwap(nil, &Failure{Kind: KindUncontrolled, Text: "a goroutine that is not a fiber of the " +
		"simulation does " + what +
		"; use fibers, or a channel made outside"})
}

const useTimeout = "; use coir.WithTimeout, which keeps to the simulation's clock"

// strayList lists the operations of goroutines outside, each once.
type strayList struct {
	mu   sync.Mutex
	what []string
}

const mostStrays = 8

func (l *strayList) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.what) < mostStrays && !slices.Contains(l.what, what) {
		l.what = append(l.what, what)
	}
}

// sorted returns the list in an order that does not depend on which came first.
func (l *strayList) sorted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.what)
	slices.Sort(all)
	return all
}

// strayPatience is the real time that sim waits, once, for a goroutine that might end a deadlock, before it reports the
// deadlock.
const strayPatience = 10 * time.Millisecond

// tellStrays adds the operations of goroutines outside to the report of a deadlock. To sim, a fiber that waits for such
// a goroutine looks stuck, because no virtual time passes. The operation of the goroutine comes too late to be the
// failure itself.
//
// Spec: SM-06 (an outside goroutine is reported)
func (w *world) tellStrays(f *Failure) {
	if f == nil || f.Kind != KindDeadlock {
		return
	}
	time.Sleep(strayPatience)
	f.strays = w.strays.sorted()
}

// caller returns the place of the innermost function on the stack that is not the library's. A goroutine that runs only
// the library, such as that of go c.Send(ctx, 1), has none. Then caller returns the place of the go statement.
func caller() string {
	var pcs [32]uintptr
	if at := userPlace(pcs[:runtime.Callers(2, pcs[:])]); at != "" {
		return at
	}
	return startedAt(debug.Stack())
}

// userPlace returns the place of the innermost function on a stack that is not the library's, or "".
func userPlace(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if f.Function != "" && !ours(f.Function, f.File) {
			return place(f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// startedAt returns the place of the go statement that started the goroutine of a stack, as printed by runtime/debug.
func startedAt(stack []byte) string {
	_, last, ok := bytes.Cut(stack, []byte("\ncreated by "))
	if !ok {
		return "a place that is not known"
	}
	_, at, _ := bytes.Cut(last, []byte("\n\t"))
	text, _, _ := strings.Cut(string(at), " ")
	file, line := cutLast(text, ":")
	n, _ := strconv.Atoi(line)
	return place(file, n)
}

const library = "github.com/coir-go/coir"

// ours reports whether a function is the library's or the Go runtime's, and not a test's.
//
//go:norace
func ours(function, file string) bool {
	for _, prefix := range [...]string{"runtime.", "runtime/debug.", "panic(", "iter."} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return source.Own(function, file)
}

// place returns a line of a file as text, with the file's directory. A worker calls it where synchronisation is hidden
// from the race detector, so it must not use package fmt, which keeps buffers in a sync.Pool.
func place(file string, line int) string {
	dir, name := filepath.Split(file)
	return filepath.Base(dir) + "/" + name + ":" + strconv.Itoa(line)
}

// panicText describes the value that a program panicked with, and the program's own frames of the stack.
func panicText(p any, stack []byte) string {
	text := fmt.Sprint(p)
	if pe, ok := p.(*coir.PanicError); ok {
		text, stack = fmt.Sprintf("panic in fiber %s: %v", pe.Fiber, pe.Value), pe.Stack
	}
	return text + ownFrames(stack)
}

// ownFrames returns a stack, as printed by runtime/debug, without the library's frames: a line for each frame, and one
// that says how many were left out. It also leaves out arguments and addresses, which differ from run to run.
func ownFrames(stack []byte) string {
	var b strings.Builder
	left := 0
	var function string
	for line := range bytes.Lines(stack) {
		text := strings.TrimSpace(string(line))
		if line[0] != '\t' {
			function = text
			continue
		}
		at, _, _ := strings.Cut(text, " ") // file:line +0x1d
		file, _ := cutLast(at, ":")
		if strings.HasPrefix(function, "created by ") || ours(function, file) {
			left++
			continue
		}
		name, _ := cutLast(function, "(") // of the arguments
		dir, base := filepath.Split(at)
		fmt.Fprintf(&b, "\n%s at %s/%s", filepath.Base(name), filepath.Base(dir), base)
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n... and %s of the library and the Go runtime", report.Count(left, "frame"))
	}
	return b.String()
}

// cutLast returns the text before and after the last sep.
//
//go:norace
func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return s, ""
}
