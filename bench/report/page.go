package main

import (
	"fmt"
	"slices"
	"strings"
)

// The sentences of the page that do not depend on the figures. The sign ' stands for the sign of code.
var (
	busy = code(`**The machine was busy**, with a load average of %.1f: the spreads are wide, and a ratio of times that contain a wait
says little. 'make report' on a quiet machine measures again.
`)
	processorTime = `Times are processor time of the whole process, which does not count that others keep the machine busy.
`
	how = code(`
'make report' measures everything, which takes up to 40 minutes, and writes this page; 'make report ROUNDS=3' is a short
form, and 'make report FLAGS=-cpu' is one for a busy machine, by processor time. [benchmarks.json](benchmarks.json) has
the figures, from which 'make generate' writes this page and its drawings again. "At most" is the bound in
[bench/ratios/table.go](https://github.com/coir-go/coir/blob/main/bench/ratios/table.go): a ratio above it is in bold.
[design/0005](design/0005-what-limits-speed.md) and [0007](design/0007-what-limits-channels.md) say what limits those.
`)
	growing = `
## Growth

Each panel has the cost of one operation (upwards) beside n things of its kind (to the right); both axes are logarithmic.
A line that stays level costs the same at every size. The dashed lines use each of n things in turn, which no cache can
hold when n is large.
`
	oversubscribed = `
With more workers than processors, threads take turns, so the second drawing shows more growth than a larger machine
would. Its costs are processor time.
`
)

func code(text string) string { return strings.ReplaceAll(text, "'", "`") }

// page returns docs/benchmarks.md.
func (r *report) page() string {
	var b strings.Builder
	m := r.Machine
	lost, won := 0, 0
	for _, row := range r.Ratios {
		switch outcome(row) {
		case "loss":
			lost++
		case "win":
			won++
		}
	}
	fmt.Fprintf(&b, `# Benchmarks

Each ratio is the cost of coir divided by the cost of the other side: below 1, coir is cheaper. Both sides run in turns,
in short rounds in one process. The ratio is the median over the rounds, and the spread goes from the first to the third
quartile. Of %d comparisons coir loses %d and wins %d; in the others, 1 is within the spread. Those that coir loses come
first.

%s, %d processors, %s, %s.
Measured on %s at commit %s%s.
`, len(r.Ratios), lost, won, m.Processor, m.Processors, m.Platform, m.Go, m.Date, m.Commit, r.rounds())
	if slices.ContainsFunc(r.Ratios, func(row ratio) bool { return row.CPU }) {
		b.WriteString(processorTime)
	}
	if m.Load > float64(m.Processors) {
		fmt.Fprintf(&b, busy, m.Load)
	}
	b.WriteString(how)
	for _, g := range []string{"ratios", "latency", "memory", "simulation"} {
		r.ratioSection(&b, groups[slices.IndexFunc(groups, func(of group) bool { return of.name == g })])
	}
	if len(r.Growth) == 0 {
		return b.String()
	}
	b.WriteString(growing)
	for _, p := range plots {
		if panels := r.panels(p); len(panels) > 0 {
			fmt.Fprintf(&b, "\n![%s](benchmarks/%s.svg)\n", p.title, p.name)
		}
	}
	b.WriteString(oversubscribed)
	r.growthTable(&b)
	return b.String()
}

// rounds says how many rounds a comparison had.
func (r *report) rounds() string {
	most := 0
	for _, row := range r.Ratios {
		most = max(most, row.Rounds)
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(", in %d or fewer rounds a comparison", most)
}

func (r *report) ratioSection(b *strings.Builder, g group) {
	rows := r.group(g)
	if len(rows) == 0 {
		return
	}
	title, _, _ := strings.Cut(g.title, ":")
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n![%s](benchmarks/%s.svg)\n\n", title, wrapped(g.about), g.title, g.name)
	b.WriteString("| Name | What | Against | coir | other | ratio | spread | at most | allocations |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range rows {
		ratio, bound := figure(row.Ratio), "-"
		if row.Bound > 0 {
			bound = fmt.Sprint(row.Bound)
			if row.Ratio > row.Bound {
				ratio = "**" + ratio + "**"
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %.0f |\n", row.Name, row.What, row.Against,
			cost(row.Coir, row.Unit), cost(row.Other, row.Unit), ratio, spread(row), bound, row.Allocs)
	}
}

func (r *report) growthTable(b *strings.Builder) {
	b.WriteString("\n| Series | One operation | n: cost (growth) |\n|---|---|---|\n")
	for _, p := range plots {
		for _, panel := range r.panels(p) {
			for _, s := range panel.series {
				var sizes []string
				for _, at := range s {
					sizes = append(sizes, fmt.Sprintf("%s: %s (%s)", count(at.N), cost(at.Cost, at.Unit), figure(at.Growth)))
				}
				fmt.Fprintf(b, "| %s | %s | %s |\n", s[0].Series, s[0].What, strings.Join(sizes, "; "))
			}
		}
	}
}

// wrapped breaks a paragraph into lines of at most 120 columns.
func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if column > 0 && column+1+len(word) > 120 {
			b.WriteString("\n")
			column = 0
		} else if column > 0 {
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
