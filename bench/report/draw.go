package main

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

// The drawings are SVG with a style of their own, so that they can be read on light and dark pages, in a browser and on
// a site that shows them as images. So the background is drawn, too.
const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; } .dim { fill: #59636e; } .right { text-anchor: end; }
.middle { text-anchor: middle; } .paper { fill: #fff; } .grid { stroke: #d9dce1; fill: none; }
.one { stroke: #59636e; } .win { fill: #2f6fde; } .loss { fill: #c4501b; } .even { fill: #8a919b; }
.spread { stroke: #1f2328; stroke-width: 1.5; } .coir { stroke: #2f6fde; } .go { stroke: #8a919b; }
.line { fill: none; stroke-width: 2; } .cold { stroke-dasharray: 5 4; } circle.coir { fill: #2f6fde; }
circle.go { fill: #8a919b; }
@media (prefers-color-scheme: dark) {
text { fill: #e2e5ea; } .dim { fill: #969da8; } .paper { fill: #16181c; } .grid { stroke: #363b44; }
.one { stroke: #969da8; } .win { fill: #5a92f0; } .loss { fill: #e8804d; } .spread { stroke: #e2e5ea; }
.coir { stroke: #5a92f0; } circle.coir { fill: #5a92f0; }
}
</style>
`

// open begins a drawing.
func open(title string, width, height int) *strings.Builder {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img">
<title>%[3]s</title>
%[4]s<rect class="paper" width="%[1]d" height="%[2]d" rx="8"/>
`, width, height, html.EscapeString(title), style)
	label(&b, 16, 26, "title", title)
	return &b
}

func label(b *strings.Builder, x, y float64, class, text string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>\n", x, y, class, html.EscapeString(text))
}

func stroke(b *strings.Builder, x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, class)
}

// A scale maps a range of numbers to a range of positions, by logarithms.
type scale struct{ min, max, from, to float64 }

func (s scale) at(v float64) float64 {
	v = math.Min(math.Max(v, s.min), s.max)
	return s.from + (s.to-s.from)*math.Log(v/s.min)/math.Log(s.max/s.min)
}

// bars draws ratios as bars that begin at 1: to the left where coir costs less, to the right where it costs more. The
// line across the end of a bar is the spread, from the first to the third quartile of the rounds.
func bars(title string, rows []ratio) string {
	const (
		width, top, row        = 860, 64, 22
		names, plotted, beside = 214, 640, 656
	)
	height := top + row*len(rows) + 16
	x := scale{min: 0.5, max: 2, from: names, to: plotted}
	for _, r := range rows {
		lo, hi := r.spreads()
		x.min, x.max = math.Min(x.min, lo), math.Max(x.max, hi)
	}
	x.min, x.max = math.Pow(2, math.Floor(math.Log2(x.min))), math.Pow(2, math.Ceil(math.Log2(x.max)))
	b := open(title, width, height)
	every := math.Ceil(math.Log2(x.max/x.min) / 10)
	for e := -math.Floor(-math.Log2(x.min)/every) * every; e <= math.Log2(x.max); e += every {
		v := math.Pow(2, e)
		class := "grid"
		if v == 1 {
			class = "one"
		}
		stroke(b, x.at(v), top-6, x.at(v), float64(height-12), class)
		label(b, x.at(v), top-12, "dim middle", times(v))
	}
	label(b, beside, top-12, "dim", "coir / other, and spread")
	for i, r := range rows {
		y := float64(top + row*i)
		from, to := math.Min(x.at(1), x.at(r.Ratio)), math.Max(x.at(1), x.at(r.Ratio))
		fmt.Fprintf(b, "<g><title>%s</title>\n", html.EscapeString(r.What+", against "+r.Against))
		label(b, names-10, y+15, "right", r.Name)
		fmt.Fprintf(b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" rx=\"2\" class=\"%s\"/>\n",
			from, y+4, math.Max(to-from, 1), outcome(r))
		shown := figure(r.Ratio)
		if r.Lo > 0 {
			stroke(b, x.at(r.Lo), y+11, x.at(r.Hi), y+11, "spread")
			shown += " (" + spread(r) + ")"
		}
		label(b, beside, y+15, "", shown)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func spread(r ratio) string {
	if r.Lo == 0 {
		return "-"
	}
	return figure(r.Lo) + " to " + figure(r.Hi)
}

// outcome returns whether coir wins, loses, or neither: then 1 is within the spread.
func outcome(r ratio) string {
	lo, hi := r.spreads()
	switch {
	case lo > 1:
		return "loss"
	case hi < 1:
		return "win"
	}
	return "even"
}

// times returns the text of a tick on an axis of ratios.
func times(v float64) string {
	if v < 1 {
		return fmt.Sprintf("1/%.0f", 1/v)
	}
	return fmt.Sprintf("%.0f", v)
}

// lines draws panels side by side, each with axes of its own.
func lines(title string, panels []panel) string {
	const (
		columns, width, top, panelWidth, panelHeight = 3, 860, 66, 280, 190
	)
	rows := (len(panels) + columns - 1) / columns
	b := open(title, width, top+rows*panelHeight+8)
	at := 16.0
	for _, key := range []struct {
		class, text string
		room        float64
	}{
		{"line coir", "coir", 70}, {"line coir cold", "coir, each of n in turn", 180}, {"line go", "Go", 60},
		{"line go cold", "Go, each of n in turn", 0},
	} {
		stroke(b, at, 46, at+24, 46, key.class)
		label(b, at+30, 50, "dim", key.text)
		at += 30 + key.room
	}
	for i, p := range panels {
		p.draw(b, float64(16+i%columns*panelWidth), float64(top+i/columns*panelHeight), panelWidth-14, panelHeight-16)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw draws a panel into a rectangle.
func (p panel) draw(b *strings.Builder, left, top, width, height float64) {
	x := scale{min: math.Inf(1), max: 0, from: left + 52, to: left + width - 18}
	y := scale{min: math.Inf(1), max: 0, from: top + height - 20, to: top + 26}
	sizes := make(map[int]bool)
	for _, s := range p.series {
		for _, at := range s {
			sizes[at.N] = true
			x.min, x.max = math.Min(x.min, float64(at.N)), math.Max(x.max, float64(at.N))
			y.min, y.max = math.Min(y.min, at.Cost), math.Max(y.max, at.Cost)
		}
	}
	y.min, y.max = math.Pow(10, math.Floor(math.Log10(y.min))), math.Pow(10, math.Floor(math.Log10(y.max))+1)
	x.max = math.Max(x.max, 2*x.min)
	label(b, left, top+14, "", p.title)
	for v := y.min; v <= y.max*1.01; v *= 10 {
		stroke(b, x.from, y.at(v), x.to, y.at(v), "grid")
		label(b, x.from-6, y.at(v)+4, "dim right", cost(v, p.unit))
	}
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		label(b, x.at(float64(n)), top+height-4, "dim middle", count(n))
	}
	for _, s := range p.series {
		class := "coir"
		if strings.HasSuffix(s[0].Series, "-go") {
			class = "go"
		}
		dashes := ""
		if strings.Contains(s[0].Series, "-cold") {
			dashes = " cold"
		}
		var path []string
		for _, at := range s {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(float64(at.N)), y.at(at.Cost)))
		}
		fmt.Fprintf(b, "<polyline points=\"%s\" class=\"line %s%s\"/>\n", strings.Join(path, " "), class, dashes)
		for _, at := range s {
			fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" class=\"%s\">", x.at(float64(at.N)), y.at(at.Cost), class)
			fmt.Fprintf(b, "<title>%s, n = %d: %s</title></circle>\n", html.EscapeString(at.Series), at.N, cost(at.Cost, at.Unit))
		}
	}
}

// figure returns a ratio with two decimals, or three where it is small.
func figure(v float64) string {
	if v < 0.095 {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// cost returns a cost with a unit that fits.
func cost(v float64, unit string) string {
	if v == 0 {
		return "-"
	}
	if unit == "us" {
		unit = "µs"
	}
	for _, up := range []struct{ from, to string }{{"ns", "µs"}, {"µs", "ms"}, {"ms", "s"}, {"B", "KB"}} {
		if unit == up.from && v >= 1000 {
			v, unit = v/1000, up.to
		}
	}
	digits := 0
	if v < 100 {
		digits = 1
	}
	if v < 1 {
		digits = 2
	}
	text := fmt.Sprintf("%.*f", digits, v)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text + " " + unit
}

// count returns a size.
func count(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return fmt.Sprint(n)
}
