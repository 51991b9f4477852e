package coir

import (
	"log/slog"
	"path"
	"strings"
	"sync"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/sched"
)

// stallReports reports the stalls of a runtime.
type stallReports struct {
	tell     func(Stall) // the function given to OnStall, or nil
	observer *guarded    // or nil
	log      bool        // OnStall was not given

	mu     sync.Mutex
	logged map[uintptr]bool // the keys are the places where fibers were spawned
}

// onStalls returns the stallReports for a new runtime, or nil if stalls need not be reported.
func onStalls(set *settings, observer *guarded) *stallReports {
	log := !set.stalls && set.policy == nil && bubble.Here() == 0
	if set.onStall == nil && observer == nil && !log {
		return nil
	}
	return &stallReports{tell: set.onStall, observer: observer, log: log, logged: make(map[uintptr]bool)}
}

// report reports a stall. Getting the stack dumps the stacks of all goroutines, so report does that only if the stack
// is used.
func (r *stallReports) report(st sched.Stall) {
	if st.Task == nil { // no fiber is running, but a policy: that of package sim, which is notified
		if r.tell != nil {
			stack, _ := st.Stack()
			guard("the function of OnStall", func() { r.tell(Stall{For: st.For, Stack: stack}) })
		}
		return
	}
	f := fiberOf(st.Task)
	site := spawnedAt(f)
	log := r.log && r.first(site)
	if r.tell == nil && r.observer == nil && !log {
		return
	}
	stack, dumped := st.Stack()
	s := Stall{Fiber: f, For: st.For, Stack: stack}
	if r.tell != nil {
		guard("the function of OnStall", func() { r.tell(s) })
	}
	if r.observer != nil {
		r.observer.tell(func(o Observer) { o.FiberStalled(s) })
	}
	if log {
		if at := placeIn(stack); at == "" && dumped {
			r.set(site, false)
		} else {
			guard("the handler of slog", func() { s.log(at) })
		}
	}
}

// spawnedAt returns where the fiber was spawned. It is norace because the monitor, which calls it, is not ordered after
// the spawn.
//
//go:norace
func spawnedAt(f *Fiber) uintptr { return f.pc }

// first reports whether no stall of a fiber spawned at pc has been logged before, and records that one has been logged.
// All bodies of Runs count as one place.
func (r *stallReports) first(pc uintptr) bool { return !r.set(pc, true) }

// set records whether a stall of a fiber spawned at pc has been logged, and returns the previous value.
func (r *stallReports) set(pc uintptr, logged bool) (before bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.logged[pc] = r.logged[pc], logged
	return before
}

// log logs the stall. at is where the fiber is, or empty if that is not known.
func (s Stall) log(at string) {
	args := []any{"fiber", s.Fiber.Name(), "for", s.For, "started", s.Fiber.SpawnSite()}
	if at != "" {
		args = append(args, "at", at)
	}
	slog.Warn("coir: a fiber has run for a long time without yielding, and holds its worker. If it blocks, call what "+
		"blocks in coir.Blocking, or start the fiber with coir.WithGoroutine(). If it computes, call coir.Yield now and "+
		"then, and end when that returns an error.", args...)
}

// placeIn returns the innermost place in a fiber's stack, as file:line, that is not in the standard library. It returns
// "" if that place is in coir, because the fiber then started to wait while the stack was taken.
func placeIn(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 1; i+1 < len(lines); i += 2 { // after "goroutine 7 [sleep]:": pkg.F(...) and \tfile:line +0x12
		file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		pkg := packageOf(lines[i])
		if pkg == module || strings.HasPrefix(pkg, module+"/internal/") {
			break
		}
		if !isStandard(pkg, path.Dir(file)) {
			return file
		}
	}
	return ""
}

const module = "github.com/coir-go/coir"

// packageOf returns the import path of the package of a function, given a line of a stack.
func packageOf(call string) string {
	slash := strings.LastIndexByte(call[:max(0, strings.IndexByte(call, '('))], '/') + 1
	name, _, _ := strings.Cut(call[slash:], ".")
	return call[:slash] + name
}

// isStandard reports whether a package is in the standard library: its path has no dot, and dir is in the src directory
// of a Go installation, or is just the path, as in a program built with -trimpath. Some functions of other packages,
// such as time.Sleep, are in the runtime's directory.
func isStandard(pkg, dir string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	dir = "/src/" + dir
	return !strings.Contains(first, ".") && (strings.HasSuffix(dir, "/src/"+pkg) || strings.HasSuffix(dir, "/src/runtime"))
}
