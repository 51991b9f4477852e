package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// Three types say what coir test does. The options are what the user gave. A job is what follows from the options for
// one test: what to explore, and how much. A process is one process of the test binary, which does all of the job, or a
// part of it. A runner (see runner.go) runs one process after another, and decides from their results what the next one
// does.

// job is a test to explore, and how to explore it. A job does not change; inRound returns a new one.
type job struct {
	options *options
	p       *pkg
	binary  string
	test    string
	n       int // its index among the tests of the run, for the name of its record

	schedules int           // all processes together run at most so many
	budget    time.Duration // the processes together take at most this time
	seed      uint64
	faults    int      // the faults that may happen, as bits; 0: none
	saved     []string // the tokens of earlier failures, which run first
	before    int      // the schedules that ran before those of the job, in earlier rounds or without faults
	kept      string   // the file where -for keeps the schedules of the test; empty: none
}

// newJob returns the job for a test of a package.
func newJob(o *options, p *pkg, binary, test string, n int) *job {
	j := &job{
		options: o, p: p, binary: binary, test: test, n: n, schedules: o.schedules, budget: o.limit(), seed: o.seed,
	}
	j.saved, _ = saved(p.Dir, test)
	j.faults, _ = faultBits(o.faults) // parse has checked them
	return j
}

// halves splits a job with faults: half of the schedules, and of the time, is without faults. That half comes first and
// does what a run without -faults does, so that a test that tolerates no faults does not hide its other bugs.
func (j *job) halves() (without, with *job) {
	a, b := *j, *j
	a.faults, b.saved = 0, nil
	a.schedules = (j.schedules + 1) / 2
	b.schedules = j.schedules - a.schedules
	if j.budget != math.MaxInt64 { // otherwise there is no limit
		a.budget = j.budget / 2
		b.budget = j.budget - a.budget
	}
	return &a, &b
}

// inRound returns the job for a round of -for, counted from 0. Each round has twice the budget of the round before, but
// at most the remaining time, and its own seed. dir is the directory of -keep.
func (j *job) inRound(round int, left time.Duration, dir string) *job {
	of := *j
	of.budget = max(min(j.budget<<min(round, 20), left), time.Millisecond)
	of.schedules = 1 << 30
	of.seed = j.seed + uint64(round)<<32
	of.kept = keptFile(dir, j.p.ImportPath, j.test)
	return &of
}

// eachAlone reports whether each schedule has a process of its own from the beginning: because of -fresh, or because
// the failure of the token was found that way.
func (j *job) eachAlone() bool {
	h, _ := readToken(j.options.replay)
	return j.options.fresh || h.Alone
}

// replays reports whether the job is to run the schedule of a token.
func (j *job) replays() bool { return j.options.replay != "" }

// inOrder reports whether another process cannot continue the job.
func (j *job) inOrder() bool {
	s, _ := strategyNamed(j.options.strategy) // parse has checked it
	return s.inOrder
}

// exploring is the value of only for a process that runs many schedules.
const exploring = -1

// process is one process of the test binary. Its values become the settings that the overlay reads, and the flags of
// package testing.
type process struct {
	job *job

	strategy  string
	schedules int
	budget    time.Duration
	replay    string // the token of the only schedule to run; empty: none
	only      int    // the number of the only schedule to run, or exploring
	from      int    // the number of the first schedule to run: other processes have run the earlier ones
	before    int    // the number of schedules that have run before
	patience  int    // see the constant patience
	network   string
	saved     []string // the tokens of the schedules to run first

	pattern string        // the value of -test.run
	timeout time.Duration // 0: none
	debug   bool          // it runs under a debugger
}

// process returns the process that does the whole job.
func (j *job) process() process {
	run, _ := parsePattern(j.options.run) // parse has checked it
	return process{
		job: j, strategy: j.options.strategy, schedules: j.schedules, budget: j.budget, replay: j.options.replay,
		only: exploring, before: j.before, patience: patience, network: j.options.network, saved: j.saved,
		pattern: run.narrowed(j.test), timeout: j.options.timeout,
	}
}

// schedule returns the process that runs only the schedule with a number, or the schedule of -replay.
func (j *job) schedule(n int) process {
	proc := j.process()
	proc.only = n
	return proc
}

// plain returns the process that runs only the plain schedule.
func (j *job) plain() process {
	proc := j.schedule(0)
	proc.strategy = plainOrder
	return proc
}

// savedAgain returns the process that runs the schedule of a token that was saved.
func (j *job) savedAgain(token string) process {
	proc := j.schedule(0)
	proc.replay = token
	return proc
}

// foundAgain returns the process that runs the schedule of a token again, after another process of the job has found
// it. The pattern selects the test, or the explored part of it.
func (j *job) foundAgain(token, pattern string) process {
	proc := j.process()
	proc.replay, proc.pattern = token, pattern
	return proc
}

// after returns the process that continues the job. sofar is the result of the processes before.
func (j *job) after(sofar *result) process {
	proc := j.process()
	proc.from = max(sofar.next, 0)
	proc.before = j.before + sofar.schedules + sofar.racing
	proc.schedules = j.schedules - sofar.schedules - sofar.racing
	proc.budget = j.budget - sofar.used
	proc.patience = sofar.patience()
	return proc
}

// exhausted reports whether nothing is left to do for the process.
func (proc *process) exhausted() bool { return proc.schedules <= 0 || proc.budget <= 0 }

// args returns the arguments of the process. They have the form -flag=value that go test uses, because a test may check
// its arguments.
func (proc *process) args() []string {
	o := proc.job.options
	args := []string{"-test.paniconexit0", "-test.timeout=" + proc.timeout.String(), "-test.run=" + proc.pattern}
	if o.skip != "" {
		args = append(args, "-test.skip="+o.skip)
	}
	if o.short {
		args = append(args, "-test.short=true")
	}
	if o.printsAll() {
		args = append(args, "-test.v=true")
	}
	if o.fullpath {
		args = append(args, "-test.fullpath=true")
	}
	return append(args, o.args...)
}

// settings returns the value of COIR_TEST, which coirParse in the overlay reads. base is the virtual time at which each
// schedule begins.
func (proc *process) settings(base time.Time) string {
	o := proc.job.options
	most, processor := o.shrinking()
	return fmt.Sprintf("strategy=%s,seed=%d,schedules=%d,budget=%s,bound=%d,racing=%v,replay=%s,network=%s,leaks=%v,"+
		"atomics=%v,only=%d,from=%d,base=%d,patience=%d,faults=%d,debug=%v,"+
		"shrink=%s,processor=%v",
		proc.strategy, proc.job.seed, proc.schedules, proc.budget, o.bound, o.racing, proc.replay, proc.network, o.leaks,
		o.atomicPoints(), proc.only, proc.from, base.Unix(), proc.patience, proc.job.faults, proc.debug,
		most, processor)
}

// env returns the environment of the process. record is the file to write to.
func (proc *process) env(t *tool, record string) []string {
	env := append(t.plainEnv(proc.job.p), "COIR_TEST="+proc.settings(t.base), "COIR_RECORD="+record,
		"COIR_KEPT="+proc.job.kept,
		setting(t.env, "GODEBUG", ",", "asynctimerchan=0"),
		setting(t.env, "GORACE", " ", "suppress_equal_stacks=0 suppress_equal_addresses=0 atexit_sleep_ms=0"))
	if s, _ := strategyNamed(proc.strategy); !s.inOrder {
		env = append(env, "COIR_FAILED="+strings.Join(proc.saved, " "))
	}
	return env
}

// plainEnv returns the environment of a process that runs a test as go test does.
func (t *tool) plainEnv(p *pkg) []string {
	return append(t.env[:len(t.env):len(t.env)], "PWD="+p.Dir, "GOTMPDIR="+t.temp)
}

// goesOn reports whether another process should run the remaining schedules of the job. sofar is the result so far.
func (j *job) goesOn(sofar *result) bool {
	if sofar.outcome == coir.VerdictMore {
		return true
	}
	return sofar.outcome == coir.VerdictUncontrolled &&
		(sofar.uncontrolled < fewUncontrolled || sofar.waited() < min(j.budget/2, mostWaited))
}
