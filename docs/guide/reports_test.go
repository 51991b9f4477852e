package guide_test

// The programs of reports.md that use coir, and what sim reports about them. The plain Go ones are in
// cmd/coir/testdata/three.

import (
	"context"
	"flag"
	"os/exec"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/document"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/sim"
)

var update = flag.Bool("update", false, "write the reports of sim into the documents")

type tally struct {
	lock *locks.Mutex
	n    int
}

func (t *tally) get(ctx context.Context) (int, error) {
	if err := t.lock.Lock(ctx); err != nil {
		return 0, err
	}
	defer t.lock.Unlock()
	return t.n, nil
}

func (t *tally) set(ctx context.Context, n int) error {
	if err := t.lock.Lock(ctx); err != nil {
		return err
	}
	defer t.lock.Unlock()
	t.n = n
	return nil
}

func countToTwo(ctx context.Context, s *sim.Sim) {
	t := &tally{lock: locks.NewMutex(coir.WithName("tally"))}
	inc := func(ctx context.Context) error {
		n, err := t.get(ctx)
		if err != nil {
			return err
		}
		return t.set(ctx, n+1)
	}
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("one", inc)
		n.Go("other", inc)
		return nil
	})
	if t.n != 2 {
		s.Errorf("counted to %d, %v", t.n, err)
	}
}

func answerOrQuit(ctx context.Context, _ *sim.Sim) {
	answer, quit := coir.NewChan[int](0, coir.WithName("answer")), coir.NewEvent(coir.WithName("quit"))
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("ask", func(ctx context.Context) error { return answer.Send(ctx, 42) })
		n.Go("stop", func(context.Context) error { quit.Set(); return nil })
		var v int
		_, err := coir.Select(ctx, answer.RecvCase(&v), quit.DoneCase())
		return err
	})
}

// reports.md shows what a reader gets, lines and tokens included, and each token replays what is shown.
func TestReports(t *testing.T) {
	if race.Enabled {
		t.Skip("deferred calls have other lines in a race build")
	}
	for name, program := range map[string]func(context.Context, *sim.Sim){
		"transferBothWays": transferBothWays, "countToTwo": countToTwo, "answerOrQuit": answerOrQuit,
	} {
		f := sim.Explore(program).Failure
		if f == nil {
			t.Errorf("%s did not fail", name)
			continue
		}
		shown(t, "reports.md", "sim: "+name, strings.TrimSpace(f.Error()))
		if again, err := sim.Replay(f.Token, program); err != nil || again == nil || again.Token != f.Token || again.Kind != f.Kind {
			t.Errorf("%s of %s is not replayed: %v", f.Token, name, err)
		}
	}
}

// The guide to locks shows what go test prints of testdata/bank, and the token in it replays that.
func TestReportsOfTheBank(t *testing.T) {
	if race.Enabled || testing.Short() {
		t.Skip("it builds a program, whose deferred calls have other lines in a race build")
	}
	report := goTestBank(t)
	shown(t, "locks.md", "go test bank", report)
	_, token, _ := strings.Cut(report, "-sim.replay=")
	_, want, _ := strings.Cut(report, "\n")
	want, _, _ = strings.Cut(want, "  diverges here") // which a replay does not look for
	if again := goTestBank(t, "-sim.replay="+token); !strings.Contains(again, "(replayed)") || !strings.Contains(again, want) {
		t.Errorf("the token %s does not replay\n%s\nbut\n%s", token, want, again)
	}
}

// TestREADMEQuotesCode: a block of Go code in README is code of a test, or a program, which TestProgramsInDocsBuild
// builds.
func TestREADMEQuotesCode(t *testing.T) {
	code := squeezed(read(t, "../../cmd/coir/testdata/pay/pay_test.go"))
	blocks := strings.Split(read(t, "../../README.md"), "```go\n")[1:]
	if len(blocks) < 2 {
		t.Errorf("README.md has %d blocks of code", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.HasPrefix(block, "package main\n") && !strings.Contains(code, squeezed(block)) {
			t.Errorf("README.md has code that is not run:\n%s", block)
		}
	}
}

// goTestBank returns the report of testdata/bank, as a user of a module called bank would see it.
func goTestBank(t *testing.T, args ...string) string {
	t.Helper()
	const dir = "./testdata/bank"
	out, err := exec.Command("go", append([]string{"test", dir, "-count=1", "-run", "^TestTransfer$"}, args...)...).CombinedOutput()
	_, report, found := strings.Cut(string(out), "deadlock after ")
	report, _, ended := strings.Cut("deadlock after "+report, "\nFAIL\n")
	if err == nil || !found || !ended {
		t.Fatalf("%v\n%s", err, out)
	}
	report = strings.ReplaceAll(report, "\n        ", "\n")
	return strings.ReplaceAll(report, "github.com/coir-go/coir/docs/guide/testdata/bank", "bank")
}

// shown checks that the block after a comment in a file is a report, or writes it there.
func shown(t *testing.T, file, comment, report string) {
	t.Helper()
	same, err := document.Keep(file, "<!-- "+comment+" -->\n```\n", "\n```\n", report, *update)
	if err != nil {
		t.Error(err)
	} else if !same {
		t.Errorf("run make generate: %s shows for %s another report than\n%s", file, comment, report)
	}
}
