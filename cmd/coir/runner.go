package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// runner runs the processes of a job, one after another.
type runner struct {
	tool *tool
	job  *job

	// The network of the next processes, and why it is the kernel's if the user did not ask for the kernel's. The network
	// changes at most once, when a schedule turns out to need the kernel's.
	network  string
	onKernel string
}

// runTest runs the job of one test. If ctx ends first, runTest returns nil.
func (t *tool) runTest(ctx context.Context, j *job) *result {
	x := &runner{tool: t, job: j, network: j.options.network}
	run := x.test
	switch {
	case isFuzz(j.test):
		run = x.seeds
	case j.faults != 0 && !j.replays():
		run = x.inHalves
	}
	if r := run(ctx); ctx.Err() == nil {
		return r
	}
	return nil
}

// inHalves explores a test without faults, and then, if it passes, with faults. What must happen in some schedule may
// happen only with faults.
func (x *runner) inHalves(ctx context.Context) *result {
	without, with := x.job.halves()
	x.job = without
	r := x.test(ctx)
	if ctx.Err() != nil || with.schedules == 0 || r.outcome != coir.VerdictPass && r.outcome != coir.VerdictNever {
		return r
	}
	with.before += r.schedules
	x.job = with
	all := x.test(ctx)
	if ctx.Err() != nil {
		return nil
	}
	all.mergeHalves(r)
	return all
}

// test explores a test. It begins with one process for all schedules. If the test depends on earlier runs, each
// schedule gets a process of its own.
func (x *runner) test(ctx context.Context) *result {
	var sofar *result // the result of earlier processes
	var once *record  // a failure that did not happen again
	if !x.job.eachAlone() {
		r := x.together(ctx)
		if ctx.Err() != nil || r.outcome != coir.VerdictStateful {
			return r
		}
		if r.failure != nil {
			once = &r.record
		}
		if r.uncontrolled > 0 {
			sofar = r
		}
	}
	if !x.job.replays() {
		if r := x.failsAgain(ctx); r != nil {
			return r
		}
	}
	return x.alone(ctx, sofar, once)
}

// together explores a test in few processes. The outcome is VerdictStateful if the result is not to be trusted, because
// schedules may depend on earlier ones.
func (x *runner) together(ctx context.Context) *result {
	r := x.inTurn(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if r.outcome == coir.VerdictAgain {
		again := x.run(ctx, x.job.foundAgain(r.token, r.pattern(x.job.options.run)))
		if again.failure != nil {
			again.failure.schedule = r.found
			again.schedules += r.schedules
			return again
		}
		r.outcome = coir.VerdictStateful // it failed because of something that earlier schedules left behind
	}
	if r.outcome == coir.VerdictDied && !r.timedOut { // some frameworks end the process on the second run
		r.outcome = coir.VerdictStateful
	}
	if r.failure != nil && !x.job.replays() && x.dependsOnEarlier(ctx, r.failure) {
		r.outcome = coir.VerdictStateful
	}
	if r.outcome == coir.VerdictSimulates {
		return x.plainly(ctx)
	}
	return r
}

// alone explores a test with a process for each schedule. sofar is the result of earlier processes, or nil, and once a
// failure that did not happen again, or nil.
func (x *runner) alone(ctx context.Context, sofar *result, once *record) *result {
	began := time.Now()
	first := sofar.from()
	timeUp := false
	for n := first; n < x.job.schedules && ctx.Err() == nil; n++ {
		if timeUp = n > first && time.Since(began)-sofar.waited() >= x.job.budget; timeUp {
			break
		}
		proc := x.job.schedule(n)
		proc.patience = sofar.patience()
		r := x.run(ctx, proc)
		if r.outcome == coir.VerdictEnd && sofar != nil {
			break
		}
		r.mergeProcesses(sofar)
		sofar = r
		if r.outcome != coir.VerdictPass && !x.job.goesOn(r) || x.job.replays() {
			break
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if sofar.outcome == coir.VerdictSimulates {
		return x.plainly(ctx)
	}
	sofar.elapsed = time.Since(began)
	sofar.stopped = !x.job.replays() && x.job.inOrder() // a process does not know the schedules of other processes
	sofar.once, sofar.timeUp = once, timeUp
	return sofar.settled()
}

// plainly runs a test as go test does, because the test itself explores schedules with package sim.
func (x *runner) plainly(ctx context.Context) *result {
	r := &result{record: record{tested: x.tested()}, outcome: coir.VerdictSimulates}
	err := x.runOnce(ctx, r)
	r.failed = err != nil
	return r
}

// runOnce runs a test in a process as go test does.
func (x *runner) runOnce(ctx context.Context, r *result) error {
	began := time.Now()
	proc := x.job.process()
	c := exec.CommandContext(ctx, x.job.binary, proc.args()...)
	c.Dir = x.job.p.Dir
	c.Env = x.tool.plainEnv(x.job.p)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := runCommand(c)
	r.elapsed, r.output = time.Since(began), out.String()
	return err
}

// dependsOnEarlier reports whether a test may have failed because of earlier schedules of its process. Either a second
// run with the same decisions ended differently, or the test failed in the plain order, but does not fail in the same
// way in a process that runs only the plain order.
func (x *runner) dependsOnEarlier(ctx context.Context, f *failure) bool {
	if f.outside > 0 || f.stable && f.switches > 0 {
		return false
	}
	if !f.stable {
		return true
	}
	if h, _ := readToken(f.token); h.Racing > 0 { // not the plain order
		return false
	}
	r := x.run(ctx, x.job.plain())
	return r.failure == nil || r.failure.kind != f.kind
}

// The lines around the output of the reported schedule.
const beginOutput, endOutput = "\x16coir begin\n", "\x16coir end\n"

// run runs a process that explores a test. If a schedule needs the kernel's network, run runs another process on that
// network, and so do later calls.
func (x *runner) run(ctx context.Context, proc process) *result {
	began := time.Now()
	proc.network = x.network
	r := &result{record: record{tested: x.tested()}}
	record := fmt.Sprint(x.job.binary, ".", x.job.n, ".record")
	// The process appends to its record. Another process of the test may have used the same file.
	if err := removeRecord(record); err != nil {
		r.died(err)
		return r
	}
	defer func() { _ = os.Remove(record) }()
	c := exec.CommandContext(ctx, x.job.binary, proc.args()...)
	c.Dir = x.job.p.Dir
	c.Env = proc.env(x.tool, record)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	stop := x.tool.shrinks.follow(record, r.tested, x.job.p.Dir, proc.before)
	err := runCommand(c)
	stop()
	text, readErr := os.ReadFile(record)
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		r.broken = readErr.Error()
	}
	if r.read(string(text)); r.failure != nil {
		r.failure.replayed = proc.replay != "" || proc.only != exploring
	}
	r.elapsed = time.Since(began)
	r.output = out.String()
	if at := strings.LastIndex(r.output, beginOutput); at >= 0 {
		r.shown, _, _ = strings.Cut(r.output[at+len(beginOutput):], endOutput)
	}
	r.findMessage()
	switch {
	case r.outcome == "":
		r.died(err)
	case r.failure != nil && r.failure.kind == coir.KindRecovered && proc.replay != "" && !x.job.replays():
		r.outcome, r.failure = coir.VerdictPass, nil
	case r.outcome == coir.VerdictSlow:
		slow := r.record
		r.outcome, r.failure, r.slow = coir.VerdictPass, nil, &slow
	case r.outcome == coir.VerdictKernel && x.network != onKernelNet && ctx.Err() == nil:
		x.network, x.onKernel = onKernelNet, r.onKernel
		return x.run(ctx, proc)
	}
	r.onKernel = x.onKernel
	return r
}

// tested returns what is known about the test before it runs.
func (x *runner) tested() *tested {
	p := x.job.p
	of := &tested{test: x.job.test, goroot: x.tool.root, path: p.ImportPath}
	if st, err := os.Stat(x.job.binary); err == nil {
		of.built = st.ModTime()
	}
	if p.Module != nil {
		of.modulePath, of.moduleDir = p.Module.Path, p.Module.Dir
	}
	return of
}
