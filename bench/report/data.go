package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coir-go/coir/bench/internal/timing"
)

// A report is everything that was measured, in the order in which it was measured.
type report struct {
	Machine timing.Machine
	Ratios  []ratio
	Growth  []point
}

// A ratio is a line of ratios -json. A ratio measured before this command existed has no spread, costs and rounds.
type ratio struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Against string  `json:"against"`
	Unit    string  `json:"unit"`
	Coir    float64 `json:"coir,omitempty"`
	Other   float64 `json:"other,omitempty"`
	Ratio   float64 `json:"ratio"`
	Lo      float64 `json:"lo,omitempty"`
	Hi      float64 `json:"hi,omitempty"`
	Allocs  float64 `json:"allocs"`
	Bound   float64 `json:"bound,omitempty"`
	Rounds  int     `json:"rounds,omitempty"`
	CPU     bool    `json:"cpu,omitempty"`
}

// spreads returns the spread, or the ratio twice if there is none.
func (r ratio) spreads() (lo, hi float64) {
	if r.Lo == 0 {
		return r.Ratio, r.Ratio
	}
	return r.Lo, r.Hi
}

// A point is a line of growth -json: a series at one size.
type point struct {
	Series string  `json:"series"`
	What   string  `json:"what"`
	Unit   string  `json:"unit"`
	N      int     `json:"n"`
	Cost   float64 `json:"cost"`
	Growth float64 `json:"growth"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	Rounds int     `json:"rounds"`
	CPU    bool    `json:"cpu,omitempty"`
}

// collect reads lines of both kinds. A later line replaces an earlier one with the same name and size.
func collect(files []string) (*report, error) {
	var r report
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for in := json.NewDecoder(bytes.NewReader(text)); ; {
			var raw json.RawMessage
			if err := in.Decode(&raw); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			var v ratio
			var at point
			if err := errors.Join(json.Unmarshal(raw, &v), json.Unmarshal(raw, &at)); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			switch {
			case v.Name != "" && v.Ratio > 0:
				r.Ratios = put(r.Ratios, v, func(old ratio) bool { return old.Name == v.Name })
			case at.Series != "" && at.Cost > 0:
				r.Growth = put(r.Growth, at, func(old point) bool { return old.Series == at.Series && old.N == at.N })
			default:
				return nil, fmt.Errorf("%s: a line is neither a ratio nor a size of a series, or has no figure: %s", file, raw)
			}
		}
	}
	if len(r.Ratios) == 0 || len(r.Growth) == 0 {
		return nil, fmt.Errorf("%d ratios and %d sizes were measured; both are needed", len(r.Ratios), len(r.Growth))
	}
	return &r, nil
}

// put appends v, or replaces the element for which same returns true.
func put[V any](all []V, v V, same func(V) bool) []V {
	if i := slices.IndexFunc(all, same); i >= 0 {
		all[i] = v
		return all
	}
	return append(all, v)
}

// store writes the report with one figure on each line, so that a changed figure is one changed line.
func (r *report) store(file string) error {
	var b strings.Builder
	text, err := json.Marshal(r.Machine)
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "{\"machine\": %s,\n\"ratios\": [\n", text)
	for i, v := range r.Ratios {
		for _, f := range []*float64{&v.Coir, &v.Other, &v.Ratio, &v.Lo, &v.Hi, &v.Allocs} {
			*f = timing.Short(*f)
		}
		if err := line(&b, i, v); err != nil {
			return err
		}
	}
	b.WriteString("\n],\n\"growth\": [\n")
	for i, v := range r.Growth {
		for _, f := range []*float64{&v.Cost, &v.Growth, &v.Lo, &v.Hi} {
			*f = timing.Short(*f)
		}
		if err := line(&b, i, v); err != nil {
			return err
		}
	}
	b.WriteString("\n]}\n")
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func line(b *strings.Builder, i int, v any) error {
	if i > 0 {
		b.WriteString(",\n")
	}
	text, err := json.Marshal(v)
	b.Write(text)
	return err
}

func load(file string) (*report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &r, nil
}

// A group is the ratios of one drawing.
type group struct {
	name, title, about string
	has                func(ratio) bool
}

// groups lists the drawings of ratios. A ratio belongs to the first group that matches it.
var groups = []group{
	{
		"simulation", "Simulation: the cost of sim",
		"A program under `sim`, beside the same program on a runtime with one worker. These are the price of control, " +
			"so all are above 1.",
		func(r ratio) bool { return strings.HasPrefix(r.Name, "sim-") },
	},
	{
		"memory", "Memory: coir's bytes divided by the other side's",
		"What one parked fiber, or one idle connection, holds.",
		func(r ratio) bool { return r.Unit == "B" },
	},
	{
		"latency", "Latency under load: coir's delay divided by the other side's",
		"All processors are busy, and something has to be woken. The quantiles are in the names.",
		func(r ratio) bool { return strings.Contains(r.Name, "-p50") || strings.Contains(r.Name, "-p99") },
	},
	{
		"ratios", "Cost: coir's time divided by the other side's",
		"The time of one operation. Names with `-limit` compare with one bare swap of `iter.Pull`, on which every switch " +
			"of coir is built.",
		func(ratio) bool { return true },
	},
}

// group returns the ratios of a group. The ratios that coir loses most clearly come first.
func (r *report) group(g group) []ratio {
	var rows []ratio
	for _, row := range r.Ratios {
		i := slices.IndexFunc(groups, func(g group) bool { return g.has(row) })
		if groups[i].name == g.name {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b ratio) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return rows
}

// A plot is a drawing of series: one panel for each thing that grows.
type plot struct {
	name, title string
	has         func(series string) bool
}

var plots = []plot{
	{"growth", "How costs grow with the number of things", func(s string) bool { return !workers(s) }},
	{"workers", "How costs grow with the number of workers", workers},
}

func workers(series string) bool { return strings.HasPrefix(series, "workers-") }

// A panel is the series of one thing: the plain series, the series of Go's own, and the series that use each of n in
// turn.
type panel struct {
	title  string
	unit   string
	series [][]point
}

// panels returns the panels of a plot, in the order in which they were measured.
func (r *report) panels(p plot) []panel {
	var all []panel
	for _, at := range r.Growth {
		if !p.has(at.Series) {
			continue
		}
		title := thing(at.Series)
		i := slices.IndexFunc(all, func(p panel) bool { return p.title == title })
		if i < 0 {
			i, all = len(all), append(all, panel{title: title, unit: at.Unit})
		}
		s := &all[i].series
		j := slices.IndexFunc(*s, func(s []point) bool { return s[0].Series == at.Series })
		if j < 0 {
			j, *s = len(*s), append(*s, nil)
		}
		(*s)[j] = append((*s)[j], at)
	}
	return all
}

// thing returns the name of a series without the parts that say how it is used, and on whose channels.
func thing(series string) string {
	return strings.TrimSuffix(strings.TrimSuffix(series, "-go"), "-cold")
}
