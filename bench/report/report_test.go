package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func sample(t *testing.T) *report {
	t.Helper()
	r, err := load("testdata/benchmarks.json")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The page and the drawings in docs match the figures in docs.
func TestTheReportIsDrawn(t *testing.T) {
	const docs = "../../docs"
	r, err := load(filepath.Join(docs, "benchmarks.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range r.files() {
		got, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(name)))
		if err != nil || string(got) != want {
			t.Errorf("docs/%s is not drawn from docs/benchmarks.json: run make generate (%v)", name, err)
		}
	}
}

// The rows that coir loses come first. If 1 is within the spread, coir neither wins nor loses.
func TestLossesComeFirst(t *testing.T) {
	r := sample(t)
	var names, outcomes []string
	for _, row := range r.group(groups[len(groups)-1]) {
		names, outcomes = append(names, row.Name), append(outcomes, outcome(row))
	}
	if !slices.Equal(names, []string{"loses", "even", "wins"}) || !slices.Equal(outcomes, []string{"loss", "even", "win"}) {
		t.Errorf("%v, %v", names, outcomes)
	}
}

// Each ratio is in one group.
func TestEachRatioIsDrawnOnce(t *testing.T) {
	r := sample(t)
	drawn := 0
	for _, g := range groups {
		drawn += len(r.group(g))
	}
	if drawn != len(r.Ratios) {
		t.Errorf("%d of %d ratios are drawn", drawn, len(r.Ratios))
	}
}

func TestThePage(t *testing.T) {
	page := sample(t).page()
	for _, want := range []string{
		"Of 6 comparisons coir loses 3 and wins 2;", "Example <1>, 2 processors, linux/amd64, go1.26.8",
		"Measured on 2026-11-18 at commit abc1234, in 30 or fewer rounds a comparison", "Times are processor time of the whole process",
		"**The machine was busy**, with a load average of 9.5",
		"| loses | a third | chan | 300 ns | 100 ns | **3.00** | 2.90 to 3.20 | 2 | 0 |",
		"| even | another | chan | 1.5 µs | 1.5 µs | 1.00 | 0.90 to 1.10 | - | 1 |",
		"| channel-op-cold-go | a send, each in turn | 1: 50 ns (1.00); 1M: 1.2 µs (24.00) |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q:\n%s", want, page)
		}
	}
}

// The drawings are well-formed, each text is inside its drawing, and a bar begins at 1.
func TestTheDrawings(t *testing.T) {
	r := sample(t)
	files := r.files()
	if len(files) != 1+len(groups)+len(plots) {
		t.Errorf("%d files", len(files))
	}
	for name, text := range files {
		if filepath.Ext(name) != ".svg" {
			continue
		}
		width, height := 0.0, 0.0
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			number := func(key string) float64 {
				i := slices.IndexFunc(element.Attr, func(a xml.Attr) bool { return a.Name.Local == key })
				if i < 0 {
					return 0
				}
				v, err := strconv.ParseFloat(element.Attr[i].Value, 64)
				if err != nil {
					t.Errorf("%s: %s of %s is %q", name, key, element.Name.Local, element.Attr[i].Value)
				}
				return v
			}
			if element.Name.Local == "svg" {
				width, height = number("width"), number("height")
			}
			for _, key := range []string{"x", "x1", "x2", "cx"} {
				if v := number(key); v < 0 || v > width {
					t.Errorf("%s: %s of %s is %g, of a width of %g", name, key, element.Name.Local, v, width)
				}
			}
			for _, key := range []string{"y", "y1", "y2", "cy"} {
				if v := number(key); v < 0 || v > height {
					t.Errorf("%s: %s of %s is %g, of a height of %g", name, key, element.Name.Local, v, height)
				}
			}
		}
	}
	x := scale{min: 0.25, max: 4, from: 100, to: 500}
	if x.at(1) != 300 || x.at(0.01) != 100 || x.at(100) != 500 {
		t.Errorf("1 is at %g, and what is outside at %g and %g", x.at(1), x.at(0.01), x.at(100))
	}
}

// A later line replaces an earlier one, so that one comparison can be measured again. A stored report can be read
// again.
func TestLinesAreCollected(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.jsonl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"name":"a","ratio":2,"rounds":3}{"series":"s","n":1,"cost":4}{"name":"a","ratio":3.00001}{"series":"s","n":9,"cost":5}`)
	r, err := collect([]string{file})
	if err != nil || len(r.Ratios) != 1 || r.Ratios[0].Ratio != 3.00001 || len(r.Growth) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	stored := filepath.Join(dir, "benchmarks.json")
	if err := r.store(stored); err != nil {
		t.Fatal(err)
	}
	if again, err := load(stored); err != nil || again.Ratios[0].Ratio != 3 || again.Growth[1].N != 9 {
		t.Errorf("%+v, %v", again, err)
	}
	for _, bad := range []string{`{"name":"a","ratio":2}`, `{"name":"a"}`, `{`, `{"name":1}`} {
		write(bad)
		if r, err := collect([]string{file}); err == nil {
			t.Errorf("%s is accepted: %+v", bad, r)
		}
	}
}

// A ratio without a spread is drawn as a bar alone, and a report without growth has no such section.
func TestWithoutSpread(t *testing.T) {
	r := &report{Ratios: []ratio{{Name: "old", What: "a thing", Against: "chan", Unit: "ns", Ratio: 0.5, Bound: 0.4}}}
	page := r.page()
	if !strings.Contains(page, "| old | a thing | chan | - | - | **0.50** | - | 0.4 | 0 |") || strings.Contains(page, "Growth") ||
		strings.Contains(page, "rounds a comparison") {
		t.Error(page)
	}
	if drawn := r.files()["benchmarks/ratios.svg"]; strings.Contains(drawn, `class="spread"`) || !strings.Contains(drawn, `class="win"`) {
		t.Error(drawn)
	}
}

func TestCosts(t *testing.T) {
	for _, test := range []struct {
		v          float64
		unit, want string
	}{
		{0.25, "ns", "0.25 ns"}, {10, "ns", "10 ns"}, {1200, "ns", "1.2 µs"}, {2.5e6, "ns", "2.5 ms"}, {1e3, "ns", "1 µs"},
		{31.25, "us", "31.2 µs"}, {2600, "B", "2.6 KB"}, {100, "ns", "100 ns"}, {3, "ms", "3 ms"},
	} {
		if got := cost(test.v, test.unit); got != test.want {
			t.Errorf("%g %s is %s, not %s", test.v, test.unit, got, test.want)
		}
	}
}
