package archtest

import (
	"path/filepath"
	"strings"
	"testing"
)

// What README and the documents count, and the ratios that they show, are what the command figures writes.
func TestFigures(t *testing.T) {
	dir := root(t)
	documents, err := Figures(dir)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range documents {
		got := text(t, filepath.Join(dir, filepath.FromSlash(file)))
		for i, line := range strings.Split(want, "\n") {
			if shown := strings.Split(got, "\n")[i]; shown != line {
				t.Errorf("%s:%d: run make generate: it says\n%s\nand should say\n%s", file, i+1, shown, line)
			}
		}
	}
}

func TestFiguresAreChecked(t *testing.T) {
	const table = "| What | Against | w | x | y | z |\n| a (`b-1`, `b-2`) | c | 7 | 7 | 7 | 7 |\n" +
		"| d (`e`) | f | 7 | 7 | - | 7 |"
	bounds := map[string]float64{"b-1": 0.5, "b-2": 0.7}
	ratios := []Ratio{
		{Name: "b-1", Ratio: 0.503, Allocs: 1, Commit: "one"}, {Name: "b-2", Ratio: 0.0031, Allocs: 2, Commit: "one"},
		{Name: "e", Ratio: 2, Commit: "two"}, {Name: "parked-memory", Ratio: 1.5, Commit: "two"},
	}
	if _, err := withRatios(table, ratios, bounds); err == nil || !strings.Contains(err.Error(), "3 of 4 ratios") {
		t.Errorf("a ratio that is not shown: %v", err)
	}
	got, err := withRatios(strings.Replace(table, "`e`", "`e`, `parked-memory`", 1), ratios, bounds)
	want := "| What | Against | w | x | y | z |\n| a (`b-1`, `b-2`) | c | **0.50**, 0.003 | 0.5, 0.7 | 2 | one |\n" +
		"| d (`e`, `parked-memory`) | f | 2.00, 1.50 | - | - | two |"
	if err != nil || got != want {
		t.Errorf("%s\n%v", got, err)
	}
	if got, err := withMemory("takes 9 times the\nmemory", ratios); err != nil || got != "takes 1.50 times the\nmemory" {
		t.Errorf("%s\n%v", got, err)
	}
	if _, err := withMemory("takes little memory", ratios); err == nil {
		t.Error("a README without the memory of a parked fiber is accepted")
	}
	_, err = withRatios(table, ratios[:2], bounds)
	if err == nil || !strings.Contains(err.Error(), "no ratio of | d (`e`)") {
		t.Errorf("a ratio that was not measured: %v", err)
	}
}

// The bounds are those of the literals and of the functions that make comparisons.
func TestBoundsAreRead(t *testing.T) {
	bounds, err := readBounds(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rendezvous", "sim-pingpong"} { // a literal, and one that simRow makes
		if bounds[name] == 0 {
			t.Errorf("%s has no bound", name)
		}
	}
	if bounds["spawn-join-wait"] != 0 {
		t.Error("spawn-join-wait has a bound, and the table has none")
	}
}
