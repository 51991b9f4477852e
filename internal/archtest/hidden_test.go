package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hiddenPackages are all packages that run hidden in a race build, as a whole or in part.
var hiddenPackages = []struct {
	dir   string
	check func(s *Source, dir string, rules HiddenRules) ([]string, error)
	rules HiddenRules
}{
	{"internal/park", (*Source).Unmarked, HiddenRules{Plain: map[string]string{
		"internal/park State.String":   touchesNothing,
		"internal/park Outcome.String": touchesNothing,
	}}},
	{"internal/wait", (*Source).Unmarked, HiddenRules{}},
	{"internal/sched", (*Source).Unmarked, HiddenRules{Plain: map[string]string{
		"internal/sched runNext.empty":   "atomics only",
		"internal/sched ring.len":        "atomics only",
		"internal/sched Scheduler.Enter": "atomics only",
		"internal/sched Scheduler.Home":  "reads what never changes",
		"internal/sched Scheduler.Clock": "reads what never changes",
		"internal/sched Stall.Stack":     touchesNothing,
		"internal/sched stack":           touchesNothing,
	}}},
	{"internal/clock", (*Source).Unmarked, HiddenRules{Plain: map[string]string{
		"internal/clock Virtual.Advance.panic":    "its caller defers race.Enable",
		"internal/clock Virtual.lockToMove.panic": "its caller defers race.Enable",
	}}},
	{"internal/flavor", (*Source).Unmarked, HiddenRules{}},
	{"internal/channel", (*Source).Unmarked, HiddenRules{Plain: map[string]string{
		"internal/channel port.Send.func": "reads what its own goroutine has written",
	}}},
	{"internal/board", (*Source).Unmarked, HiddenRules{}},
	{"internal/coro", (*Source).Unmarked, HiddenRules{Plain: map[string]string{
		"internal/coro Coro.Init.func":  "begins a goroutine, and the hidden section in it",
		"internal/coro Coro.Enter.func": "reads what its own goroutine has written",
		"internal/coro GoroutineID":     touchesNothing,
		"internal/coro parseID":         touchesNothing,
		"internal/coro parseID.panic":   "never happens with the releases of Go that coir knows",
	}}},
	{"internal/bubble", (*Source).Unmarked, HiddenRules{Plain: map[string]string{
		"internal/bubble isTest":            "runs before main",
		"internal/bubble entry.create.func": "begins a goroutine, in which nothing is hidden",
		"internal/bubble ID.String":         touchesNothing,
	}}},
	{"internal/stdctx", (*Source).Hidden, HiddenRules{Called: map[string]int{
		"IsClosed": 1, "List.TakeDone": 1, "List.Await": 1,
	}}},
	{".", (*Source).Hidden, HiddenRules{
		Called: map[string]int{
			"timedScope.Expire":   1,                            // by clock
			"taskObserver.Parked": 1, "taskObserver.Readied": 1, // by sched
			"policed.Push": 1, "policed.Inject": 1, "policed.Pick": 1, "policed.Len": 1,
			"policed.Interrupt": 1, "policed.Outside": 1, // by a policy, in Next
			"registration.try.func": 0, // acts only after a panic of the user's code, which is not hidden
		},
		Plain: map[string]string{
			". Nursery.addError.append": "what it reads is written under the pragma alone",
			"internal/invariant Check":  touchesNothing,
		},
	}},
	{"sim", (*Source).Hidden, HiddenRules{
		Called: map[string]int{ // by the runtime
			"world.Ready": 1, "world.Wake": 1, "world.Next": 1, "world.Len": 1, "world.Step": 1, "world.Stepped": 1, "world.Choose": 1,
			"world.Draw": 1, "world.State": 1, "world.SetState": 1,
		},
		Plain: map[string]string{
			"sim userPlace":            touchesNothing,
			"sim place":                touchesNothing,
			"internal/invariant Check": touchesNothing,
		},
	}},
}

const touchesNothing = "touches nothing that is shared"

// TestHiddenCodeIsNotSeen: if the detector saw what coir does to its own memory, it would report false races in coir;
// if it missed what coir tells it, it would report false races in correct programs.
func TestHiddenCodeIsNotSeen(t *testing.T) {
	s, err := ReadSource(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range hiddenPackages {
		s.Checked[p.dir] = true
	}
	for _, p := range hiddenPackages {
		problems, err := p.check(s, p.dir, p.rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			t.Error(problem)
		}
	}
}

// hiddenFaults is a package with mistakes. A comment at the end of a line is a regular expression for what the check
// finds there.
const hiddenFaults = `package coir

import "github.com/coir-go/coir/internal/race"

type Waiter interface{ wait() }

type T struct{ list []int; m map[int]int }

func Good(t *T, w Waiter) {
	race.Release()
	race.Disable()
	race.Meet()
	t.marked()
	race.EnterUser()
	t.visible()
	race.LeaveUser()
	if race.Enabled {
		t.marked()
	}
	if !race.Enabled {
		t.visible()
	}
	defer race.Enable()
	go t.visible()
	w.wait()
}

//go:norace
func (t *T) marked() {
	var own []int
	own = append(own, 1)
}

func (t *T) visible() { race.Acquire() }

func (t *T) wait() { _ = t.list } // Good > T.wait runs hidden and lacks

func Early(bad bool) {
	race.Disable()
	if bad {
		return // Early is entered 0 deep and left 1 deep
	}
	race.Enable()
}

func Ways(bad bool) {
	if bad { // Ways: ways meet that are 1 and 0 deep
		race.Disable()
	}
	race.Enable()
}

func Loop() {
	for range 3 { // Loop: a turn of the loop begins 0 deep and ends 1 deep
		race.Disable()
	}
}

func Loose() {
	race.Enable() // Loose: race.Enable outside of a hidden section
}

func Deep() {
	race.Disable()
	deeper()
	race.Enable()
	race.Meet() // Deep: race.Meet is called 0 deep
}

//go:norace
func deeper() {
	race.Release() // Deep > deeper: race.Release does nothing
	race.Disable()
	race.EnterUser() // Deep > deeper: race.EnterUser is called 2 deep
	race.LeaveUser()
	race.Enable()
}

func (t *T) Builtins(to []int) {
	race.Disable()
	t.list = append(t.list, 1) // T.Builtins: append is instrumented
	copy(to, t.list) // T.Builtins: copy is instrumented
	_ = t.m[1] // T.Builtins: maps are instrumented
	func() {}() // T.Builtins > func runs hidden and cannot carry
	race.Enable()
}

func (t *T) Later(run func(func())) {
	run(func() { // called from a hidden section, which it leaves
		race.Enable()
		t.visible()
		race.Disable()
	})
}

func Expire() { // Expire runs hidden and lacks
}

func Panics(how int) {
	if how == 0 {
		panic("before")
	}
	race.Disable()
	if how == 1 {
		race.Enable()
		panic("after")
	}
	if how == 2 {
		panic("within") // Panics: a panic here reaches the user 1 deep
	}
	fails()
	race.Enable()
}

//go:norace
func fails() {
	race.Enable()
	panic("by a function that Panics calls") // PanicsDeferred > fails: a panic here reaches the user -1 deep
}

func PanicsDeferred(how int) {
	race.Disable()
	defer race.Enable()
	if how == 0 {
		panic("within")
	}
	fails()
}

func UserPanics(f func()) {
	race.Disable()
	defer race.Enable()
	race.EnterUser() // UserPanics: a panic here reaches the user -1 deep
	f()
	race.LeaveUser()
}
`

const hiddenRace = `package race

const Enabled = false

func Disable()   {}
func Enable()    {}
func EnterUser() {}
func LeaveUser() {}
func Acquire()   {}
func Release()   {}
func Meet()      {}
`

func TestHiddenFindsFaults(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"coir.go": hiddenFaults, "internal/race/race.go": hiddenRace} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := newSource(root, nil).Hidden(".", HiddenRules{
		Called: map[string]int{"Expire": 1, "Gone": 1},
		Plain:  map[string]string{". T.marked": "is marked"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"^Gone is listed", "^. T.marked is excepted"}
	for i, line := range strings.Split(hiddenFaults, "\n") {
		if _, says, ok := strings.Cut(line, " // "); ok && !strings.HasPrefix(says, "called") {
			want = append(want, fmt.Sprintf("^coir.go:%d: .*%s", i+1, regexp.QuoteMeta(says)))
		}
	}
	for _, w := range want {
		at := slices.IndexFunc(problems, regexp.MustCompile(w).MatchString)
		if at < 0 {
			t.Errorf("nothing is found that matches %q", w)
			continue
		}
		problems = slices.Delete(problems, at, at+1)
	}
	for _, p := range problems {
		t.Errorf("found without need: %s", p)
	}
}
