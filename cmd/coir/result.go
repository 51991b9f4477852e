package main

import (
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// result is the result of a test: how its schedules ended. Its record is the record of the schedule that it reports.
type result struct {
	record
	outcome coir.Verdict
	elapsed time.Duration
	output  string // the output of the process
	broken  string // the reason why coir could not run the test

	timedOut bool // whether it did not end within -timeout
	seeds    bool // whether it is a fuzz test, whose seeds were run once
	printed  bool // whether the user has seen the result
	failed   bool
	noSlow   bool // whether it has timers, but was not run as on a slow machine: each schedule had a process of its own
	busy     bool // whether a schedule was given up because all goroutines never waited at the same moment

	tally
	all      int      // the number of schedules with at most -bound preemptions, if all of them were run; or 0
	complete bool     // whether the strategy has run all its schedules
	decided  bool     // whether there is more than one schedule
	timeUp   bool     // whether the budget has ended the search
	trace    string   // a hash of what all schedules did
	never    []string // the conditions of explore.Sometimes that were never true
	onKernel string   // the reason why the test ran on the kernel's network; empty: it did not

	waiting *record // the last schedule that was not controlled
	once    *record // a failure that did not happen again, so that the test passes
	slow    *record // the failure on a slow machine of a test that passes

	recoveries *recoveries // nil: no handler panicked

	// How another process continues, or runs a failure again.
	next    int           // the schedule with which it continues; negative: each needs its own process
	used    time.Duration // the used part of the budget, without the schedule that was not controlled
	stopped bool          // whether the strategy could not continue in another process
	token   string        // the token of a failure that must be run again in another process
	found   int           // the number of the schedule in which token was found
}

// tally counts schedules; counts are summed over the processes and rounds of a test.
type tally struct {
	schedules    int // schedules, except those in racing
	racing       int // schedules in which timers fired early, as on a slow machine
	left         int // schedules that left goroutines behind
	skips        int // schedules in which the test called Skip
	outside      int // schedules in which something came from outside
	repeated     int // schedules that repeated an earlier one, shrank a failure, or looked for one to compare it with
	toShrink     int // of these, those that shrank a failure
	panicked     int // schedules in which a handler panicked, and net/http recovered that
	ofSaved      int // schedules of saved failures, as they were saved
	ofToken      int // schedules of explore.Replay, as they were found
	ofKept       int // other schedules that -for has kept, as they were kept
	uncontrolled int // schedules that were not controlled
}

// add adds the numbers of earlier schedules.
func (t *tally) add(earlier tally) {
	t.schedules += earlier.schedules
	t.racing += earlier.racing
	t.left += earlier.left
	t.skips += earlier.skips
	t.outside += earlier.outside
	t.repeated += earlier.repeated
	t.toShrink += earlier.toShrink
	t.panicked += earlier.panicked
	t.ofSaved += earlier.ofSaved
	t.ofToken += earlier.ofToken
	t.ofKept += earlier.ofKept
	t.uncontrolled += earlier.uncontrolled
}

// dependsOnOthers reports whether other tests that ran at the same time may have made a test fail. Such a failure needs
// no switch of goroutines, and is not about goroutines only, as a deadlock is.
func (r *result) dependsOnOthers() bool {
	return r.outcome == coir.VerdictDied || r.outcome == coir.VerdictFail && r.failure.switches == 0 &&
		(r.failure.kind == coir.KindFail || r.failure.kind == coir.KindPanic)
}

// died records how a process without a summary ended.
func (r *result) died(err error) {
	r.outcome = coir.VerdictDied
	var exit *exec.ExitError
	switch {
	case strings.Contains(r.output, "panic: test timed out"):
		r.broken, r.timedOut = "it did not end within -timeout", true
	case r.crash() == ours:
		r.broken = "internal error in coir test: report it with the output below and the output of `go version`"
	case r.crash() == theirs:
		r.broken = "the program crashed outside the explored schedule (a fatal error, or a panic that nothing recovered); " +
			"see the output below"
	case r.crash() == unclear:
		r.broken = "the Go runtime ended the process. If it does not do so under go test, this is a bug in coir test: " +
			"report it with the output below and the output of `go version`"
	case err == nil:
		r.broken = "the process ended with exit code 0 before the test did: does it call os.Exit?"
	case errors.As(err, &exit):
		r.broken = "the process ended before the test did: " + exit.String() + "; does it call os.Exit?"
	default:
		r.broken = err.Error()
	}
}

// The causes of a crash.
const (
	none   = iota // there was no crash
	ours          // a bug in coir test
	theirs        // a bug in the program
	unclear
)

// crash returns the cause of the crash of a process.
func (r *result) crash() int {
	if _, crash, ok := strings.Cut("\n"+r.output, "\nfatal error: "); ok {
		why, _, _ := strings.Cut(crash, "\n")
		begins := func(with string) bool { return strings.HasPrefix(why, with) }
		switch {
		case slices.ContainsFunc(fatalErrors, begins):
			return theirs
		case slices.ContainsFunc(exhausted, begins) && !ownCode(crash):
			return unclear
		}
		return ours
	}
	if _, crash, ok := strings.Cut("\n"+r.output, "\npanic: "); ok {
		if ownCode(crash) {
			return ours
		}
		return theirs
	}
	return none
}

// fatalErrors are the fatal errors with which the runtime and package sync report a bug in the program. exhausted are
// the errors that may have another cause, or can come from C code. A program without C code causes no others.
var (
	fatalErrors = []string{"sync: ", "concurrent map ", "small map with no empty slot", "stack overflow", "checkptr: "}
	exhausted   = []string{
		"all goroutines are asleep", "no goroutines", "out of memory", "runtime: out of memory", "thread exhaustion",
		"runtime: cannot allocate memory", "runtime: cannot map pages", "unexpected signal", "fault", "found bad pointer",
	}
)

// ownCode reports whether the innermost function of a crash belongs to coir. It ignores functions that are on the stack
// of every crash.
func ownCode(crash string) bool {
	call := regexp.MustCompile(`^[\w./-]+\.[\w.()*\[\]-]+\(`) // a line of a stack with the name of a function
	for line := range strings.Lines(crash) {
		begins := func(with string) bool { return strings.HasPrefix(line, with) }
		switch {
		case begins("runtime.coir"), begins("runtime.(*coir"), begins("testing.coir"), begins("testing.(*coir"):
			return true
		case begins("runtime."), begins("testing.tRunner"), begins("internal/synctest."):
		case call.MatchString(line):
			return false
		}
	}
	return false
}
