//go:build coirmutants

package programs_test

// The programs are useful only if they find faults. Each mutant here is a change to the real code, applied with go's
// -overlay flag, that the programs of CI must find. Most restore a defect that the library once had.

import (
	"regexp"
	"testing"

	"github.com/coir-go/coir/internal/mutant"
)

type change struct {
	name, file string
	edits      []string
}

var changes = []change{
	{"a scope does not wake the guests that wait under it", "scope.go",
		[]string{"	if w.guests {\n		sc.cancelGuests(here)\n	}\n", ""}},
	{"a scope wakes one guest", "scope.go",
		[]string{"		_, asleep := n.Claim(park.Cancelled)\n		c.scopeMu.Unlock()\n		asleep.MakeReady(here)\n",
			"		_, asleep := n.Claim(park.Cancelled)\n		c.scopeMu.Unlock()\n		asleep.MakeReady(here)\n		return\n"}},
	{"a guest that leaves stays in the list", "await.go",
		[]string{"		c.sc.removeGuest(node)\n", ""}},
	{"a scope does not pass its cancel on", "scope.go",
		[]string{"		child.cold().scopeMu.Lock()\n		child.mark(e.inside())\n		child.cold().scopeMu.Unlock()\n", "",
			"		child.wakeMarked(here)\n", ""}},
	{"an operation does not look at the standard context above its scope", "scope.go",
		[]string{"scopeCancelled || s == scopeLinked && sc.cold().link.mayBeDone() && sc.pollHidden()\n", "scopeCancelled\n"}},
	{"a cancel of package context takes effect at no step of a simulation", "policy.go",
		[]string{"	rt.lookAtContexts()\n", "", "	(*Runtime)(x).lookAtContexts() // a", "	// a"}},
	{"a timeout of a simulation does not end contexts of package context", "context.go",
		[]string{"		sc.rt.lookAtContexts()\n", ""}},
	{"a simulation stops at deadlines that nothing waits under", "sim/world.go",
		[]string{"moved && w.nready == 0 && w.settled; w.calls++ {", "false; {"}},
	{"the error of a cancel wraps its cause", "errors.go",
		[]string{"func (e *canceledError) Is(",
			"func (e *canceledError) Unwrap() error { return e.cause }\n\nfunc (e *canceledError) Is("}},
	{"the error of an aborted channel is what its cause is", "errors.go",
		[]string{"		if errors.Is(e.cause, how) {\n			return nil\n", "		if errors.Is(e.cause, how) {\n			break\n"}},
	{"the error of a cancel does not name the channel", "errors.go",
		[]string{"	return &canceledError{op, e.cause}\n", "	return e.op\n"}},
	{"a child's panic is lost beside the function's Goexit", "nursery.go",
		[]string{"	n.owner.reportLater(c.panics, c.errs)\n", "	n.owner.reportLater(nil, c.errs)\n"}},
	{"errors are lost beside a panic", "nursery.go",
		[]string{"slices.Concat(panics[1:], errs)", "slices.Concat(panics[1:])"}},
	{"the other panics are lost", "nursery.go",
		[]string{"slices.Concat(panics[1:], errs)", "slices.Concat(errs)"}},
	{"a panic with a nil *PanicError is none", "errors.go",
		[]string{"if pe, ok := v.(*PanicError); ok && pe != nil {", "if pe, ok := v.(*PanicError); ok {"}},
	{"the chain of a panic with a nil *PanicError panics", "errors.go",
		[]string{"ok && e.Value != any((*PanicError)(nil)) {", "ok {"}},
	{"Cancel(nil) is an error", "nursery.go",
		[]string{"	e := onPurpose\n", "	e := plainCancel\n"}},
	{"a Goexit makes the nursery outside fail", "nursery.go",
		[]string{"	if c.onlyEcho { // of the cancel", "	if false { // of the cancel"}},
	{"errors are lost beside a Goexit on another runtime", "runtime.go",
		[]string{"			by.reportLater(u.panics, u.errs)\n", "			_ = u\n"}},
	{"the cause of WithTimeoutCause is lost", "scope.go",
		[]string{"	if cause == nil || cause == context.DeadlineExceeded {\n", "	if cause != plainCancel.err {\n"}},
	{"a timeout is counted as a cancel", "chan.go",
		[]string{"	race.LeaveUser()\n	c.ch.Fail(side, e.reason())\n", "	race.LeaveUser()\n	_ = e\n	c.ch.Fail(side, park.Cancelled)\n"}},
	{"Shield does not shield", "context.go",
		[]string{"WithoutCancel(ctx), c.runtime(), nil, c.f)\n", "WithoutCancel(ctx), c.runtime(), c.sc, c.f)\n"}},
	{"a send that gives up leaves its value behind", "internal/channel/core.go",
		[]string{"	c.waiting[side].Withdraw(n)\n	if r", "	if r"}},
	{"a select that has sent keeps its value", "selectfew.go",
		[]string{"			c.core.ch.WithdrawCase(c.side(), n)\n", ""}},
	{"a result of Ordered that was given up is lost", "ordered.go",
		[]string{"		return v, false, by.cancelled().on(o.tasks.core.verb(receiving)) // t stays in turn\n",
			"		t = nil\n		return v, false, by.cancelled().on(o.tasks.core.verb(receiving))\n"}},
	{"Ordered.Go waits for ever on a closed queue", "ordered.go",
		[]string{"	for o.admitWaiting() { // no new callers of Go join those that wait\n	}\n", ""}},
	{"an aborted Ordered does not hand over what is in turn", "ordered.go",
		[]string{"		o.drop(gone)\n", "		_ = gone\n"}},
	{"a handler that panics loses the remaining values", "unwind.go",
		[]string{"		for more {\n			more = callRest(step)\n		}\n	}()\n	for more {\n		more = step()\n	}\n}\n",
			"	}()\n	for more {\n		more = step()\n	}\n}\n"}},
	{"a handler that panics loses the remaining values of a pool", "pool.go",
		[]string{"	callAll(func() bool {\n", "	(func(step func() bool) {\n		for step() {\n		}\n	})(func() bool {\n"}},
	{"a value is lent while another has it", "pool.go",
		[]string{"	p.idle = p.idle[:n-1]\n", ""}},
	{"a panic of a child on a goroutine is lost", "gochild.go",
		[]string{"		(*thunk)(&c.f).Panicked(v, debug.Stack())\n", "		(*thunk)(&c.f).Exited()\n", "	\"runtime/debug\"\n", ""}},
	{"a Goexit of a child on a goroutine is no end", "gochild.go",
		[]string{"		(*thunk)(&c.f).Exited()\n", ""}},
	{"a child on a goroutine that was in line begins as a fiber", "limiter.go",
		[]string{"		f.begin(here)\n", "		f.nursery.rt.s.Go(&f.task, here)\n"}},
}

func TestMutantsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the library once for each mutant")
	}
	suite := mutant.Suite{
		Parts: 14,
		Args: func(mutant.Mutant) []string {
			return []string{
				"-timeout=5m", "-failfast", "-run=^TestPrograms", "./internal/programs", "-programs.patience=5s",
			}
		},
		Found: regexp.MustCompile(`(?s)FAIL: TestPrograms(\w+).*?program (\d+) (.*?)\n`),
		Tell: func(groups []string) string {
			return groups[1] + " in program " + groups[2] + ": " + groups[3]
		},
		Ends: []string{"fatal error:", "panic:"},
	}
	for _, c := range changes {
		suite.Mutants = append(suite.Mutants, mutant.Mutant{Name: c.name, File: c.file, Edits: c.edits})
	}
	suite.Run(t)
}
