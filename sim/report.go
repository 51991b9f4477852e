package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
)

// A report says only what the trace shows. The trace has the operations, with their channel, fiber or nursery, all
// cases of a select, and how each operation ended. It does not show what a fiber could still do. So the wait-for graph
// has two sorts of arrows. Certain ones: to a fiber that is waited for, to the children of a nursery that is
// joined, and over a channel to the only remaining fiber that ever used its other side. And likely ones: to the fiber
// that has taken a value from a channel and has not put it back, as with a channel used as a lock. A cycle with one of
// those is called likely. Of a very long schedule only the end is kept, which does not show all users of a channel, or
// to which nursery a name belongs: then the report does not say so.

// findings is a failure with what its readers need in addition.
type findings struct {
	*Failure
	names  []string         // of the fibers
	labels []string         // of the fibers; no two are the same
	things map[int32]*thing // channels, locks and the like, by their object
	number map[int32]int    // fibers by their object
	users  map[int32][]user // of each channel, in order
	nests  map[nest]bool    // which names were given to fibers of which nursery
	mixed  map[string]bool  // names of fibers in more than one nursery
	flows  map[int32]*flow  // of channels, as messages returns them; nil: not yet
	other  *findings        // of the twin; nil: not yet, or there is none
	drawn  *chart.Twin      // the same, as passing returns it
	told   *report.Trace    // as traced returns it; nil: not yet
	chose  []bool           // fibers that have used a select whose channels are not known
}

// user is a fiber that has used a channel.
type user struct {
	fiber        int
	sends, takes bool // close and abort count as sends: they end the wait of a receiver
}

type nest struct {
	nursery int32
	name    string
}

func newReport(f *Failure) *findings {
	r := &findings{
		Failure: f, names: make([]string, len(f.fibers)), labels: make([]string, len(f.fibers)), number: map[int32]int{}, users: map[int32][]user{},
		things: map[int32]*thing{}, nests: map[nest]bool{}, mixed: map[string]bool{}, chose: make([]bool, len(f.fibers)),
	}
	count := map[string]int{}
	for i, c := range f.fibers {
		r.names[i] = c.f.Name()
		count[r.names[i]]++
		r.number[c.object] = i
	}
	for i, name := range r.names {
		if r.labels[i] = shown(name); count[name] > 1 || name == "" {
			r.labels[i] = fmt.Sprintf("%s#%d", shown(name), i)
		}
	}
	r.nameThings()
	where := map[string]int32{}
	for _, e := range f.trace {
		switch who := int(e.fiber); e.op.Kind {
		case policy.Select, policy.TrySelect:
			cases, known := f.casesOf(e.cases)
			r.chose[who] = r.chose[who] || !known
			for _, c := range cases {
				if c.op.Kind == policy.Send || c.op.Kind == policy.Recv || c.op.Kind == policy.Use {
					r.used(c.object, who, c.op)
				}
			}
		case policy.Go:
			if at, ok := where[e.op.Name]; ok && at != e.object {
				r.mixed[e.op.Name] = true
			}
			where[e.op.Name] = e.object
			r.nests[nest{e.object, e.op.Name}] = true
		default:
			if onChannel(e.op.Kind) || e.op.Kind == policy.Use {
				r.used(e.object, who, e.op)
			}
		}
	}
	return r
}

// used records that a fiber has used a channel or another object, if there is one.
func (r *findings) used(object int32, fiber int, op policy.Op) {
	if object < 0 {
		return
	}
	all := r.users[object]
	at := slices.IndexFunc(all, func(u user) bool { return u.fiber == fiber })
	if at < 0 {
		at, all = len(all), append(all, user{fiber: fiber})
		r.users[object] = all
	}
	if k := op.Kind; k == policy.Recv || k == policy.TryRecv || k == policy.RecvAsync ||
		k == policy.Use && op.Verb.Waits != "" {
		all[at].takes = true
	} else {
		all[at].sends = true
	}
}

func onChannel(k policy.Kind) bool {
	return k >= policy.Send && k <= policy.Abort || k == policy.SendAsync || k == policy.RecvAsync
}

// describe returns an operation in a few words, without what only the trace knows.
func describe(op policy.Op) string {
	if op.Name == "" {
		return op.Word()
	}
	return op.Word() + " " + shown(op.Name)
}

// shown returns a name for the report. A name with unprintable characters is quoted: it could break the line, or
// control the terminal.
func shown(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return strconv.Quote(name)
	}
	return name
}

// did returns what an operation in the trace did, in a few words, and how it ended, if that is not as usual.
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
	if e.op.Kind == policy.TryRecv && e.which > 1 {
		return fmt.Sprintf("%s → %d values", text, e.which)
	}
	if how := e.how.String(); how != "" {
		text += " → " + how
	}
	return text
}

// chosen returns the case that a select did, if that is known.
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
		return "goes on"
	case opAdvance:
		return "advance " + op.For.String()
	case policy.Start, policy.End, policy.Join, policy.Cancel:
		return op.Kind.String()
	case policy.Wait:
		return op.Kind.String() + " " + r.fiber(op, object)
	case policy.Sleep:
		return op.Kind.String() + " " + op.For.String()
	}
	if op.Name == "" && object < 0 {
		return op.Word()
	}
	return op.Word() + " " + r.name(op, object)
}

// about returns what a case of a select is about.
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

// explain writes what is known of the causes.
func (r *findings) explain(b *strings.Builder) {
	r.traced().SayWho(b)
	r.holdsMutex(b)
	r.traced().SayFaults(b)
	r.said(b)
	r.outside(b)
	r.waits(b)
	r.causes(b)
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

// outside writes what goroutines have done. This comes first: a deadlock that they would have ended is not one.
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
// Spec: SM-08 (nobody able to go on is a deadlock)
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

// waiting returns the fibers that wait and do not tick.
func (r *findings) waiting() (all []report.Wait) {
	for i, c := range r.fibers {
		if !c.waits || r.ticks(i) {
			continue
		}
		w := report.Wait{Actor: i, Need: "waits " + r.waitsFor(i), At: strings.TrimPrefix(c.site.at(), ", at ")}
		if w.At != "" && c.op.Kind != policy.Join {
			w.Same = w.Need + w.At + spawned(c)
		}
		all = append(all, w)
	}
	return all
}

// at returns the place of a site, in words that follow others.
func (s site) at() string {
	if s.file == "" {
		return ""
	}
	return ", at " + place(s.file, s.line)
}

// behind returns the place of a site in brackets, in words that follow others.
func (s site) behind() string {
	if s.file == "" {
		return ""
	}
	return " (at " + place(s.file, s.line) + ")"
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

// waitsFor returns what fiber i waits for, in words that follow "waits".
func (r *findings) waitsFor(i int) string {
	if call := r.fibers[i].site.call; call != "" {
		return "in " + call + " " + r.need(i)
	}
	return r.need(i)
}

// need returns what fiber i waits for, in words that follow "waits".
func (r *findings) need(i int) string {
	c := &r.fibers[i]
	switch c.op.Kind {
	case policy.Send, policy.Recv, policy.Wait, policy.Sleep, policy.Use:
		return r.wish(choice{c.op, c.on})
	case policy.Select:
		cases, known := r.casesOf(c.cases)
		switch {
		case !known:
			return "for a case of a select"
		case len(cases) == 0:
			return "in a select without cases"
		}
		return "in a select " + r.wishes(cases)
	case policy.Join:
		if kids := r.children(i); len(kids) > 0 {
			return "for its children to end: " + r.list(kids)
		}
		return "for its children to end"
	}
	return fmt.Sprintf("for something after its last operation, %s", r.words(c.op, c.on, c.cases))
}

// wish returns what a fiber with case c waits for, in words that follow "waits".
func (r *findings) wish(c choice) string {
	switch c.op.Kind {
	case policy.Send:
		return "to send to " + r.channel(c.op, c.object) + r.full(c.object)
	case policy.Recv:
		return "to receive from " + r.channel(c.op, c.object)
	case policy.Wait:
		return "for " + r.fiber(c.op, c.object) + " to end"
	case policy.Use:
		if c.object < 0 {
			return c.op.Verb.Waits
		}
		return c.op.Verb.Waits + " " + r.about(c) + r.heldBy(c)
	case policy.Leave:
		return "for the other side of " + r.channel(c.op, c.object) + " to be gone"
	}
	return "for time to pass"
}

// holders returns what fibers hold of the object that c is about, the longest-held first.
func (r *findings) holders(c choice) (all []hold) {
	for _, h := range r.holds {
		if h.object == c.object {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b hold) int { return cmp.Compare(a.step, b.step) })
	return all
}

// heldBy returns which fibers hold what c waits to take, in words that follow its name.
func (r *findings) heldBy(c choice) string {
	if c.op.Take == 0 {
		return ""
	}
	const most = 3
	all := r.holders(c)
	if len(all) == 0 {
		return ", which no fiber holds"
	}
	var texts []string
	for k, h := range all[:min(len(all), most)] {
		text := r.labels[h.fiber]
		if r.fibers[h.fiber].ended {
			text += ", which has ended,"
		}
		text += fmt.Sprintf(" since step %d", h.step)
		if at := r.took(h); k == len(all)-1 || k == most-1 || at.at() != r.took(all[k+1]).at() {
			text += at.behind()
		}
		texts = append(texts, text)
	}
	s := ", held by " + strings.Join(texts, ", ")
	if len(all) > most {
		s += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return s
}

// took returns where a fiber took what it holds.
func (r *findings) took(h hold) site {
	for s := min(h.step-r.before, len(r.trace)) - 1; s >= 0; s-- {
		e := &r.trace[s]
		op, object := e.op, e.object
		if c, ok := r.chosen(e); ok {
			op, object = c.op, c.object
		}
		if e.fiber == h.fiber && object == h.object && op.Take > 0 && !op.Undo {
			return r.siteOf(s)
		}
	}
	return site{}
}

// wishes returns what a select waits for.
func (r *findings) wishes(cases []choice) string {
	const most = 8
	var texts []string
	for _, c := range cases[:min(len(cases), most)] {
		texts = append(texts, r.wish(c))
	}
	s := strings.Join(texts, ", or ")
	if len(cases) > most {
		s += fmt.Sprintf(", or for %d cases more", len(cases)-most)
	}
	return s
}

// list names fibers.
func (r *findings) list(fibers []int) string {
	names := make([]string, len(fibers))
	for k, i := range fibers {
		names[k] = r.labels[i]
	}
	return report.Names(names, 8)
}
