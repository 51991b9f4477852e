package guide_test

// The programs of reports.md that use coir, and what sim reports about them. The plain Go ones are in
// cmd/coir/testdata/three.

import (
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/sim"
)

var update = flag.Bool("update", false, "write the reports of sim into reports.md")

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

// reports.md shows what a reader gets. Lines and tokens may differ: go test ./docs/guide -run TestReports -update
// writes them too.
func TestReports(t *testing.T) {
	if race.Enabled {
		t.Skip("deferred calls have other lines in a race build")
	}
	var (
		changes = regexp.MustCompile(`\w+/\w+\.go:\d+|s3\.[\w-]+`)
		guide   = read(t, "reports.md")
		written = guide
	)
	for name, program := range map[string]func(context.Context, *sim.Sim){
		"transferBothWays": transferBothWays, "countToTwo": countToTwo, "answerOrQuit": answerOrQuit,
	} {
		f := sim.Explore(program).Failure
		if f == nil {
			t.Errorf("%s did not fail", name)
			continue
		}
		before, rest, found := strings.Cut(written, "<!-- sim: "+name+" -->\n```\n")
		shown, after, closed := strings.Cut(rest, "```\n")
		if !found || !closed {
			t.Errorf("reports.md has no report of %s", name)
			continue
		}
		got := strings.TrimSpace(f.Error()) + "\n"
		if !*update && changes.ReplaceAllString(got, "") != changes.ReplaceAllString(shown, "") {
			t.Errorf("reports.md shows for %s\n%s\nand it is\n%s", name, shown, got)
		}
		written = before + "<!-- sim: " + name + " -->\n```\n" + got + "```\n" + after
	}
	if *update && written != guide {
		if err := os.WriteFile("reports.md", []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
