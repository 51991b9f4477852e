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

func TestRatiosInSentences(t *testing.T) {
	m := measured{"README.md", `takes ([\d.]+) times`, "parked-memory"}
	ratios := map[string]float64{"parked-memory": 1.5}
	if got, err := withRatio("takes 9 times", m, ratios); err != nil || got != "takes 1.50 times" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := withRatio("takes little memory", m, ratios); err == nil {
		t.Error("a README without the sentence is accepted")
	}
	if _, err := withRatio("takes 9 times", m, nil); err == nil || !strings.Contains(err.Error(), "run make report") {
		t.Errorf("a ratio that was not measured: %v", err)
	}
}
