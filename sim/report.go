package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
)

// A report states only what the trace shows. The trace has the operations, with their channel, fiber or nursery, all
// cases of a select, and how each operation ended. From that, package report finds out why no fiber can continue. Of a
// very long schedule only the end is kept. It may not show all users of a channel, or the nursery to which a name
// belongs; the report then leaves that out.

// findings holds a failure and additional facts for its readers.
type findings struct {
	*Failure
	names  []string                // of the fibers
	labels []string                // of the fibers; all different
	things map[int32]*thing        // channels, locks and other objects, by their number
	number map[int32]int           // fibers, by their number among the objects
	nests  map[nest]bool           // the names given to fibers of each nursery
	mixed  map[string]bool         // names of fibers in more than one nursery
	told   *report.Trace           // the contents of the report; traced completes it
	whole  bool                    // told is complete
	shut   map[int32]string        // how and when channels were closed, as words to append to their name
	taken  map[int32][]report.Hold // which fibers hold an object, the longest first
}

type nest struct {
	nursery int32
	name    string
}

func newReport(f *Failure) *findings { return newReportBeside(f, nil) }

// newReportBeside returns the findings of a twin, in which the fibers have the names that they have in the findings of
// the failing schedule. Without the latter it returns the findings of a failing schedule.
func newReportBeside(f *Failure, failing *findings) *findings {
	r := &findings{
		Failure: f, names: make([]string, len(f.fibers)), labels: make([]string, len(f.fibers)), number: map[int32]int{},
		things: map[int32]*thing{}, nests: map[nest]bool{}, mixed: map[string]bool{}, shut: map[int32]string{},
		told: &report.Trace{
			Chart: &chart.Chart{Actors: "fibers", Before: f.before}, Complete: f.before == 0, Align: true, Indent: "  ",
			Hidden: make([]bool, len(f.fibers)), Outside: len(f.strays) > 0,
		},
	}
	r.told.Named = func(object int) string { return r.channel(policy.Op{Kind: policy.Send}, int32(object)) }
	for i, c := range f.fibers {
		r.names[i] = c.f.Name()
		r.number[c.object] = i
	}
	r.label(failing)
	for i := range f.fibers {
		c := &f.fibers[i]
		r.told.Of = append(r.told.Of, chart.Actor{Name: r.labels[i], Title: c.f.SpawnSite(), Ended: c.ended})
	}
	r.nameThings()
	where := map[string]int32{}
	for s, e := range f.trace {
		switch e.op.Kind {
		case policy.Go:
			if at, ok := where[e.op.Name]; ok && at != e.object {
				r.mixed[e.op.Name] = true
			}
			where[e.op.Name] = e.object
			r.nests[nest{e.object, e.op.Name}] = true
		case policy.Close, policy.Abort:
			if r.shut[e.object] == "" {
				how := map[policy.Kind]string{policy.Close: "closed", policy.Abort: "aborted"}[e.op.Kind]
				r.shut[e.object] = fmt.Sprintf("was %s at step %d", how, f.before+s+1)
			}
		}
		r.used(s)
	}
	r.hold()
	r.wait()
	return r
}

// used adds what an operation did, or may have done, to channels, locks and other objects to the events of the trace.
func (r *findings) used(s int) {
	e := &r.trace[s]
	x := report.Event{Actor: int(e.fiber), Step: r.before + s + 1, Row: -1, Did: -1, Out: outcomes[e.how]}
	x.Try = e.op.Kind == policy.TryRecv
	cases, known := r.casesOf(e.cases)
	of := int(e.which)
	if e.op.Kind != policy.Select && e.op.Kind != policy.TrySelect {
		cases, of = []choice{{e.op, e.object}}, 0
	} else if x.Guess = e.object >= 0 && e.op.Kind == policy.Select; !known { // a Selector, whose operation comes later
		r.told.Hidden[e.fiber] = true
	}
	if e.how == policy.Unknown && r.waitsIn(s) {
		x.Out = report.Open
	}
	for k, c := range cases {
		if c.object < 0 || !isThing(c.op.Kind) {
			continue
		}
		u := chart.Use{Object: int(c.object), What: effectOf(c.op), N: 1}
		switch c.op.Kind {
		case policy.TryRecv:
			u.N = max(1, int(e.which))
		case policy.Use:
			u.N = max(1, c.op.Take)
		case policy.Abort:
			x.Guess = true
		case policy.SendAsync, policy.RecvAsync: // another fiber waits
			x.Guess, x.Out = true, report.Failed
		case policy.Leave, policy.Clone:
			u.N = 0
		}
		if k == of {
			x.Did = len(x.Uses)
		}
		x.Uses = append(x.Uses, u)
	}
	r.told.Events = append(r.told.Events, x)
}

// outcomes maps the outcomes to those of package report.
var outcomes = [...]report.Outcome{
	policy.Unknown: report.Failed, policy.Done: report.Done, policy.WouldBlock: report.Failed,
	policy.Closed:   report.Closed,
	policy.TimedOut: report.Failed, policy.Cancelled: report.Failed, policy.Dropped: report.Dropped,
	policy.Displaced: report.Displaced, policy.Again: report.Failed, policy.Yes: report.Failed, policy.No: report.Failed,
}

// effectOf returns what an operation does to its object.
func effectOf(op policy.Op) chart.Effect {
	switch op.Kind {
	case policy.Send, policy.TrySend, policy.SendAsync:
		return chart.Put
	case policy.Recv, policy.TryRecv, policy.RecvAsync:
		return chart.Get
	case policy.Close, policy.Abort:
		return chart.Shut
	case policy.Use:
		if op.Take > 0 && op.Undo {
			return chart.Release
		} else if op.Take > 0 {
			return chart.Hold
		}
	}
	return chart.Touch
}

func onChannel(k policy.Kind) bool {
	return k >= policy.Send && k <= policy.Abort || k == policy.SendAsync || k == policy.RecvAsync
}

// describe returns an operation in a few words, without the facts that only the trace knows.
func describe(op policy.Op) string {
	if op.Name == "" {
		return op.Word()
	}
	return op.Word() + " " + shown(op.Name)
}

// shown returns a name for the report. It quotes a name with unprintable characters, which could break the line, or
// control the terminal.
func shown(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.Quote(name)
	}
	return name
}

// did returns what an operation in the trace did, in a few words, and how it ended, unless it ended as usual.
func (r *findings) did(e *event) string {
	if c, ok := r.chosen(e); ok {
		text := e.op.Kind.String() + " → "
		if c.op.Kind == policy.Sleep {
			text += "time"
		} else {
			text += r.words(c.op, c.object, span{n: -1})
		}
		if how := e.how.String(); how != "" {
			text += ": " + how
		}
		return text
	}
	text := r.words(e.op, e.object, e.cases)
	if what := r.panicOf(e); what != "" {
		return text + ": panic: " + what
	}
	if e.op.Kind == policy.TryRecv && e.which > 1 {
		return fmt.Sprintf("%s → %d values", text, e.which)
	}
	if how := e.how.String(); how != "" {
		text += " → " + how
	}
	return text
}

// panicOf returns the beginning of the text with which a fiber panicked, if e is its end, or "".
func (r *findings) panicOf(e *event) string {
	c := &r.fibers[e.fiber]
	if e.op.Kind != policy.End || !c.panics {
		return ""
	}
	text, _ := beginning(fmt.Sprint(c.failed.(*coir.PanicError).Value))
	return shown(text)
}

// chosen returns the case that a select chose, if known.
func (r *findings) chosen(e *event) (c choice, ok bool) {
	cases, known := r.casesOf(e.cases)
	if e.op.Kind != policy.Select && e.op.Kind != policy.TrySelect || !known || e.which < 0 || int(e.which) >= len(cases) {
		return c, false
	}
	return cases[e.which], true
}

// words returns an operation in a few words.
func (r *findings) words(op policy.Op, object int32, of span) string {
	switch op.Kind {
	case policy.Select, policy.TrySelect:
		var names []string
		cases, _ := r.casesOf(of)
		for _, c := range cases {
			names = append(names, r.about(c))
		}
		return strings.TrimRight(op.Kind.String()+" "+strings.Join(names, ", "), " ")
	case opFault:
		return "fault " + shown(op.Name)
	case opGoOn:
		return "continues"
	case opAdvance:
		return "advance " + op.For.String()
	case policy.Start, policy.End, policy.Join, policy.Cancel:
		return op.Kind.String()
	case policy.Wait:
		return op.Kind.String() + " " + r.fiber(op, object)
	case policy.Sleep:
		return op.Kind.String() + " " + op.For.String()
	case policy.Yield:
		if op.For == sleepsNot {
			return policy.Sleep.String() + " 0s"
		}
	}
	if op.Name == "" && object < 0 {
		return op.Word()
	}
	return op.Word() + " " + r.name(op, object)
}

// about returns the object of a case of a select.
func (r *findings) about(c choice) string {
	switch c.op.Kind {
	case policy.Wait:
		return r.fiber(c.op, c.object)
	case policy.Sleep:
		return "time"
	}
	return r.name(c.op, c.object)
}

// fiber returns the name of the fiber that a wait is for.
func (r *findings) fiber(op policy.Op, object int32) string {
	if i, ok := r.number[object]; ok {
		return r.labels[i]
	}
	return shown(op.Name)
}

// channel returns the name of a channel.
func (r *findings) channel(op policy.Op, object int32) string {
	name := r.name(op, object)
	if strings.HasPrefix(name, "#") {
		return "channel " + name
	}
	return name
}

// head writes what happened.
func (r *findings) head(b *strings.Builder) {
	fmt.Fprintf(b, "%s after %s, %s ", r.Kind, report.Count(r.Steps, "step"), report.Count(r.Switches, "choice"))
	if r.Strategy == drawnName {
		b.WriteString("(drawn)")
	} else if r.Schedule > 0 {
		fmt.Fprintf(b, "(schedule %d, strategy %s, seed %d)", r.Schedule, r.Strategy, r.Seed)
	} else {
		b.WriteString("(replayed)")
	}
	fmt.Fprintf(b, ": %s\n", indented(r.Text))
}

// explain writes the known causes.
func (r *findings) explain(b *strings.Builder) {
	r.traced().SayWho(b)
	r.sayRace(b)
	r.holdsMutex(b)
	r.traced().SayFaults(b)
	r.said(b)
	r.outside(b)
	r.waits(b)
	if r.Kind == KindDeadlock {
		r.traced().SayCauses(b)
	}
}

// dataRace returns the mark of the first data race, or nil.
func (r *findings) dataRace() *mark {
	if i := slices.IndexFunc(r.marks, func(m mark) bool { return m.kind == raceMark }); i >= 0 {
		return &r.marks[i]
	}
	return nil
}

// sayRace writes which fiber ran when the detector reported a data race, and where it was.
func (r *findings) sayRace(b *strings.Builder) {
	m := r.dataRace()
	if m == nil {
		return
	}
	between, last, next := "", -1, -1
	for s := range r.trace {
		if r.trace[s].fiber != m.fiber {
			continue
		}
		if r.before+s < m.step {
			last = s
		} else if next < 0 {
			next = s
		}
	}
	if last >= 0 {
		between = fmt.Sprintf(" after step %d (%s%s)", r.before+last+1, r.did(&r.trace[last]), r.siteOf(last).at())
	}
	if next >= 0 {
		if between != "" {
			between += " and"
		}
		between += fmt.Sprintf(" before step %d (%s%s)", r.before+next+1, r.did(&r.trace[next]), r.siteOf(next).at())
	}
	fmt.Fprintf(b, "  the second access of the first race is in %s%s\n", r.labels[m.fiber], between)
}

// indented indents a text that may have more than one line.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// said writes the texts of Errorf that are not in the head.
func (r *findings) said(b *strings.Builder) {
	for i, text := range r.errs {
		if i > 0 || r.Kind != KindError {
			fmt.Fprintf(b, "  error: %s\n", indented(text))
		}
	}
	if more := r.nerrs - len(r.errs); more > 0 {
		fmt.Fprintf(b, "  ... and %s more\n", report.Count(more, "error"))
	}
	if r.panicked != "" {
		fmt.Fprintf(b, "  panic, before this or while the schedule was ended: %s\n", indented(r.panicked))
	}
}

// outside writes what goroutines outside have done. This comes first, because a deadlock that they would have ended is
// not one.
func (r *findings) outside(b *strings.Builder) {
	if len(r.strays) > 0 {
		b.WriteString("  goroutines that are not fibers of the simulation, and so came too late to help, did:\n")
		for _, what := range r.strays {
			fmt.Fprintf(b, "    %s\n", what)
		}
	}
}

// waits writes which fibers wait, for what, since when, and where each was started.
//
// Spec: SM-08 (no fiber able to continue is a deadlock)
func (r *findings) waits(b *strings.Builder) {
	r.traced().SayWaits(b, func(same []report.Wait) string {
		c := &r.fibers[same[0].Actor]
		if len(same) == 1 {
			return fmt.Sprintf(" (step %d, at %v%s)", r.before+c.step+1, c.since, spawned(*c))
		}
		first, last := c, c
		for _, w := range same {
			if x := &r.fibers[w.Actor]; x.step < first.step {
				first = x
			} else if x.step > last.step {
				last = x
			}
		}
		times := first.since.String()
		if last.since != first.since {
			times += " to " + last.since.String()
		}
		return fmt.Sprintf(" (%d fibers, steps %d to %d, at %s%s)", len(same), r.before+first.step+1,
			r.before+last.step+1, times, spawned(*c))
	})
}

// wait adds the waiting fibers, with what each waits for.
func (r *findings) wait() {
	t := r.told
	for i, c := range r.fibers {
		if !c.waits {
			continue
		}
		w := report.Wait{Actor: i, Does: "waits", At: strings.TrimPrefix(c.site.at(), ", at "), Ticks: r.ticks(i)}
		if c.site.call != "" {
			w.Does += " in " + c.site.call
		}
		cases, known := r.casesOf(c.cases)
		switch c.op.Kind {
		case policy.Send, policy.Recv, policy.Wait, policy.Sleep, policy.Use:
			w.Wishes = append(w.Wishes, r.wish(choice{c.op, c.on}))
		case policy.Select:
			switch {
			case !known:
				w.Does += " for a case of a select"
			case len(cases) == 0:
				w.Does += " in a select without cases"
			default:
				w.Does += " in a select"
			}
			for _, c := range cases {
				w.Wishes = append(w.Wishes, r.wish(c))
			}
		case policy.Join:
			x := report.Wish{Text: "for its children to end", Of: r.children(i)}
			if x.Object = -1; len(x.Of) > 0 {
				x.Text += ": " + t.List(x.Of)
			}
			w.Wishes = append(w.Wishes, x)
		default:
			w.Does += " for something after its last operation, " + r.words(c.op, c.on, c.cases)
		}
		if w.At != "" && c.op.Kind != policy.Join {
			w.Same = t.Need(&w) + w.At + spawned(c)
		}
		t.Of[i].Why, t.Of[i].Since = t.Line(&w), c.step
		t.Waiting = append(t.Waiting, w)
	}
}

// at returns the place of a site, as words to append.
func (s site) at() string {
	if s.file == "" {
		return ""
	}
	return ", at " + place(s.file, s.line)
}

// own reports whether a site is known, and is not in another module, whose files are in the module cache or vendored.
func (s site) own() bool {
	return s.file != "" && !strings.Contains(s.file, "@") && !strings.Contains(s.file, "/vendor/")
}

func spawned(c column) string {
	site := c.f.SpawnSite()
	if site == "" {
		return ""
	}
	file, line := cutLast(site, ":")
	n, _ := strconv.Atoi(line)
	return "; spawned at " + place(file, n)
}

// wish returns what a fiber with case c waits for.
func (r *findings) wish(c choice) report.Wish {
	x := report.Wish{Use: chart.Use{Object: int(c.object), What: effectOf(c.op)}, Name: r.channel(c.op, c.object)}
	switch c.op.Kind {
	case policy.Send:
		x.Text, x.Ends, x.Note = c.op.Waits(x.Name+r.full(c.object)), c.op.Ends(), r.shut[c.object]
	case policy.Recv:
		x.Text, x.Ends, x.Note = c.op.Waits(x.Name), c.op.Ends(), r.shut[c.object]
		if by := r.taken[c.object]; len(by) > 0 { // of a pool, whose values these fibers have
			x.How, x.By, x.Any = "lent to", by, true
		}
	case policy.Wait:
		x.Text = c.op.Waits(r.fiber(c.op, c.object))
		if i, ok := r.number[c.object]; ok {
			x.Of = []int{i}
		}
	case policy.Use:
		x.Name = r.about(c)
		x.Ends, x.Timed = c.op.Ends(), c.op.Background
		if c.object < 0 {
			x.Text = c.op.Waits("")
			break
		}
		x.Text = c.op.Waits(x.Name)
		if c.op.Take > 0 {
			x.How, x.By, x.Any = "held by", r.taken[c.object], true
		}
	case policy.Leave:
		x.Text = c.op.Waits(x.Name)
	default:
		x.Text, x.Timed = c.op.Waits(""), true
	}
	return x
}

// hold finds out which fibers hold which objects, and where each took them.
func (r *findings) hold() {
	r.taken = map[int32][]report.Hold{}
	slices.SortStableFunc(r.holds, func(a, b hold) int { return cmp.Compare(a.step, b.step) })
	for _, h := range r.holds {
		x := report.Hold{Actor: int(h.fiber), Step: h.step}
		for s := min(h.step-r.before, len(r.trace)) - 1; s >= 0; s-- {
			e := &r.trace[s]
			op, object := e.op, e.object
			if c, ok := r.chosen(e); ok {
				op, object = c.op, c.object
			}
			if e.fiber == h.fiber && object == h.object && (op.Take > 0 && !op.Undo || op.Kind == policy.Recv) {
				x.At = strings.TrimPrefix(r.siteOf(s).at(), ", at ")
				break
			}
		}
		r.taken[h.object] = append(r.taken[h.object], x)
	}
}

// children returns the remaining fibers of the nursery that fiber i joins, as far as they are known: those with names
// that only fibers of that nursery have.
func (r *findings) children(i int) (kids []int) {
	on := r.fibers[i].on
	if on < 0 || r.before > 0 {
		return nil
	}
	for k, c := range r.fibers {
		if c.ended || k == i {
			continue
		}
		base := r.names[k]
		if !r.nests[nest{on, base}] {
			base = base[:max(strings.LastIndexByte(base, '['), 0)]
		}
		if r.nests[nest{on, base}] && !r.mixed[base] {
			kids = append(kids, k)
		}
	}
	return kids
}
