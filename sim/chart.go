package sim

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/coir-go/coir"
)

// The chart is the table of the report, drawn: fibers from left to right, operations from top to bottom, and arrows for what a reader of
// the table has to find out by counting: which send a receive has got its value from, and who was started by whom. It is one file
// that needs nothing else, because it is opened from the disk of a build machine or out of a mail.

// message is a value that went from a send to a receive, as steps of the trace.
type message struct {
	send, recv int
	sure       bool
}

// flow is what is known of a channel while its messages are counted.
type flow struct {
	sent, waiting    []int // sends that nobody has received yet; receives that wait
	closed, unlikely bool
}

// messages pairs sends with receives, in the order of each channel. The trace tells what was begun, not how it ended, so this is sure only
// as long as nothing can fail or stay unseen: a select, which does not say what it did, a try, a cancel. A receive whose fiber has
// gone on before there was a value has failed. If the beginning of the trace is not there, neither is what was sent in it: then there is no
// telling.
func (r *report) messages() (all []message) {
	if r.before > 0 {
		return nil
	}
	next := make([]int, len(r.trace)) // the step at which the fiber has come back
	last := make([]int, len(r.fibers))
	for i, c := range r.fibers {
		if last[i] = len(r.trace); c.waits {
			last[i] = never
		}
	}
	for s := len(r.trace) - 1; s >= 0; s-- {
		i := r.trace[s].fiber
		next[s], last[i] = last[i], s
	}
	sure := true
	flows := map[int32]*flow{}
	for s, e := range r.trace {
		switch e.op.Kind {
		case coir.OpSelect, coir.OpTrySelect, coir.OpCancel:
			sure = false
		}
		if !onChannel(e.op.Kind) {
			continue
		}
		x := flows[e.object]
		if x == nil {
			x = new(flow)
			flows[e.object] = x
		}
		for len(x.waiting) > 0 && next[x.waiting[0]] <= s {
			x.waiting = x.waiting[1:]
		}
		switch k := e.op.Kind; k {
		case coir.OpSend, coir.OpTrySend:
			if x.closed {
				break
			}
			if len(x.waiting) > 0 {
				all = append(all, message{s, x.waiting[0], sure && !x.unlikely})
				x.waiting = x.waiting[1:]
				break
			}
			x.unlikely = x.unlikely || k == coir.OpTrySend // there may have been no room
			x.sent = append(x.sent, s)
		case coir.OpRecv, coir.OpTryRecv:
			if len(x.sent) > 0 && next[s] != never {
				all = append(all, message{x.sent[0], s, sure && !x.unlikely})
				x.sent = x.sent[1:]
			} else if k == coir.OpRecv && next[s] != never {
				x.waiting = append(x.waiting, s)
			}
			x.unlikely = x.unlikely || k == coir.OpTryRecv // it may have taken more: RecvMany does
		case coir.OpClose:
			x.closed, x.waiting = true, nil
		case coir.OpAbort:
			x.closed, x.waiting, x.sent = true, nil, nil
		}
	}
	return all
}

// never is a step that does not come.
const never = math.MaxInt

// The measures of a chart, in pixels.
const (
	chartGutter = 96
	chartColumn = 176
	chartRow    = 30
	chartTop    = 52
	chartBox    = 124
	chartLetter = 7 // of the text in boxes

	chartMostRows    = 2000
	chartMostColumns = 64
)

const chartStyle = `
body{font:14px/1.4 system-ui,sans-serif;margin:20px;color:#222;background:#fff}
h1{font-size:15px;margin:0 0 4px;color:#b00020}
pre{margin:4px 0 12px;white-space:pre-wrap;font:12px/1.4 ui-monospace,monospace}
svg{font:12px ui-monospace,monospace}
.head{font-weight:bold;text-anchor:middle}
.life{stroke:#bbb}
.hang{stroke:#b00020;stroke-width:2;stroke-dasharray:5 4}
.step{fill:#888;text-anchor:end}
.op{text-anchor:middle}
.box{fill:#f4f4f4;stroke:#999}
.chan{fill:#e8f0fe;stroke:#4472c4}
.fault{fill:#fff3d6;stroke:#c77700}
.wait{fill:#fdecee;stroke:#b00020;stroke-width:2}
.msg{stroke:#4472c4;stroke-width:1.5;fill:none;marker-end:url(#tip)}
.guess{stroke-dasharray:3 3}
.name{fill:#2b4f91;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px}
.spawn{stroke:#aaa;stroke-dasharray:2 3;fill:none;marker-end:url(#gray)}
.end{stroke:#b00020;stroke-width:2}
.why{fill:#b00020;text-anchor:middle}
.verdict{fill:#b00020;font-weight:bold}
.note{color:#666;font-size:12px}
`

// WriteHTML draws the failure as a sequence chart: one HTML file that needs no other, nor a network. Messages are drawn from the send to
// the receive that took them, in the order of the channel; dashed where the trace leaves that open.
func (f *Failure) WriteHTML(w io.Writer) error {
	c := chart{report: newReport(f), w: bufio.NewWriter(w)}
	c.skip = max(0, len(f.trace)-chartMostRows)
	c.columns = make([]int, len(f.fibers))
	for i := range c.columns {
		c.columns[i] = -1
	}
	shown := c.shown(c.skip, chartMostColumns)
	for at, i := range shown {
		c.columns[i] = at
	}
	c.width = chartGutter + len(shown)*chartColumn
	c.bottom = chartTop + (len(f.trace)-c.skip)*chartRow + chartRow/2
	c.page(shown)
	return c.w.Flush()
}

// chart is a report being drawn.
type chart struct {
	*report
	w             *bufio.Writer
	skip          int   // steps that are left out at the beginning
	columns       []int // place of each fiber; -1: none
	width, bottom int
}

// put writes markup. Arguments that are text are escaped.
func (c *chart) put(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = html.EscapeString(s)
		}
	}
	fmt.Fprintf(c.w, format, args...)
}

// raw writes markup as it is. An error stays with the writer until Flush.
func (c *chart) raw(markup string) { _, _ = c.w.WriteString(markup) }

func (c *chart) x(fiber int32) int { return chartGutter + c.columns[fiber]*chartColumn + chartColumn/2 }
func (c *chart) y(step int) int    { return chartTop + (step-c.skip)*chartRow + chartRow/2 }

// seen reports whether the operation is in the picture.
func (c *chart) seen(step int) bool { return step >= c.skip && c.columns[c.trace[step].fiber] >= 0 }

func (c *chart) page(shown []int) {
	var head, causes strings.Builder
	c.head(&head)
	c.said(&causes)
	c.outside(&causes)
	c.waits(&causes)
	c.causes(&causes)
	title, rest, _ := strings.Cut(head.String(), "\n")
	c.put("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title><style>", title)
	c.raw(chartStyle)
	c.put("</style></head>\n<body>\n<h1>%s</h1>\n<pre>%s%s</pre>\n", title, rest, causes.String())
	if n := c.before + c.skip; n > 0 {
		c.put("<p class=\"note\">%d steps before these are left out.</p>\n", n)
	}
	if hidden := len(c.fibers) - len(shown); hidden > 0 {
		c.put("<p class=\"note\">%d fibers are left out.</p>\n", hidden)
	}
	why := 0
	for _, i := range shown {
		if c.fibers[i].waits {
			why = max(why, len(wrap(c.waitsFor(i))))
		}
	}
	height := c.bottom + 16*why + 44
	c.put("<svg width=\"%d\" height=\"%d\" role=\"img\">\n", max(c.width, 640), height)
	c.raw(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">` +
		`<path d="M0 0L8 4L0 8z" fill="#4472c4"/></marker><marker id="gray" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" ` +
		`markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#aaa"/></marker></defs>` + "\n")
	c.lives(shown)
	c.spawns()
	c.boxes()
	for _, m := range c.messages() {
		c.message(m)
	}
	c.verdict(shown, height)
	c.raw("</svg>\n")
	if c.unsure {
		c.put("<p>%s</p>\n", unsureText)
	}
	if line := c.replayLine(); line != "" {
		c.put("<p>replay:</p>\n<pre>%s</pre>\n", line)
	}
	c.raw("</body></html>\n")
}

// lives draws a line for each fiber, from its first operation in the picture to its last, and on to the bottom for as long as it has
// not ended.
func (c *chart) lives(shown []int) {
	first, last := make([]int, len(c.fibers)), make([]int, len(c.fibers))
	for s := len(c.trace) - 1; s >= c.skip; s-- {
		i := c.trace[s].fiber
		first[i] = c.y(s)
		last[i] = max(last[i], c.y(s))
	}
	for _, i := range shown {
		fb, x := &c.fibers[i], c.x(int32(i))
		c.put("<text class=\"head\" x=\"%d\" y=\"28\">%s<title>%s</title></text>\n", x, cut(c.labels[i], chartColumn-10), fb.f.Site())
		from, to := first[i], last[i]
		if from == 0 || i == 0 || c.before+c.skip > 0 {
			from = chartTop - 12
		}
		if !fb.ended {
			to = c.bottom
		}
		c.put("<line class=\"life\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x, from, x, to)
		if fb.waits {
			c.put("<line class=\"hang\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x, c.y(max(fb.step, c.skip)), x, c.bottom)
		}
	}
}

// spawns draws who was started by whom. Fibers are numbered as they become able to run, which is the order of the Go but under a
// limit; names that differ give that away.
func (c *chart) spawns() {
	child := 0
	if c.before > 0 {
		return // who was the first is not known
	}
	for s, e := range c.trace {
		if e.op.Kind != coir.OpGo {
			continue
		}
		if child++; child >= len(c.fibers) {
			return
		}
		if name := c.names[child]; name != e.op.Name && !strings.HasPrefix(name, e.op.Name+"[") {
			return
		}
		if c.seen(s) && c.columns[child] >= 0 {
			x1, x2 := c.x(e.fiber)+chartBox/2, c.x(int32(child))
			if x2 < x1 {
				x1 -= chartBox
			}
			c.put("<path class=\"spawn\" d=\"M%d %dH%dV%d\"/>\n", x1, c.y(s), x2, c.begins(child)-10)
		}
	}
}

// begins is where the first operation of a fiber is drawn, or the bottom.
func (c *chart) begins(fiber int) int {
	for s := c.skip; s < len(c.trace); s++ {
		if int(c.trace[s].fiber) == fiber {
			return c.y(s)
		}
	}
	return c.bottom
}

// boxes draws the operations.
func (c *chart) boxes() {
	at := time.Duration(-1)
	for s := c.skip; s < len(c.trace); s++ {
		if !c.seen(s) {
			continue
		}
		e := &c.trace[s]
		x, y := c.x(e.fiber), c.y(s)
		class := "box"
		if onChannel(e.op.Kind) {
			class = "chan"
		}
		if e.op.Kind == opFault {
			class = "fault"
		}
		if fb := &c.fibers[e.fiber]; fb.waits && fb.step == s {
			class = "wait"
		}
		if e.at != at {
			at = e.at
			c.put("<text class=\"step\" x=\"52\" y=\"%d\">%s</text>\n", y+4, at.String())
		}
		text := c.words(e.op, e.object, e.cases)
		c.put("<text class=\"step\" x=\"%d\" y=\"%d\">%d</text>\n", chartGutter-12, y+4, c.before+s+1)
		c.put("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"20\" rx=\"4\"/>\n", class, x-chartBox/2, y-10, chartBox)
		c.put("<text class=\"op\" x=\"%d\" y=\"%d\">%s<title>%s</title></text>\n", x, y+4, cut(text, chartBox-6), text)
	}
}

// message draws an arrow: to the receive, or if that waited, to its fiber at the moment of the send.
func (c *chart) message(m message) {
	if !c.seen(m.send) || !c.seen(m.recv) {
		return
	}
	from, to := &c.trace[m.send], &c.trace[m.recv]
	class := "msg"
	if !m.sure {
		class = "msg guess"
	}
	x1, y1, x2, y2 := c.x(from.fiber), c.y(m.send), c.x(to.fiber), c.y(max(m.send, m.recv))
	half := chartBox / 2
	if from.fiber == to.fiber { // round the outside
		x := x1 + half
		c.put("<path class=\"%s\" d=\"M%d %dh12V%dh-10\"/>\n", class, x, y1, y2)
		return
	}
	if x2 < x1 {
		half = -half
	}
	x1 += half
	if m.recv > m.send {
		x2 -= half
	}
	c.put("<path class=\"%s\" d=\"M%d %dL%d %d\"/>\n", class, x1, y1, x2, y2)
	c.put("<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", (x1+x2)/2, (y1+y2)/2-4, cut(channel(from.op, from.object), chartColumn))
}

// verdict draws the red line at the bottom, and what each fiber waits for below it.
func (c *chart) verdict(shown []int, height int) {
	c.put("<line class=\"end\" x1=\"0\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", c.bottom, c.width, c.bottom)
	for _, i := range shown {
		if c.fibers[i].waits {
			for k, line := range wrap(c.waitsFor(i)) {
				c.put("<text class=\"why\" x=\"%d\" y=\"%d\">%s</text>\n", c.x(int32(i)), c.bottom+18+16*k, line)
			}
		}
	}
	text, _, _ := strings.Cut(c.Text, "\n")
	c.put("<text class=\"verdict\" x=\"4\" y=\"%d\">%s: %s</text>\n", height-10, string(c.Kind), text)
}

// cut shortens text to a width in pixels.
func cut(text string, width int) string {
	if r := []rune(text); len(r) > width/chartLetter {
		return string(r[:width/chartLetter-1]) + "…"
	}
	return text
}

// wrap breaks text into lines as wide as a column.
func wrap(text string) (lines []string) {
	line := ""
	for _, word := range strings.Fields("waits " + text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= chartColumn/chartLetter-1:
			line += " " + word
		default:
			lines = append(lines, cut(line, chartColumn))
			line = word
		}
	}
	return append(lines, cut(line, chartColumn))
}
