package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/programs"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/snapshot"
)

// What snapshots of a program explain is true: they claim nothing with certainty about a healthy program, and explain a
// stopped one as the report of its schedule does. A simulation knows whether a program is healthy or stopped.

// TestHealthyProgramsAreNotExplained takes snapshots of programs that end well: the corrected programs of the corpus,
// random programs, and in a full run the tests of the examples. No snapshot may explain one with certainty. The test
// counts what is explained as likely, and a full run compares the table with that of the design:
//
//	go test -v ./sim -run TestHealthyProgramsAreNotExplained
//	go test ./sim -run TestHealthyProgramsAreNotExplained -update   writes it there
//
// Spec: OB-15 (the wait-for graph names cycles)
func TestHealthyProgramsAreNotExplained(t *testing.T) {
	if race.Enabled {
		t.Skip("the fibers of a program take turns in taking the snapshots, which the race detector does not see")
	}
	full := !testing.Short() && !slowBuild()
	schedules, seeds, most := 100, uint64(600), 250
	if !full {
		schedules, seeds = 10, 20
	}
	sum := newTally()
	explored := func(t *testing.T, seed uint64, n int, fn program, opts ...Option) {
		one := newTally()
		with := func(seed uint64) Strategy {
			return &looker{Strategy: Portfolio(Random(seed), PCT(seed, 3)), tally: one, seed: seed, most: n}
		}
		opts = append(slices.Clone(opts), WithStrategy(with), WithSeed(seed), WithSchedules(n+1))
		if res := Explore(fn, opts...); res.Failure != nil {
			t.Fatal(res.Failure)
		}
		for _, text := range one.Wrong {
			t.Errorf("seed %d: told as certain of a program that went on: %s", seed, text)
		}
		sum.add(one)
	}
	for _, b := range corpus {
		t.Run(b.name, func(t *testing.T) { explored(t, 1, schedules, b.make(true), b.opts...) })
	}
	t.Run("random programs", func(t *testing.T) {
		for seed := range seeds {
			p := programs.Generate(seed+1, true)
			for _, mode := range []ClockMode{ClockIdle, ClockRacing} {
				explored(t, seed+1, 4, func(ctx context.Context, s *Sim) {
					programs.Exec(ctx, p, programs.Env{Now: s.Now, Failf: s.Errorf, Idle: mode == ClockIdle, Run: coir.Run})
				}, WithClock(mode))
			}
		}
	})
	if full {
		t.Run("examples", func(t *testing.T) {
			all := runExamples(t, most)
			for _, text := range all.Wrong {
				t.Error(text)
			}
			sum.add(all)
		})
	}
	t.Logf("%d schedules, %d pairs of snapshots\n%s", sum.Schedules, sum.Pairs, sum.table())
	for _, kind := range sum.kinds() {
		t.Logf("%s: %s", kind, sum.Says[kind])
	}
	if full && !t.Failed() {
		inDocument(t, "../docs/design/0019-snapshots.md", "explained", fmt.Sprintf(
			"%d schedules, %d pairs of snapshots, none explained falsely with certainty:\n\n%s", sum.Schedules, sum.Pairs, sum.table()))
	}
}

// table returns the counts as a table of Markdown.
func (t *tally) table() string {
	var b strings.Builder
	b.WriteString("| told | as taken | one moment, aged | two moments, aged |\n|---|--:|--:|--:|\n")
	for _, kind := range t.kinds() {
		if n := t.Certain[kind]; n > 0 {
			fmt.Fprintf(&b, "| %s, certain, and cancelled later | %d in all | | |\n", kind, n)
		}
		for _, rows := range []struct {
			name  snapshot.Problem
			count map[snapshot.Problem][forms]int
		}{{kind, t.False}, {kind + ", cancelled later", t.Right}} {
			if n := rows.count[kind]; n != [forms]int{} {
				fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", rows.name, n[asTaken], n[oneMoment], n[twoMoments])
			}
		}
	}
	return b.String()
}

// runExamples runs the tests of the examples, with snapshots in up to most schedules of each simulation, and returns
// what was explained. Their programs are not changed: an overlay of the go command adds a looker to package sim.
func runExamples(t *testing.T, most int) *tally {
	t.Helper()
	dir := t.TempDir()
	const here, there = "w.strategy = set.strategy(set.seed)\n", "w.strategy = looking(set.strategy(set.seed), set.seed)\n"
	text, err := os.ReadFile("sim.go")
	if err != nil || strings.Count(string(text), here) != 1 {
		t.Fatalf("sim.go does not say once: %s%v", here, err)
	}
	abs := func(path string) string {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		abs("sim.go"):     write("sim.go", []byte(strings.Replace(string(text), here, there, 1))),
		abs("looker.go"):  abs("looker_test.go"),
		abs("looking.go"): abs("testdata/explained/looking.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob("../examples/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-short", "-count=1", "-overlay", write("overlay.json", overlay)}
	for _, path := range tests {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "sim.Test(") {
			args = append(args, "./"+filepath.Dir(path))
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "COIR_LOOKS="+dir, fmt.Sprint("COIR_LOOKS_MOST=", most))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sum := newTally()
	files, err := filepath.Glob(filepath.Join(dir, "*.test-*.json"))
	if err != nil || len(files) < 10 {
		t.Fatalf("only %d simulations have counted: %v", len(files), err)
	}
	for _, path := range files {
		one := newTally()
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, one)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d schedules, %d pairs\n%s", filepath.Base(path), one.Schedules, one.Pairs, one.table())
		sum.add(one)
	}
	return sum
}
