package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCountersDecideNothing checks that counters are read only where they are displayed. The beat of a worker is also
// read by the code that looks for a worker without progress.
//
// Spec: OB-09 (counters are diagnostic)
// Spec: OB-16 (each worker keeps a heartbeat)
// Spec: PK-44 (counters never decide a wait)
func TestCountersDecideNothing(t *testing.T) {
	for _, x := range []struct {
		dir  string
		read *regexp.Regexp // matches a read of a counter
		in   []string       // the files that may read it
	}{
		{"internal/sched", regexp.MustCompile(`\b(stats|c)\.\w+\.(Load|Swap|CompareAndSwap)\(`), []string{"stats.go"}},
		{"internal/sched", regexp.MustCompile(`tally\.\w+($|[^\w+]|\+[^+])`), []string{"stats.go"}},
		{"internal/sched", regexp.MustCompile(`\.beat($|[^\w+]|\+[^+])`), []string{"look.go", "monitor.go", "stand.go", "stats.go"}},
		{"internal/channel", regexp.MustCompile(`\.(Sent|Received|Dropped|Counts)($|[^\w+]|\+[^+])`), []string{"stats.go"}},
		{"internal/channel", regexp.MustCompile(`\.failed\b`), []string{"stats.go"}},
		{".", regexp.MustCompile(`\.s\.Stats\(`), []string{"stats.go"}},
	} {
		files, err := filepath.Glob(filepath.Join(root(t), x.dir, "*.go"))
		if err != nil || len(files) < 5 {
			t.Fatalf("%d files in %s: %v", len(files), x.dir, err)
		}
		shown := false
		for _, file := range files {
			name := filepath.Base(file)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				code, _, _ := strings.Cut(strings.TrimSpace(line), "//")
				switch {
				case !x.read.MatchString(code):
				case slices.Contains(x.in, name):
					shown = true
				default:
					t.Errorf("%s reads a counter, which only %v may: %s\nDecide by other state, or move the code there",
						path.Join(x.dir, name), x.in, code)
				}
			}
		}
		if !shown {
			t.Errorf("%s: nothing matches %v, so this test looks for nothing: correct the pattern above", x.dir, x.read)
		}
	}
}
