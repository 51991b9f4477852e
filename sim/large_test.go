package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coir-go/coir/internal/race"
)

// The reports of large failures, word for word: hundreds of steps, more than ten fibers, tickers and selects. A reader
// who does not know the program must find the cause on the first screen, so read the reports when they change.
func TestLargeReports(t *testing.T) {
	large(t, "reports of large failures")
	for _, c := range []struct {
		name string
		kind Kind
		fn   program
	}{
		{"jobs", KindDeadlock, jobService},
		{"hub", KindError, hubService},
		{"cache", KindError, cacheService},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := found(t, c.kind, c.fn)
			if f.Steps < 300 || len(f.fibers) < 10 {
				t.Errorf("%d steps of %d fibers", f.Steps, len(f.fibers))
			}
			got := f.Error()
			if again := found(t, c.kind, c.fn).Error(); again != got {
				t.Errorf("another report:\n%s\nwas:\n%s", again, got)
			}
			compareGolden(t, filepath.Join("testdata", "reports", c.name+".txt"), got)
		})
	}
}

// compareGolden compares a text with a file, or writes it with -update.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if race.Enabled {
		return // deferred calls have other lines there
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s has another report; write it anew with -update if this one is right:\n%s", path, got)
	}
}
