package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// How a failure is told: what happened, who waits for what and who could end that, and the last steps with one column
// a goroutine.

// ops are the names of operations, as package internal/coir of the overlay numbers them.
var ops = []string{
	"?", "go", "send", "recv", "close", "select", "lock", "try lock", "unlock", "rlock", "runlock", "lock", "unlock",
	"add", "wait", "cond wait", "signal", "broadcast", "once", "yield",
	"load", "store", "swap", "cas", "add", "and/or", "load", "store",
}

const (
	opGo, opSend, opRecv                   = 1, 2, 3
	opLock, opTryLock, opUnlock            = 6, 7, 8
	opRLock, opRUnlock, opWLock, opWUnlock = 9, 10, 11, 12
	opWait, opCondWait, opOnce             = 14, 15, 18
)

// kindOf is the sort of object that an operation is on.
func kindOf(op int) string {
	switch op {
	case 2, 3, 4:
		return "chan"
	case opLock, opTryLock, opUnlock:
		return "mutex"
	case opRLock, opRUnlock, opWLock, opWUnlock:
		return "rwmutex"
	case 13, opWait:
		return "waitgroup"
	case opCondWait, 16, 17:
		return "cond"
	case opOnce:
		return "once"
	case 20, 21, 22, 23, 24, 25:
		return "atomic"
	case 26, 27:
		return "map"
	}
	return ""
}

func object(op, id int) string {
	if kind := kindOf(op); kind != "" && id != 0 {
		return fmt.Sprintf("%s#%d", kind, id)
	}
	return ""
}

// headline says in one line what happened.
func (r *result) headline() string {
	f := r.failure
	text := map[string]string{
		"deadlock": "deadlock", "panic": "panic", "fail": "the test fails", "livelock": "livelock: it never ends",
		"leak": "a goroutine is left behind", "race": "data race",
		"uncontrolled": "it waits for something outside that does not come",
	}[f.kind]
	if f.text != "" {
		text += ": " + f.text
	}
	text += fmt.Sprintf(" in schedule %s (seed %d)", thousands(f.schedule), f.seed)
	switch f.switches {
	case 0:
		return text + ", in the plain order"
	case 1:
		return text + map[bool]string{false: ", shrunk to 1 switch", true: ", with 1 switch"}[f.replayed]
	}
	how := "shrunk to"
	if f.replayed {
		how = "with"
	}
	return fmt.Sprintf("%s, %s %d switches", text, how, f.switches)
}

// report explains a failure. dir is the directory of the package.
func (r *result) report(dir string) string {
	var b strings.Builder
	f := r.failure
	switch {
	case f.outside > 0:
		fmt.Fprintf(&b, "%s came from outside (network, system calls, goroutines of other tests): a replay may differ\n",
			count(f.outside, "wake"))
	case !f.stable:
		b.WriteString("the same decisions did not lead to the same end: the test depends on something that lasts from " +
			"one schedule to the next\n")
	}
	names := r.names()
	if a := r.actors[f.panicked]; f.kind == "panic" && a != nil {
		fmt.Fprintf(&b, "%s panics, at %s:%d\n", names[a.id], short(a.at.file, dir), a.at.line)
	}
	owners := r.owners()
	for _, id := range r.ids() {
		if a := r.actors[id]; a.state == waiting && a.id != 1 && a.id != f.panicked {
			fmt.Fprintf(&b, "%s %s\n", names[id], r.waits(a, names, owners, dir))
		}
	}
	if cycle := r.cycle(owners); len(cycle) > 1 {
		var who []string
		for _, id := range cycle {
			who = append(who, names[id])
		}
		fmt.Fprintf(&b, "cycle: %s -> %s\n", strings.Join(who, " -> "), who[0])
	}
	b.WriteString(r.columns(names, dir))
	return b.String()
}

func (r *result) ids() []int {
	ids := make([]int, 0, len(r.actors))
	for id := range r.actors {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// names are the names of goroutines: the test's own, or where it was started, with a number if there are several.
func (r *result) names() map[int]string {
	names, same := map[int]string{0: "clock"}, map[string]int{}
	started := r.started()
	base := func(a *actor) string {
		switch {
		case strings.HasPrefix(a.made.function, "testing."):
			if a.id <= 2 {
				return r.test
			}
			return "subtest"
		case a.made.file == "":
			return fmt.Sprint("goroutine ", a.id)
		case strings.HasPrefix(a.made.function, "sync.") && started[a.id].file != "": // by WaitGroup.Go
			return fmt.Sprintf("%s:%d", filepath.Base(started[a.id].file), started[a.id].line)
		}
		return fmt.Sprintf("%s:%d", filepath.Base(a.made.file), a.made.line)
	}
	for _, id := range r.ids() {
		same[base(r.actors[id])]++
	}
	seen := map[string]int{}
	for _, id := range r.ids() {
		name := base(r.actors[id])
		if name == r.test && id == 1 {
			names[id] = "harness"
			same[name]--
			continue
		}
		seen[name]++
		if same[name] > 1 {
			names[id] = fmt.Sprintf("%s (%d)", name, seen[name])
			continue
		}
		names[id] = name
	}
	return names
}

// started says where the steps tell that goroutines were started: the n-th go of a goroutine has started its n-th child.
func (r *result) started() map[int]place {
	children := map[int][]int{}
	for _, id := range r.ids() {
		children[r.actors[id].parent] = append(children[r.actors[id].parent], id)
	}
	at := map[int]place{}
	for _, s := range r.stepsOf {
		if all := children[s.g]; s.op == opGo && len(all) > 0 {
			at[all[0]] = s.place
			children[s.g] = all[1:]
		}
	}
	return at
}

// waits says what a goroutine waits for.
func (r *result) waits(a *actor, names map[int]string, owners map[int]int, dir string) string {
	var what string
	switch {
	case strings.HasPrefix(a.reason, "sleep"):
		what = "sleeps"
	case strings.Contains(a.reason, "nil chan"):
		what = "waits for a nil channel"
	case strings.Contains(a.reason, "select (no cases)"):
		what = "waits in a select without cases"
	case strings.Contains(a.reason, "select"):
		what = "waits in a select"
	case strings.Contains(a.reason, "chan receive"):
		what = "waits to receive from " + object(opRecv, a.object)
	case strings.Contains(a.reason, "chan send"):
		what = "waits to send to " + object(opSend, a.object)
	case strings.Contains(a.reason, "WaitGroup"):
		what = "waits for " + object(opWait, a.object)
	case strings.Contains(a.reason, "Cond"):
		what = "waits for a signal"
		for _, s := range slices.Backward(r.stepsOf) { // its last step is the Unlock within Wait
			if s.g == a.id && s.op == opCondWait {
				what += " of " + object(opCondWait, s.object)
				break
			}
		}
	case strings.Contains(a.reason, "Mutex") || strings.Contains(a.reason, "semacquire"):
		what = "waits to lock " + object(a.op, a.object)
		if by, ok := owners[a.object]; ok && by == a.id {
			what += ", which it holds itself"
		} else if ok {
			what += ", held by " + names[by]
		}
	default:
		what = "waits (" + a.reason + ")"
	}
	if a.at.file != "" {
		what += fmt.Sprintf(", at %s:%d", short(a.at.file, dir), a.at.line)
	}
	if since := a.since.Round(time.Microsecond); since > 0 { // a read of the clock moves it by a nanosecond
		what += fmt.Sprintf(", since %v", since)
	}
	return what
}

// owners says which goroutine holds each lock at the end: the last that went past its Lock, and not to its Unlock.
func (r *result) owners() map[int]int {
	owners := map[int]int{}
	waits := map[[2]int]bool{} // goroutine and lock, at the end
	for _, a := range r.actors {
		if a.state == waiting && (a.op == opLock || a.op == opWLock || a.op == opRLock) &&
			(strings.Contains(a.reason, "Mutex") || strings.Contains(a.reason, "semacquire")) {
			waits[[2]int{a.id, a.object}] = true
		}
	}
	last := map[[2]int]int{} // the last Lock of a goroutine that still waits for it
	for i, s := range r.stepsOf {
		if waits[[2]int{s.g, s.object}] && (s.op == opLock || s.op == opWLock || s.op == opRLock) {
			last[[2]int{s.g, s.object}] = i
		}
	}
	for i, s := range r.stepsOf {
		switch s.op {
		case opLock, opWLock, opRLock:
			if at, ok := last[[2]int{s.g, s.object}]; !ok || at != i {
				owners[s.object] = s.g
			}
		case opUnlock, opWUnlock, opRUnlock:
			if owners[s.object] == s.g {
				delete(owners, s.object)
			}
		}
	}
	return owners
}

// cycle is a cycle of goroutines each of which waits for a lock that the next one holds.
func (r *result) cycle(owners map[int]int) []int {
	for _, from := range r.ids() {
		var path []int
		for at := from; ; {
			a := r.actors[at]
			if a == nil || a.state != waiting || a.object == 0 {
				break
			}
			by, ok := owners[a.object]
			if !ok || a.op != opLock && a.op != opWLock && a.op != opRLock {
				break
			}
			path = append(path, at)
			if by == from {
				return path
			}
			if slices.Contains(path, by) {
				break
			}
			at = by
		}
	}
	return nil
}

const lines, width = 30, 24 // of columns

// columns are the last steps, with one column a goroutine.
func (r *result) columns(names map[int]string, dir string) string {
	steps := folded(r.stepsOf)
	if len(steps) == 0 {
		return ""
	}
	var b strings.Builder
	if len(steps) > lines {
		fmt.Fprintf(&b, "the last of %s steps:\n", thousands(len(r.stepsOf)))
		steps = steps[len(steps)-lines:]
	}
	var who []int
	for _, s := range steps {
		if !slices.Contains(who, s.g) {
			who = append(who, s.g)
		}
	}
	slices.Sort(who)
	if len(who) > 5 {
		return b.String() + r.list(steps, names, dir)
	}
	row := func(cells map[int]string) {
		var line strings.Builder
		for _, g := range who {
			fmt.Fprintf(&line, "%-*s", width+2, clip(cells[g], width))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	head := map[int]string{}
	for _, g := range who {
		if head[g] = names[g]; len(head[g]) > width { // the line is at the end
			head[g] = "..." + head[g][len(head[g])-width+3:]
		}
	}
	row(head)
	for _, s := range steps {
		cell := ops[s.op]
		if o := object(s.op, s.object); o != "" {
			cell += " " + o
		}
		// The Done of WaitGroup.Go has no line of the program.
		if at := s.place.function; !strings.HasPrefix(at, "runtime.") && !strings.HasPrefix(at, "sync.") {
			cell += fmt.Sprint(" :", s.place.line)
		}
		if s.times > 1 {
			cell += " x" + thousands(s.times)
		}
		if s.way > 0 {
			cell = "> " + cell
		}
		row(map[int]string{s.g: cell})
	}
	return b.String()
}

// folded makes one of steps that are the same, one after the other.
func folded(all []step) (steps []step) {
	for _, s := range all {
		if n := len(steps); n > 0 {
			last := &steps[n-1]
			if s.g == last.g && s.op == last.op && s.object == last.object && s.place == last.place && s.way == 0 {
				last.times++
				continue
			}
		}
		s.times = 1
		steps = append(steps, s)
	}
	return steps
}

// list is the steps, one a line, for many goroutines.
func (r *result) list(steps []step, names map[int]string, dir string) string {
	var b strings.Builder
	for _, s := range steps {
		mark := " "
		if s.way > 0 {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %-22s %s %s, at %s:%d\n", mark, clip(names[s.g], 22), ops[s.op], object(s.op, s.object),
			short(s.place.file, dir), s.place.line)
	}
	return b.String()
}

// leftBehind tells of goroutines that every schedule leaves behind.
func (r *result) leftBehind(dir string) string {
	var b strings.Builder
	names := r.names()
	for _, id := range r.ids() {
		if a := r.actors[id]; a.state == waiting && a.id != 1 {
			fmt.Fprintf(&b, "left behind: %s %s\n", names[id], r.waits(a, names, nil, dir))
		}
	}
	return b.String()
}

// notControlled says what a test waits for outside.
func (r *result) notControlled(dir string) string {
	what := map[int]string{1: "a system call", 2: "the network, or a goroutine outside", 3: "a computation without end",
		4: "the end of a schedule that takes more than half a minute"}[r.waitsIn]
	if r.outcome == "long" {
		what = "a schedule has more than 5,000,000 steps without a moment at which all wait"
	}
	text := "not controlled: " + what
	for _, stack := range r.stacks {
		if at := ownLine(stack, dir); at != "" {
			text += ", at " + at
			break
		}
	}
	return text + "\n"
}

// ownLine is the innermost line of a stack that is not of the standard library.
func ownLine(stack, dir string) string {
	for line := range strings.Lines(stack) {
		file, ok := strings.CutPrefix(line, "\t")
		if !ok || strings.Contains(file, "/src/runtime/") || !strings.Contains(file, ".go:") {
			continue
		}
		file, _, _ = strings.Cut(strings.TrimSpace(file), " ")
		if strings.HasPrefix(file, dir) {
			return short(file, dir)
		}
	}
	return ""
}

// short is a file's name, from the package's directory if it is in there.
func short(file, dir string) string {
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n-3] + "..."
	}
	return s
}
