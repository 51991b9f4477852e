// Package chart draws a schedule as a sequence chart: actors from left to right, their steps from top to bottom, and
// arrows for what a reader of a table has to find out by counting, such as which send a receive has got its value from.
// It knows actors and steps, and not what they are: package sim draws fibers with it, and `coir test` goroutines.
//
// A chart is one HTML file that needs nothing else, because it is opened from the disk of a build machine or out of a
// mail.
package chart

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Chart is what is drawn.
type Chart struct {
	Title   string // what happened, in a line
	Text    string // who waits for what
	Verdict string // at the end of the drawing
	Notes   string // below it
	Replay  string // how to see it again
	Actors  string // what the actors are called: fibers

	Before int // steps that came before these, and are not known
	Of     []Actor
	Steps  []Step
	Starts []Start
	Arrows []Arrow
	Cycle  []int // actors each of which waits for the next, and the last for the first
	Twin   *Twin // a schedule that passed; nil: none is known
}

// Actor is a column.
type Actor struct {
	Name  string
	Title string // is shown when the mouse is on it
	Ended bool
	Why   string // if it waits at the end, or has failed: for what
	Since int    // the step since when; negative if that is not among Steps
}

// Step is a row.
type Step struct {
	Actor  int
	Number int
	Kind   Kind
	Text   string
	Title  string
	At     time.Duration
	Switch string // if the schedule departs here from the plain order: how
	Timed  bool   // it waits for a time
}

// Kind is what a step is about. It decides its color.
type Kind int

// Kinds of steps.
const (
	Plain   Kind = iota
	Channel      // it could be seen at the other side of a channel
	Lock
	Fault // it was not the program that did it
	Said  // no step: a text of the program, with the number 0
)

// Start says which step has started an actor.
type Start struct{ Step, Actor int }

// Arrow leads from a step to the one that it has let go on. It ends at the later of both: if that which goes on was
// first, at its column, in the row of the step that ends its wait.
type Arrow struct {
	From, To int
	Kind     Relation
	Text     string // of the object; shown at the arrow if it is a message
	Guess    bool
}

// Relation is what an arrow stands for.
type Relation int

// Kinds of arrows.
const (
	Message  Relation = iota // a value
	Closing                  // a close, and a receive that found it
	HandOver                 // an unlock, and the lock after it
	Wake                     // a signal, or the last Done
)

var relations = []struct{ class, text string }{
	{"msg", "value sent"}, {"shut", "channel closed"}, {"hand", "lock handed over"}, {"wake", "woken"},
}

// The measures of a chart, in pixels.
const (
	line   = 30
	top    = 16
	letter = 7.3 // of the text

	mostRows    = 2000
	mostColumns = 64
	foldFrom    = 200 // steps, from which on those that repeat are drawn once
)

const style = `
body{font:14px/1.4 system-ui,sans-serif;margin:20px;color:#222;background:#fff}
h1{font-size:15px;margin:0 0 4px;color:#b00020}
pre{margin:4px 0 12px;white-space:pre-wrap;font:12px/1.4 ui-monospace,monospace}
svg{font:12px ui-monospace,monospace;display:block}
.heads{position:sticky;top:0;background:#fffd;border-bottom:1px solid #eee;width:max-content}
.head{font-weight:bold;text-anchor:middle}
.stuck{fill:#b00020}
.life{stroke:#bbb}
.hang{stroke:#b00020;stroke-width:2;stroke-dasharray:5 4}
.step{fill:#888;text-anchor:end}
.op{text-anchor:middle}
.box{fill:#f4f4f4;stroke:#999}
.chan{fill:#e8f0fe;stroke:#4472c4}
.lock{fill:#eaf5ea;stroke:#4a8f4a}
.fault{fill:#fff3d6;stroke:#c77700}
.said{fill:#fffbe6;stroke:#b00020;stroke-dasharray:3 2}
.wait{fill:#fdecee;stroke:#b00020;stroke-width:2}
.again{fill:#888;font-style:italic;paint-order:stroke;stroke:#fff;stroke-width:3px}
.switch{stroke:#d97a00;stroke-dasharray:2 3}
.turn{fill:#b36200;font-size:10px}
.msg,.shut,.hand,.wake{stroke-width:1.5;fill:none}
.msg{stroke:#4472c4;marker-end:url(#msg)}
.shut{stroke:#8a4fbf;marker-end:url(#shut)}
.hand{stroke:#4a8f4a;marker-end:url(#hand)}
.wake{stroke:#b07d2b;marker-end:url(#wake)}
.guess{stroke-dasharray:3 3}
.name{fill:#2b4f91;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px}
.spawn{stroke:#aaa;stroke-dasharray:2 3;fill:none;marker-end:url(#spawn)}
.cycle{stroke:#b00020;stroke-width:1.5;fill:none;marker-end:url(#cycle)}
.end{stroke:#b00020;stroke-width:2}
.why{fill:#b00020;text-anchor:middle}
.verdict{fill:#b00020;font-weight:bold}
.note{color:#666;font-size:12px;margin:4px 0}
.key{display:inline-block;width:22px;border-top:2px solid;vertical-align:middle;margin:0 5px 0 12px}
`

// Columns chooses which of n actors are drawn, if there are too many: those that do something, and of them those first
// that wait at the end; then those that wait.
func Columns(n, most int, waits, acts func(i int) bool) (all []int) {
	for _, turn := range []struct{ waits, acts bool }{{true, true}, {false, true}, {true, false}} {
		for i := range n {
			if waits(i) == turn.waits && acts(i) == turn.acts && len(all) < most {
				all = append(all, i)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Write writes the chart as an HTML file.
func (c *Chart) Write(w io.Writer) error {
	d := drawing{Chart: c, w: bufio.NewWriter(w)}
	d.layOut()
	d.page()
	return d.w.Flush()
}

// drawing is a chart being drawn.
type drawing struct {
	*Chart
	w       *bufio.Writer
	rows    []Row
	rowOf   []int // of each step; -1: it is left out
	shown   []int // actors
	columns []int // the place of each actor; -1: none
	times   int   // where the times of steps end
	gutter  int   // and where the columns begin
	column  int   // width of a column
	box     int   // and of the boxes in it
	width   int
	bottom  int
}

// layOut decides what is drawn where.
func (d *drawing) layOut() {
	since := map[int]bool{}
	for i := range d.Of {
		if d.Of[i].Why != "" {
			since[d.Of[i].Since] = true
		}
	}
	pinned := func(i int) bool { return since[i] || d.Steps[i].Kind == Said || len(d.Steps) < foldFrom }
	d.rows, d.rowOf = Rows(d.Steps, pinned, mostRows)
	acts := make([]bool, len(d.Of))
	for i, s := range d.Steps {
		if d.rowOf[i] >= 0 {
			acts[s.Actor] = true
		}
	}
	waits := func(i int) bool { return d.Of[i].Why != "" }
	d.shown = Columns(len(d.Of), mostColumns, waits, func(i int) bool { return acts[i] })
	d.columns = make([]int, len(d.Of))
	for i := range d.columns {
		d.columns[i] = -1
	}
	widest := 0
	for at, i := range d.shown {
		d.columns[i] = at
		widest = max(widest, (len([]rune(d.Of[i].Name))+1)/2)
	}
	time, number := 0, 0
	for _, s := range d.Steps {
		widest = max(widest, len([]rune(s.Text)))
		time, number = max(time, len(clock(s.At))), max(number, len(fmt.Sprint(s.Number)))
	}
	least := 176
	if len(d.shown) > 8 {
		least = 120
	}
	most := 236
	if len(d.shown) <= 8 {
		most = 440
	}
	d.column = min(max(int(float64(widest)*letter)+52, least), most)
	d.box = d.column - 40
	d.times = max(int(float64(time)*letter)+6, 58)
	d.gutter = d.times + int(float64(number)*letter) + 24
	d.width = d.gutter + len(d.shown)*d.column
	d.bottom = top + len(d.rows)*line + line/2
}

// put writes markup. Arguments that are text are escaped, and have no control characters.
func (d *drawing) put(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = html.EscapeString(strings.Map(printable, s))
		}
	}
	fmt.Fprintf(d.w, format, args...)
}

func printable(c rune) rune {
	if c == '\n' || c == '\t' || unicode.IsPrint(c) {
		return c
	}
	return utf8.RuneError
}

// raw writes markup as it is. An error stays with the writer until Flush.
func (d *drawing) raw(markup string) { _, _ = d.w.WriteString(markup) }

func (d *drawing) x(actor int) int { return d.gutter + d.columns[actor]*d.column + d.column/2 }
func (d *drawing) at(row int) int  { return top + row*line + line/2 }
func (d *drawing) y(step int) int  { return d.at(d.rowOf[step]) }

// seen reports whether the step is in the picture.
func (d *drawing) seen(step int) bool {
	return step >= 0 && step < len(d.Steps) && d.rowOf[step] >= 0 && d.columns[d.Steps[step].Actor] >= 0
}

func (d *drawing) page() {
	d.put("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title><style>", d.Title)
	d.raw(style)
	d.put("</style></head>\n<body>\n<h1>%s</h1>\n<pre>%s</pre>\n", d.Title, d.Text)
	d.legend()
	if n := d.Before; n > 0 {
		d.put("<p class=\"note\">%d steps before these are left out.</p>\n", n)
	}
	if hidden := len(d.Of) - len(d.shown); hidden > 0 {
		d.put("<p class=\"note\">%d %s are left out.</p>\n", hidden, d.Actors)
	}
	width := max(d.width, 640)
	d.put("<div class=\"heads\"><svg width=\"%d\" height=\"40\">\n", width)
	d.heads()
	why := 0
	for _, i := range d.shown {
		if d.Of[i].Why != "" {
			why = max(why, len(d.wrap(d.Of[i].Why)))
		}
	}
	lanes := 0
	if len(d.Cycle) > 1 {
		lanes = 10*len(d.Cycle) + 6
	}
	height := d.bottom + lanes + 16*why + 44
	d.put("</svg></div>\n<svg width=\"%d\" height=\"%d\" role=\"img\">\n<defs>", width, height)
	for _, m := range []struct{ id, color string }{
		{"msg", "#4472c4"}, {"shut", "#8a4fbf"}, {"hand", "#4a8f4a"}, {"wake", "#b07d2b"}, {"spawn", "#aaa"},
		{"cycle", "#b00020"},
	} {
		d.put(`<marker id="%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" `+
			`markerUnits="userSpaceOnUse"><path d="M0 0L8 4L0 8z" fill="%s"/></marker>`, m.id, m.color)
	}
	d.raw("</defs>\n")
	d.lives()
	d.spawns()
	d.switches()
	d.arrows()
	d.boxes()
	d.verdict(lanes, height)
	d.raw("</svg>\n")
	if d.Notes != "" {
		d.put("<p>%s</p>\n", d.Notes)
	}
	if d.Replay != "" {
		d.put("<p>replay:</p>\n<pre>%s</pre>\n", d.Replay)
	}
	d.raw("</body></html>\n")
}

// legend says what the arrows are that are there.
func (d *drawing) legend() {
	var there [4]bool
	guess, departs := false, false
	for _, a := range d.Arrows {
		there[a.Kind] = true
		guess = guess || a.Guess
	}
	for _, s := range d.Steps {
		departs = departs || s.Switch != ""
	}
	if there == [4]bool{} && !departs {
		return
	}
	d.raw("<p class=\"note\">")
	colors := [...]string{"#4472c4", "#8a4fbf", "#4a8f4a", "#b07d2b"}
	for k, ok := range there {
		if ok {
			d.put("<span class=\"key\" style=\"color:%s\"></span>%s", colors[k], relations[k].text)
		}
	}
	if guess {
		d.raw("<span class=\"key\" style=\"border-top-style:dashed\"></span>the trace leaves that open")
	}
	if departs {
		d.raw("<span class=\"key\" style=\"color:#d97a00;border-top-style:dotted\"></span>" +
			"the schedule departs from the plain order")
	}
	d.raw("</p>\n")
}

// heads draws the names of the actors.
func (d *drawing) heads() {
	for _, i := range d.shown {
		class := "head"
		if d.Of[i].Why != "" {
			class = "head stuck"
		}
		x := d.x(i)
		lines := d.name(d.Of[i].Name)
		d.put("<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, 32-14*(len(lines)-1))
		for k, text := range lines {
			d.put("<tspan x=\"%d\" dy=\"%d\">%s</tspan>", x, 14*min(k, 1), text)
		}
		d.put("<title>%s %s</title></text>\n", d.Of[i].Name, d.Of[i].Title)
	}
}

// name is a name in at most two lines. Of one that is too long the middle is left out.
func (d *drawing) name(name string) []string {
	n := int(float64(d.column-8) / (letter + 0.3))
	letters := []rune(name)
	switch {
	case len(letters) <= n:
		return []string{name}
	case len(letters) <= 2*n:
		return []string{string(letters[:len(letters)-n]), string(letters[len(letters)-n:])}
	}
	return []string{string(letters[:n-1]) + "…", string(letters[len(letters)-n:])}
}

// lives draws a line for each actor, from its first step in the picture to its last, and on to the bottom for as long
// as it has not ended.
func (d *drawing) lives() {
	first, last := make([]int, len(d.Of)), make([]int, len(d.Of))
	for s := len(d.Steps) - 1; s >= 0; s-- {
		i := d.Steps[s].Actor
		if d.rowOf[s] < 0 {
			continue
		}
		first[i] = d.y(s)
		last[i] = max(last[i], d.y(s))
	}
	for _, i := range d.shown {
		a, x := &d.Of[i], d.x(i)
		from, to := first[i], last[i]
		if from == 0 || i == 0 || d.Before > 0 {
			from = 0
		}
		if !a.Ended {
			to = d.bottom
		}
		d.put("<line class=\"life\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x, from, x, to)
		if a.Why != "" {
			since := 0
			switch {
			case a.Since >= len(d.Steps):
				continue
			case a.Since >= 0 && d.rowOf[a.Since] >= 0:
				since = d.y(a.Since)
			}
			d.put("<line class=\"hang\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x, since, x, d.bottom)
		}
	}
}

// spawns draws which actor was started by which.
func (d *drawing) spawns() {
	for _, s := range d.Starts {
		if !d.seen(s.Step) || d.columns[s.Actor] < 0 {
			continue
		}
		x1, x2 := d.x(d.Steps[s.Step].Actor)+d.box/2, d.x(s.Actor)
		if x2 < x1 {
			x1 -= d.box
		}
		d.put("<path class=\"spawn\" d=\"M%d %dH%dV%d\"/>\n", x1, d.y(s.Step), x2, d.begins(s.Actor)-10)
	}
}

// begins is where the first step of an actor is drawn, or the bottom.
func (d *drawing) begins(actor int) int {
	for s := range d.Steps {
		if d.Steps[s].Actor == actor && d.rowOf[s] >= 0 {
			return d.y(s)
		}
	}
	return d.bottom
}

// switches draws a line below the steps at which the schedule departs from the plain order.
func (d *drawing) switches() {
	for s := range d.Steps {
		if how := d.Steps[s].Switch; how != "" && d.rowOf[s] >= 0 {
			y := d.y(s) + line/2
			d.put("<line class=\"switch\" x1=\"0\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>", y, d.width, y)
			d.put("<text class=\"turn\" x=\"0\" y=\"%d\">switch<title>%s</title></text>\n", y-3, how)
		}
	}
}

var classes = [...]string{Plain: "box", Channel: "chan", Lock: "lock", Fault: "fault", Said: "said"}

// boxes draws the steps.
func (d *drawing) boxes() {
	at := ""
	for k, r := range d.rows {
		s := &d.Steps[r.Step]
		y := d.at(k)
		if r.Left > 0 {
			d.put("<text class=\"again\" x=\"%d\" y=\"%d\">… %s steps are left out here</text>\n",
				d.gutter, y+4, Grouped(r.Left))
			continue
		}
		if d.columns[s.Actor] < 0 {
			continue
		}
		x := d.x(s.Actor)
		if r.Again > 0 {
			text := Grouped(r.Again) + " times more"
			if len(r.Steps) > 1 {
				text = fmt.Sprintf("these %d, %s", len(r.Steps), text)
			}
			d.put("<text class=\"op again\" x=\"%d\" y=\"%d\">%s<title>%s: until step %d</title></text>\n",
				x, y+4, d.cut(text, d.column), Texts(d.Steps, r.Steps), d.Steps[r.Last].Number)
			continue
		}
		class := classes[s.Kind]
		if a := &d.Of[s.Actor]; a.Why != "" && a.Since == r.Step {
			class = "wait"
		}
		if now := clock(s.At); now != at {
			at = now
			d.put("<text class=\"step\" x=\"%d\" y=\"%d\">%s</text>\n", d.times, y+4, at)
		}
		title := s.Text
		if s.Title != "" {
			title += "\n" + s.Title
		}
		if s.Number > 0 {
			d.put("<text class=\"step\" x=\"%d\" y=\"%d\">%d</text>\n", d.gutter-8, y+4, s.Number)
		}
		d.put("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"20\" rx=\"4\"/>\n", class, x-d.box/2, y-10, d.box)
		d.put("<text class=\"op\" x=\"%d\" y=\"%d\">%s<title>%s</title></text>\n", x, y+4, d.cut(s.Text, d.box), title)
	}
}

// arrows draws the arrows, those of steps that are drawn once, once.
func (d *drawing) arrows() {
	type drawn struct {
		from, to int
		kind     Relation
	}
	seen := map[drawn]bool{}
	for _, a := range d.Arrows {
		if !d.seen(a.From) || !d.seen(a.To) {
			continue
		}
		k := drawn{d.rowOf[a.From], d.rowOf[a.To], a.Kind}
		if seen[k] || k.from == k.to {
			continue
		}
		seen[k] = true
		d.arrow(a)
	}
}

// arrow draws an arrow: to the step, or if that waited, to its actor at the moment when the wait was ended.
func (d *drawing) arrow(a Arrow) {
	from, to := &d.Steps[a.From], &d.Steps[a.To]
	class := relations[a.Kind].class
	if a.Guess {
		class += " guess"
	}
	title := fmt.Sprintf("%s: %s, step %d to step %d", relations[a.Kind].text, a.Text, from.Number, to.Number)
	x1, y1, x2, y2 := d.x(from.Actor), d.y(a.From), d.x(to.Actor), max(d.y(a.From), d.y(a.To))
	half := d.box / 2
	if from.Actor == to.Actor { // round the outside
		d.put("<path class=\"%s\" d=\"M%d %dh12V%dh-10\"><title>%s</title></path>\n", class, x1+half, y1, y2, title)
		return
	}
	if x2 < x1 {
		half = -half
	}
	x1 += half
	if y2 > y1 {
		x2 -= half
	}
	d.put("<path class=\"%s\" d=\"M%d %dL%d %d\"><title>%s</title></path>\n", class, x1, y1, x2, y2, title)
	if a.Kind == Message {
		d.put("<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", (x1+x2)/2, (y1+y2)/2-4, d.cut(a.Text, d.column))
	}
}

// verdict draws the red line at the bottom, and below it the cycle and what each actor waits for.
func (d *drawing) verdict(lanes, height int) {
	d.put("<line class=\"end\" x1=\"0\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", d.bottom, d.width, d.bottom)
	for k, i := range d.Cycle {
		next := d.Cycle[(k+1)%len(d.Cycle)]
		if len(d.Cycle) < 2 || d.columns[i] < 0 || d.columns[next] < 0 {
			continue
		}
		d.put("<path class=\"cycle\" d=\"M%d %dV%dH%dV%d\"><title>%s waits for %s</title></path>\n",
			d.x(i)-6, d.bottom, d.bottom+10*(k+1), d.x(next)+6, d.bottom+2, d.Of[i].Name, d.Of[next].Name)
	}
	for _, i := range d.shown {
		if d.Of[i].Why == "" {
			continue
		}
		for k, text := range d.wrap(d.Of[i].Why) {
			d.put("<text class=\"why\" x=\"%d\" y=\"%d\">%s</text>\n", d.x(i), d.bottom+lanes+18+16*k, text)
		}
	}
	d.put("<text class=\"verdict\" x=\"4\" y=\"%d\">%s</text>\n", height-10, d.Verdict)
}

// cut shortens text to a width in pixels.
func (d *drawing) cut(text string, width int) string {
	n := int(float64(width-6) / letter)
	if r := []rune(text); len(r) > n { // the middle: what happened is at the beginning, and how it ended at the end
		tail := max(n-1, 0) / 2
		return string(r[:max(n-1-tail, 0)]) + "…" + string(r[len(r)-tail:])
	}
	return text
}

// wrap breaks text into lines as wide as a column.
func (d *drawing) wrap(text string) []string { return Wrap(text, int(float64(d.column-8)/letter)) }

// Wrap breaks text into lines of at most most letters, between words if possible.
func Wrap(text string, most int) (lines []string) {
	if utf8.RuneCountInString(text) <= most {
		return []string{text}
	}
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for letters := []rune(line); len(letters) > most; letters = []rune(line) { // a long path
			lines = append(lines, string(letters[:most]))
			line = string(letters[most:])
		}
	}
	return append(lines, line)
}

// Grouped returns a number with a comma before each three digits.
func Grouped(n int) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// Texts returns what some steps are, in a line.
func Texts(steps []Step, which []int) string {
	var texts []string
	for _, i := range which {
		texts = append(texts, steps[i].Text)
	}
	return strings.Join(texts, ", ")
}

// clock is a time. A read of a virtual clock may move it by a nanosecond, which is not shown.
func clock(t time.Duration) string { return t.Round(time.Microsecond).String() }
