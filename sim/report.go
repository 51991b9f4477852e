package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
)

// A report says only what the trace shows. The trace has the operations, with their channel, fiber or nursery, and all
// cases of a select. It does not show what a fiber could still do, nor which case a select has done. So the wait-for
// graph has two sorts of arrows. Certain ones: to a fiber that is waited for, to the children of a nursery that is
// joined, and over a channel to the only remaining fiber that ever used its other side. And likely ones: to the fiber
// that has taken a value from a channel and has not put it back, as with a channel used as a lock. A cycle with one of
// those is called likely. Of a very long schedule only the end is kept, which does not show all users of a channel, or
// to which nursery a name belongs: then the report does not say so.

// report is a failure with what its readers need in addition.
type report struct {
	*Failure
	names  []string         // of the fibers
	labels []string         // of the fibers; no two are the same
	number map[int32]int    // fibers by their object
	users  map[int32][]user // of each channel, in order
	nests  map[nest]bool    // which names were given to fibers of which nursery
	mixed  map[string]bool  // names of fibers in more than one nursery
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

func newReport(f *Failure) *report {
	r := &report{
		Failure: f, names: make([]string, len(f.fibers)), labels: make([]string, len(f.fibers)), number: map[int32]int{}, users: map[int32][]user{},
		nests: map[nest]bool{}, mixed: map[string]bool{}, chose: make([]bool, len(f.fibers)),
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
func (r *report) used(object int32, fiber int, op policy.Op) {
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

// did returns what an operation in the trace did, in a few words.
func (r *report) did(e *event) string {
	text := r.words(e.op, e.object, e.cases)
	if e.failed {
		return "cannot " + strings.TrimPrefix(text, "try ")
	}
	return text
}

// words returns an operation in a few words.
func (r *report) words(op policy.Op, object int32, of span) string {
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
	if op.Name == "" && object >= 0 {
		return fmt.Sprintf("%s #%d", op.Word(), object)
	}
	return describe(op)
}

// about returns what a case of a select is about.
func (r *report) about(c choice) string {
	switch c.op.Kind {
	case policy.Wait:
		return r.fiber(c.op, c.object)
	case policy.Sleep:
		return "time"
	}
	if c.op.Name == "" {
		return fmt.Sprintf("#%d", c.object)
	}
	return shown(c.op.Name)
}

// fiber returns the name of the fiber that a wait is for.
func (r *report) fiber(op policy.Op, object int32) string {
	if i, ok := r.number[object]; ok {
		return r.labels[i]
	}
	return shown(op.Name)
}

func channel(op policy.Op, object int32) string {
	if op.Name != "" {
		return shown(op.Name)
	}
	return fmt.Sprintf("channel #%d", object)
}

// head writes what happened.
func (r *report) head(b *strings.Builder) {
	fmt.Fprintf(b, "%s after %s, %s ", r.Kind, counted(r.Steps, "step"), counted(r.Switches, "choice"))
	if r.Strategy == drawnName {
		b.WriteString("(drawn)")
	} else if r.Schedule > 0 {
		fmt.Fprintf(b, "(schedule %d, strategy %s, seed %d)", r.Schedule, r.Strategy, r.Seed)
	} else {
		b.WriteString("(replayed)")
	}
	fmt.Fprintf(b, ": %s\n", indented(r.Text))
}

// indented indents a text that may have more than one line.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// said writes the texts of Errorf that are not in the head.
func (r *report) said(b *strings.Builder) {
	for i, text := range r.errs {
		if i > 0 || r.Kind != KindError {
			fmt.Fprintf(b, "  error: %s\n", indented(text))
		}
	}
	if more := r.nerrs - len(r.errs); more > 0 {
		fmt.Fprintf(b, "  ... and %s more\n", counted(more, "error"))
	}
	if r.panicked != "" {
		fmt.Fprintf(b, "  panic, before this or while the schedule was ended: %s\n", indented(r.panicked))
	}
}

// outside writes what goroutines have done. This comes first: a deadlock that they would have ended is not one.
func (r *report) outside(b *strings.Builder) {
	if len(r.strays) > 0 {
		b.WriteString("  goroutines that are not fibers of the simulation, and so came too late to help, did:\n")
		for _, what := range r.strays {
			fmt.Fprintf(b, "    %s\n", what)
		}
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

const mostWaits = 20

// waits writes which fibers wait, for what, since when, and where each was started.
//
// Spec: SM-08 (nobody able to go on is a deadlock)
func (r *report) waits(b *strings.Builder) {
	n, width := 0, 0
	for i, c := range r.fibers {
		if c.waits {
			n++
			width = max(width, len(r.labels[i]))
		}
	}
	left := mostWaits
	for i, c := range r.fibers {
		if !c.waits || left == 0 {
			continue
		}
		left--
		fmt.Fprintf(b, "  %-*s waits %s, since step %d at %v%s\n", width, r.labels[i], r.waitsFor(i), r.before+c.step+1, c.since, spawned(c))
	}
	if n > mostWaits {
		fmt.Fprintf(b, "  ... and %s more\n", counted(n-mostWaits, "fiber"))
	}
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
func (r *report) waitsFor(i int) string {
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
func (r *report) wish(c choice) string {
	switch c.op.Kind {
	case policy.Send:
		return "to send to " + channel(c.op, c.object)
	case policy.Recv:
		return "to receive from " + channel(c.op, c.object)
	case policy.Wait:
		return "for " + r.fiber(c.op, c.object) + " to end"
	case policy.Use:
		if c.object < 0 {
			return c.op.Verb.Waits
		}
		return c.op.Verb.Waits + " " + r.about(c) + r.heldBy(c)
	case policy.Leave:
		return "for the other side of " + channel(c.op, c.object) + " to be gone"
	}
	return "for time to pass"
}

// holders returns what fibers hold of the object that c is about, the longest-held first.
func (r *report) holders(c choice) (all []hold) {
	for _, h := range r.holds {
		if h.object == c.object {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b hold) int { return cmp.Compare(a.step, b.step) })
	return all
}

// heldBy returns which fibers hold what c waits to take, in words that follow its name.
func (r *report) heldBy(c choice) string {
	if c.op.Take == 0 {
		return ""
	}
	const most = 3
	all := r.holders(c)
	if len(all) == 0 {
		return ", which no fiber holds"
	}
	var texts []string
	for _, h := range all[:min(len(all), most)] {
		text := fmt.Sprintf("%s since step %d", r.labels[h.fiber], h.step)
		if r.fibers[h.fiber].ended {
			text = r.labels[h.fiber] + ", which has ended," + fmt.Sprintf(" since step %d", h.step)
		}
		texts = append(texts, text)
	}
	s := ", held by " + strings.Join(texts, ", ")
	if len(all) > most {
		s += fmt.Sprintf(" and %d more", len(all)-most)
	}
	return s
}

// wishes returns what a select waits for.
func (r *report) wishes(cases []choice) string {
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
func (r *report) list(fibers []int) string {
	const most = 8
	var names []string
	for _, i := range fibers[:min(len(fibers), most)] {
		names = append(names, r.labels[i])
	}
	s := strings.Join(names, ", ")
	if len(fibers) > most {
		s += fmt.Sprintf(" and %d more", len(fibers)-most)
	}
	return s
}

// children returns the remaining fibers of the nursery that fiber i joins, as far as they are certain: those whose name
// only fibers of that nursery have.
func (r *report) children(i int) (kids []int) {
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

// arrow is an edge of the wait-for graph.
type arrow struct {
	to     int
	why    string // follows the name of the fiber that waits
	likely bool
}

// arrows returns the arrows that begin at fiber i.
func (r *report) arrows(i int) (out []arrow) {
	c := &r.fibers[i]
	if !c.waits {
		return nil
	}
	if c.op.Kind == policy.Join {
		for _, to := range r.children(i) {
			out = append(out, arrow{to: to, why: "waits for its child " + r.labels[to] + " to end"})
		}
	}
	for _, x := range r.wants(i) {
		why := "waits "
		if c.op.Kind == policy.Select {
			why += "in a select "
		}
		why += r.wish(x)
		switch x.op.Kind {
		case policy.Wait:
			if to, ok := r.number[x.object]; ok && !r.fibers[to].ended {
				out = append(out, arrow{to: to, why: why})
			}
		case policy.Use:
			holders := r.holders(x)
			for _, h := range holders {
				if !r.fibers[h.fiber].ended {
					out = append(out, arrow{to: int(h.fiber), why: why, likely: len(holders) > 1})
				}
			}
		case policy.Send, policy.Recv:
			servers, known := r.servers(i, x)
			if known && len(servers) == 1 && servers[0].other(x.op.Kind) {
				to := servers[0].fiber
				out = append(out, arrow{to: to, why: why + ", which only " + r.labels[to] + " of the remaining fibers has also used"})
			} else if to, how := r.holder(i, x); to >= 0 {
				out = append(out, arrow{to: to, why: why + ", from which " + r.labels[to] + " " + how, likely: true})
			}
		}
	}
	return out
}

// wants returns the things that fiber i waits for, each of which would let it continue. It is empty if fiber i waits
// for anything but channels, fibers and time.
func (r *report) wants(i int) []choice {
	c := &r.fibers[i]
	switch c.op.Kind {
	case policy.Send, policy.Recv, policy.Wait, policy.Use:
		return []choice{{c.op, c.on}}
	case policy.Select:
		cases, _ := r.casesOf(c.cases)
		return cases
	}
	return nil
}

// other reports whether the fiber has been on the other side of the channel than an operation of kind k.
func (u user) other(k policy.Kind) bool {
	return k == policy.Send && u.takes || k == policy.Recv && u.sends
}

// servers returns the remaining fibers that have used the channel that fiber i waits on, except for those that wait on
// the same side. They are known if no remaining fiber has used a select that hides its channels, and the trace is
// complete.
func (r *report) servers(i int, c choice) (left []user, known bool) {
	for _, u := range r.users[c.object] {
		if u.fiber != i && !r.fibers[u.fiber].ended && !r.beside(u.fiber, c) {
			left = append(left, u)
		}
	}
	for k, chose := range r.chose {
		if chose && k != i && !r.fibers[k].ended {
			return left, false
		}
	}
	return left, r.before == 0
}

// beside reports whether fiber k waits for c, perhaps among other things.
func (r *report) beside(k int, c choice) bool {
	return r.fibers[k].waits && slices.ContainsFunc(r.wants(k), func(x choice) bool {
		return x.object == c.object && x.op.Kind == c.op.Kind
	})
}

// holder returns the last fiber that received from the channel that fiber i waits to receive from, and how, unless it
// has sent to that channel since; or -1. For a select it is not known whether this case happened.
func (r *report) holder(i int, c choice) (fiber int, how string) {
	if c.op.Kind != policy.Recv {
		return -1, ""
	}
	for s := len(r.trace) - 1; s >= 0; s-- {
		e := &r.trace[s]
		x := &r.fibers[e.fiber]
		if x.waits && x.step == s {
			continue // has not received
		}
		took := "has taken a value at step %d"
		kind := e.op.Kind
		if cases, _ := r.casesOf(e.cases); len(cases) > 0 {
			at := slices.IndexFunc(cases, func(x choice) bool {
				return x.object == c.object && (x.op.Kind == policy.Send || x.op.Kind == policy.Recv)
			})
			if at < 0 {
				continue
			}
			if kind = cases[at].op.Kind; len(cases) > 1 || e.op.Kind == policy.TrySelect {
				took = "may have taken a value at step %d, in a select"
			}
		} else if e.object != c.object || !onChannel(kind) {
			continue
		}
		if kind == policy.Recv && int(e.fiber) != i && !x.ended && !r.beside(int(e.fiber), c) {
			return int(e.fiber), fmt.Sprintf(took, r.before+s+1)
		}
		return -1, ""
	}
	return -1, ""
}

// causes writes the cycle if there is one, and the channels for which no fiber is left.
func (r *report) causes(b *strings.Builder) {
	if r.Kind != KindDeadlock {
		return
	}
	if who, way := r.cycle(); who != nil {
		title := "cycle"
		if slices.ContainsFunc(way, func(a arrow) bool { return a.likely }) {
			title = "likely cycle"
		}
		fmt.Fprintf(b, "  %s:\n", title)
		for k, i := range who {
			fmt.Fprintf(b, "    %s %s\n", r.labels[i], way[k].why)
		}
	}
	told := map[string]bool{}
	for i, c := range r.fibers {
		if !c.waits {
			continue
		}
		for _, x := range r.wants(i) {
			r.abandoned(b, i, x, told)
		}
	}
}

// closed says that the channel was closed, if it was.
func (r *report) closed(b *strings.Builder, c choice) {
	for s, e := range r.trace {
		if e.object == c.object && (e.op.Kind == policy.Close || e.op.Kind == policy.Abort) {
			how := "closed"
			if e.op.Kind == policy.Abort {
				how = "aborted"
			}
			fmt.Fprintf(b, "  %s was %s at step %d\n", channel(c.op, c.object), how, r.before+s+1)
			return
		}
	}
}

// alone reports whether it is certain that no fiber will serve c, for which fiber i waits: all others have ended, or
// wait only for c on the same side, or for one of those to end.
func (r *report) alone(i int, c choice) bool {
	held := make([]bool, len(r.fibers))
	held[i] = true
	for k, x := range r.fibers {
		held[k] = held[k] || x.ended || len(r.wants(k)) == 1 && r.beside(k, c)
	}
	waitsForHeld := func(k int) bool {
		switch x := &r.fibers[k]; {
		case !x.waits:
			return false
		case x.op.Kind == policy.Join:
			return slices.ContainsFunc(r.children(k), func(kid int) bool { return held[kid] })
		case x.op.Kind == policy.Wait:
			to, ok := r.number[x.on]
			return ok && held[to] && !r.fibers[to].ended
		}
		return false
	}
	for again := true; again; {
		again = false
		for k := range held {
			if !held[k] && waitsForHeld(k) {
				held[k], again = true, true
			}
		}
	}
	return !slices.Contains(held, false)
}

// abandoned writes that no fiber is left, or known, that could serve what fiber i waits for, unless told already has
// it.
func (r *report) abandoned(b *strings.Builder, i int, c choice, told map[string]bool) {
	var text string
	name := channel(c.op, c.object)
	switch c.op.Kind {
	case policy.Recv:
		text = "no fiber is left to send to or close " + name
	case policy.Send:
		text = "no fiber is left to receive from " + name
	case policy.Use:
		if c.op.Verb.Ends == "" {
			return
		}
		name = r.about(c)
		text = "no fiber is left to " + c.op.Verb.Ends + " " + name
	default:
		return
	}
	if told[text] {
		return
	}
	told[text] = true
	r.closed(b, c)
	if servers, known := r.servers(i, c); !known || len(servers) > 0 || len(r.strays) > 0 {
		return
	}
	var gone []int
	for _, u := range r.users[c.object] {
		if r.fibers[u.fiber].ended {
			gone = append(gone, u.fiber)
		}
	}
	if !r.alone(i, c) {
		text = "no other fiber has used " + name + " so far"
		if len(gone) > 0 {
			text = "no other remaining fiber has used " + name + " so far"
		}
	}
	if len(gone) > 0 {
		text += ": " + r.list(gone) + " used it, and ended"
	}
	if line := "  " + text + "\n"; !strings.Contains(b.String(), line) { // two channels may have one name
		b.WriteString(line)
	}
}

// cycle returns the shortest cycle of the wait-for graph and its arrows, or nil. It searches only the first part of a
// large graph.
func (r *report) cycle() (best []int, way []arrow) {
	const most = 200
	graph := make([][]arrow, len(r.fibers))
	for i := range graph[:min(len(graph), most)] {
		graph[i] = r.arrows(i)
	}
	for from := range graph[:min(len(graph), most)] {
		// Breadth first, until an arrow leads back.
		type visit struct {
			fiber, before int
			by            arrow
		}
		queue, seen := []visit{{fiber: from, before: -1}}, map[int]bool{}
		for at := 0; at < len(queue); at++ {
			for _, a := range graph[queue[at].fiber] {
				if a.to != from {
					if !seen[a.to] {
						seen[a.to] = true
						queue = append(queue, visit{a.to, at, a})
					}
					continue
				}
				who, arrows := []int{}, []arrow{a}
				for v := at; v >= 0; v = queue[v].before {
					who = append(who, queue[v].fiber)
					if queue[v].before >= 0 {
						arrows = append(arrows, queue[v].by)
					}
				}
				slices.Reverse(who)
				slices.Reverse(arrows)
				if best == nil || len(who) < len(best) {
					best, way = who, arrows
				}
				at = len(queue)
				break
			}
		}
	}
	return best, way
}

const (
	narrowest   = 6
	widest      = 20
	mostColumns = 8
	mostRows    = 60
)

// table writes a column for each fiber, and the operations in order from top to bottom, with a * where a fiber waits.
// Of a long table it shows the end.
func (r *report) table(b *strings.Builder) {
	if len(r.trace) == 0 && len(r.draws) == 0 {
		return
	}
	skip := max(0, len(r.trace)-mostRows)
	shown := r.shown(skip, mostColumns)
	text := func(s int) string {
		e := &r.trace[s]
		t := r.did(e)
		if c := &r.fibers[e.fiber]; c.waits && c.step == s {
			t += " *"
		}
		return t
	}
	width := make([]int, len(r.fibers))
	for _, i := range shown {
		width[i] = max(narrowest, len(r.labels[i]))
	}
	drawn := func(d decision) string { return fmt.Sprintf("intn %d → %d", d.of, d.chosen) }
	draws := r.draws
	for len(draws) > 0 && int(draws[0].step) < r.before+skip {
		draws = draws[1:]
	}
	draws = draws[max(0, len(draws)-mostRows):]
	for _, d := range draws {
		i := d.drawn - 1
		width[i] = max(width[i], utf8.RuneCountInString(drawn(d)))
	}
	timed := false
	for s := skip; s < len(r.trace); s++ {
		i := r.trace[s].fiber
		width[i] = max(width[i], utf8.RuneCountInString(text(s)))
		timed = timed || r.trace[s].at > 0
	}
	row := func(left string, cell func(i int) string, right string) {
		fmt.Fprintf(b, "  %5s |", left)
		for _, i := range shown {
			w := min(width[i], widest)
			fmt.Fprintf(b, " %-*s |", w, fit(cell(i), w))
		}
		b.WriteString(right + "\n")
	}
	row("step", func(i int) string { return r.labels[i] }, "")
	if n := r.before + skip; n > 0 {
		fmt.Fprintf(b, "  ... %s before\n", counted(n, "step"))
	}
	// numbers writes the numbers that were drawn before a step. They are not operations, and have no step.
	numbers := func(step int) {
		for ; len(draws) > 0 && int(draws[0].step) <= step; draws = draws[1:] {
			if who := int(draws[0].drawn) - 1; slices.Contains(shown, who) {
				row("", func(i int) string {
					if i == who {
						return drawn(draws[0])
					}
					return ""
				}, "")
			}
		}
	}
	last := time.Duration(0)
	for s := skip; s < len(r.trace); s++ {
		numbers(r.before + s)
		e := &r.trace[s]
		if !slices.Contains(shown, int(e.fiber)) {
			continue
		}
		right := ""
		if timed && (e.at != last || s == skip) {
			right, last = " "+e.at.String(), e.at
		}
		row(fmt.Sprint(r.before+s+1), func(i int) string {
			if i == int(e.fiber) {
				return text(s)
			}
			return ""
		}, right)
	}
	numbers(r.Steps)
	if hidden := len(r.fibers) - len(shown); hidden > 0 {
		fmt.Fprintf(b, "  ... and %s without a column\n", counted(hidden, "fiber"))
	}
}

// fit shortens a cell to its width, but keeps the mark of a waiting fiber.
func fit(cell string, width int) string {
	letters := []rune(cell)
	if len(letters) <= width {
		return cell
	}
	if strings.HasSuffix(cell, " *") {
		return string(letters[:width-2]) + " *"
	}
	return string(letters[:width])
}

// shown chooses the fibers that get a column, if there are too many: those that do something in the table, and first of
// them those that wait at its end.
func (r *report) shown(from, most int) []int {
	acts := make([]bool, len(r.fibers))
	for _, e := range r.trace[from:] {
		acts[e.fiber] = true
	}
	for _, d := range r.draws {
		if int(d.step) >= r.before+from {
			acts[d.drawn-1] = true
		}
	}
	return chart.Columns(len(r.fibers), most, func(i int) bool { return r.fibers[i].waits }, func(i int) bool { return acts[i] })
}
