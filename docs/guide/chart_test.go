package guide_test

// The program that deadlock.png is a page of. To take the picture again, keep the page, and have the test of the page
// take pictures of what is in its directory:
//
//	mkdir DIR; go test ./docs/guide -run TestTheChart -artifacts -outputdir DIR
//	mv DIR/.../chart.html DIR/deadlock.html; COIR_PICTURES=DIR make page
//
// That leaves deadlock.png in DIR, 5000-light.png, which is page-5000.png here, and 300-twin.png, which is
// page-300.png.

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

func forgetsToClose(ctx context.Context, _ *sim.Sim) {
	jobs, done := coir.NewChan[int](0, coir.WithName("jobs")), coir.NewChan[int](0, coir.WithName("done"))
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		for i := range 2 {
			n.Go("worker", func(ctx context.Context) error {
				for job, err := range jobs.All(ctx) {
					if err != nil {
						return err
					}
					if err := done.Send(ctx, job); err != nil {
						return err
					}
				}
				return nil
			}, coir.WithIndex(i))
		}
		n.Go("feed", func(ctx context.Context) error {
			_, err := jobs.SendMany(ctx, []int{1, 2, 3})
			return err
		})
		for range 3 {
			if _, err := done.Recv(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// The picture shows the words that a reader gets: if this fails, draw it again.
func TestTheChart(t *testing.T) {
	f := sim.Explore(forgetsToClose).Failure
	if f == nil {
		t.Fatal("no deadlock was found")
	}
	w, err := os.Create(filepath.Join(t.ArtifactDir(), "chart.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WriteHTML(w); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	shown := `deadlock after 22 steps, 0 choices (schedule 1, strategy portfolio, seed 1): no fiber can run
  main      waits for its children to end: worker[0], worker[1], at PLACE (step 20, at 0s)
  worker[0] waits to receive from jobs, at PLACE (step 21, at 0s; spawned at PLACE)
  worker[1] waits to receive from jobs, at PLACE (step 22, at 0s; spawned at PLACE)
  no fiber is left to send to or close jobs: feed used it, and ended
`
	if !strings.HasPrefix(regexp.MustCompile(`\w+/\w+\.go:\d+`).ReplaceAllString(f.Error(), "PLACE"), shown) {
		t.Errorf("the picture does not show what is reported now:\n%v", f)
	}
}
