package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/coir-go/coir/cmd/coir/internal/overlay"
)

// coir debug replays a schedule under Delve. First it replays the schedule without Delve, to show the report and to
// find the step that completes the failure. Then Delve runs the same binary up to that step: in the reported schedule,
// the overlay calls the function coirTraced at each step, where Delve has a breakpoint.

const debugUsage = `coir debug runs one schedule again under the debugger Delve.

Usage:

	coir debug [flags] package -run test -replay token [-step n]

Copy the line after "replay:" in a report, and write debug instead of test. The debugger stops before the step that
completes the failure, or before step n of the report, in the goroutine that does the step; "up" goes to its code. To
stop at another step, quit the debugger and use -step.

The flags are those of coir test; see 'coir help test'. coir debug builds all code but the standard library with
-gcflags='all=-N -l', so that no variable is optimized out, unless -gcflags is given or the failure does not happen again with these flags. The command dlv must be installed:

	go install github.com/go-delve/delve/cmd/dlv@latest
`

// debugTest runs the command coir debug.
func debugTest(args []string, out, errs io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, debugUsage)
		return 0
	}
	dlv, lookErr := exec.LookPath("dlv")
	switch {
	case err != nil:
	case o.replay == "":
		err = errors.New("-replay is missing: copy the line after \"replay:\" in a report, and write debug instead of test")
	case lookErr != nil:
		err = errors.New("dlv is not installed; run go install github.com/go-delve/delve/cmd/dlv@latest")
	default:
		err = o.enter()
	}
	if err == nil {
		err = underDelve(o, dlv, out, errs)
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode() // Delve has printed why
	case err != nil:
		fmt.Fprintf(errs, "coir debug: %v\nRun 'coir help debug' for more.\n", err)
		return 2
	}
	return 0
}

// underDelve replays a schedule, and then runs it under Delve.
func underDelve(o *options, dlv string, out, errs io.Writer) error {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	tool, err := toolchain(ctx, errs)
	if err != nil {
		return err
	}
	if tool.overlay, err = overlay.Make(tool.root, tool.version, tool.cache); err != nil {
		return err
	}
	packages, err := tool.list(ctx, o, errs)
	if err != nil {
		return err
	}
	if len(packages) != 1 {
		return errors.New("name exactly one package")
	}
	dir, remove, err := makeTemp(tool.tempBase)
	if err != nil {
		return err
	}
	defer remove()
	tool.temp = dir
	p := packages[0]
	binary := filepath.Join(dir, p.binary())
	j, r, err := tool.replayed(ctx, o, p, binary, errs)
	if err != nil {
		return err
	}
	newWriter(out, j.options).printOnce(p, r) // the command to replay has the flags of this build
	if r.failure == nil {
		return errors.New("the schedule does not fail: has the code changed, or was it built with other flags?")
	}
	step := cmp.Or(o.step, r.endStep())
	fmt.Fprintf(out, "coir debug: stopping before step %d\n", step)
	script, record := filepath.Join(dir, "init"), filepath.Join(dir, "record")
	text := fmt.Sprintf("break coir runtime.coirTraced\ncondition coir step == %d && testing.coirShown\ncontinue\nstack\n", step)
	if err := os.WriteFile(script, []byte(text), 0o666); err != nil {
		return err
	}
	proc := j.process()
	if j.eachAlone() {
		proc = j.schedule(0)
	}
	proc.debug, proc.timeout, proc.pattern, proc.saved = true, 0, r.pattern(o.run), nil
	if r.onKernel != "" {
		proc.network = onKernelNet
	}
	stop()
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // Delve handles the signal
	c := exec.Command(dlv, append([]string{"exec", "--allow-non-terminal-interactive", "--init", script, "--wd", p.Dir,
		binary, "--"}, proc.args()...)...)
	c.Env = proc.env(tool, record)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, out, errs
	return c.Run()
}

// replayed builds the test and replays the schedule. It first builds without optimizations, because the debugger then
// shows more. But this may move a variable between stack and heap, which changes the steps. If the failure does not
// happen again, replayed builds with optimizations.
func (t *tool) replayed(
	ctx context.Context, o *options, p *pkg, binary string, errs io.Writer,
) (*job, *result, error) {
	var with []string
	if !o.atomicPoints() && !o.setsGcflags() {
		with = []string{"-gcflags=all=-N -l", "-gcflags=std="}
	}
	for {
		built := o.withBuild(with...)
		b := t.build(ctx, built, p, binary, errs)
		if b.why != "" || b.binary == "" {
			return nil, nil, fmt.Errorf("the tests of %s cannot be built\n%s", p.ImportPath, b.output)
		}
		tests, err := t.tests(ctx, o, p, binary)
		if err == nil && len(tests) != 1 {
			err = fmt.Errorf("-run selects %d tests, but must select one", len(tests))
		}
		if err != nil {
			return nil, nil, err
		}
		j := newJob(built, p, binary, tests[0], 0)
		r := t.runTest(ctx, j)
		if r == nil {
			return nil, nil, context.Cause(ctx)
		}
		if r.failure != nil || len(with) == 0 {
			return j, r, nil
		}
		with = nil
	}
}
