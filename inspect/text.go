package inspect

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// The text is for people who use curl or read a log. It says first what is wrong. Then come the tree of nurseries and
// fibers, and the objects that fibers wait for. Fibers of a nursery that do the same are one line with a count. The
// number of lines is bounded, and the text says how much it omits.

const (
	treeLines   = 400 // the most lines of nurseries and fibers
	objectLines = 100
	ticketLines = 5  // the most lines for the tickets of a desk
	mostDeep    = 40 // the most levels of the tree
	mostHolders = 10 // the most fibers of a list
	nameRunes   = 80
	textRunes   = 300
)

// WriteText writes a snapshot as text for people, as the handler serves it. It can say what is wrong only by comparison
// with an earlier snapshot of the same runtime. If there is none, earlier is nil.
func WriteText(w io.Writer, earlier, later *snapshot.Snapshot) error {
	var why []snapshot.Explanation
	if earlier != nil {
		why = snapshot.Explain(earlier, later)
	}
	return writeText(w, later, why, earlier != nil)
}

// WriteText writes the dump as text for people.
func (d *Dump) WriteText(w io.Writer) error { return writeText(w, d.Snapshot, d.Explanations, true) }

// writeText writes a snapshot and what is wrong. compared says that it was compared with an earlier one.
func writeText(w io.Writer, s *snapshot.Snapshot, why []snapshot.Explanation, compared bool) error {
	t := newTree(s, why)
	t.out = bufio.NewWriter(w)
	t.head()
	if compared && len(why) == 0 {
		t.line(0, "\n%s", snapshot.NoProblem(s))
	}
	t.explanations(why)
	t.fibers()
	t.others()
	t.objects()
	return t.out.Flush()
}

// tree writes a snapshot as text.
type tree struct {
	*snapshot.Snapshot
	out *bufio.Writer // it keeps an error until Flush

	names   map[uint64]string              // of fibers, by number
	members map[uint64][]*snapshot.Fiber   // by nursery
	owned   map[uint64][]*snapshot.Nursery // by the fiber that opened them
	done    map[uint64]bool                // nurseries that have been written
	holders map[uint64]string              // who holds an object, in words that follow it, by number
	lines   map[uint64]string              // where fibers are, if that is known
	groups  *snapshot.Groups
	written int // lines of the tree
	left    int // fibers that are left out

	goroutines []*snapshot.Fiber // those that are not fibers, and wait
	outside    []*snapshot.Fiber // those that hold something, and do not wait
}

func newTree(s *snapshot.Snapshot, why []snapshot.Explanation) *tree {
	t := &tree{
		Snapshot: s, groups: snapshot.NewGroups(why),
		names: map[uint64]string{}, done: map[uint64]bool{}, holders: map[uint64]string{}, lines: map[uint64]string{},
		members: map[uint64][]*snapshot.Fiber{}, owned: map[uint64][]*snapshot.Nursery{},
	}
	for i := range s.Fibers {
		f := &s.Fibers[i]
		t.names[f.ID] = f.Name
		if f.At != "" {
			t.lines[f.ID] = f.At
		}
		if f.State == snapshot.StateGoroutine {
			t.goroutines = append(t.goroutines, f)
			continue
		}
		t.members[f.Nursery] = append(t.members[f.Nursery], f)
	}
	for _, of := range t.members { // a snapshot lists fibers in any order
		slices.SortStableFunc(of, func(a, b *snapshot.Fiber) int { return cmp.Compare(a.ID, b.ID) })
	}
	for i := range s.Outside {
		f := &s.Outside[i]
		t.names[f.ID], t.lines[f.ID] = f.Name, f.At
		t.outside = append(t.outside, f)
	}
	for i := range s.Nurseries {
		n := &s.Nurseries[i]
		t.owned[n.Owner] = append(t.owned[n.Owner], n)
	}
	for i := range s.Objects {
		if o := &s.Objects[i]; len(o.Holders) > 0 {
			t.holders[o.ID] = heldBy(o) + " " + t.list(o.Holders)
		}
	}
	return t
}

// line writes a line, indented.
func (t *tree) line(depth int, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	_, _ = t.out.WriteString(strings.Repeat("  ", depth) + text + "\n")
}

func (t *tree) head() {
	p := &t.Process
	t.line(0, "%s, process %d: coir %s, %s", clean(cmp.Or(p.Program, "a program"), nameRunes), p.PID,
		clean(cmp.Or(p.Coir, "of unknown version"), nameRunes), clean(cmp.Or(p.Go, "unknown Go"), nameRunes))
	t.line(0, "taken at %s, in %s", t.Taken.UTC().Format("2006-01-02 15:04:05.000 UTC"), age(t.Took))
	states := map[snapshot.State]int{}
	for i := range t.Fibers {
		states[t.Fibers[i].State]++
	}
	var parts []string
	for _, s := range []snapshot.State{
		snapshot.StateWaiting, snapshot.StateReady, snapshot.StateRunning, snapshot.StateBlocking,
		snapshot.StateOutside, snapshot.StatePending,
	} {
		if states[s] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", grouped(states[s]), s))
		}
	}
	t.line(0, "%s, %s spawned since the start: %s", count(p.Live, "fiber"), grouped(p.Spawned),
		cmp.Or(strings.Join(parts, ", "), "none to show"))
	if n := len(t.goroutines); n > 0 {
		t.line(0, "%s %s for objects of coir", count(n, "goroutine"), map[bool]string{true: "waits", false: "wait"}[n == 1])
	}
	if t.Omitted > 0 {
		t.line(0, "%s not shown, because there are so many", count(t.Omitted, "fiber"))
	}
	if len(t.Workers) > 0 {
		work := map[string]int{}
		queued := 0
		for i := range t.Workers {
			work[clean(string(t.Workers[i].State), nameRunes)]++
			queued += t.Workers[i].Queue
		}
		var parts []string
		for state, n := range work {
			parts = append(parts, fmt.Sprintf("%s %s", grouped(n), state))
		}
		slices.Sort(parts)
		t.line(0, "%s: %s; %s in their queues", count(len(t.Workers), "worker"),
			strings.Join(firstOf(parts, 10), ", "), count(queued, "fiber"))
	}
}

func (t *tree) explanations(why []snapshot.Explanation) {
	if len(why) == 0 {
		return
	}
	t.line(0, "\nWhat is wrong")
	for _, e := range firstOf(why, mostExplained) {
		how := "likely: "
		if e.Certain {
			how = "certain:"
		}
		t.line(1, "%s [%s] %s", how, clean(string(e.Kind), nameRunes), clean(e.Text, problemBytes))
		var more []string
		if !e.Since.IsZero() && !e.SaysAge {
			more = append(more, "for "+t.since(e.Since))
		}
		if !t.saysAll(&e) {
			more = append(more, "fibers "+t.list(e.Fibers))
		}
		if len(more) > 0 {
			t.line(1, "         %s", strings.Join(more, "; "))
		}
	}
	if more := len(why) - mostExplained; more > 0 {
		t.line(1, "and %s more", grouped(more))
	}
}

// saysAll reports whether the text of an explanation has the names of all its fibers.
func (t *tree) saysAll(e *snapshot.Explanation) bool {
	return !slices.ContainsFunc(e.Fibers, func(id uint64) bool {
		return t.names[id] == "" || !strings.Contains(e.Text, t.names[id])
	})
}

// list names fibers.
func (t *tree) list(ids []uint64) string {
	var names []string
	for _, id := range firstOf(ids, mostHolders) {
		names = append(names, t.named(id))
	}
	if more := len(ids) - mostHolders; more > 0 {
		names = append(names, fmt.Sprintf("and %s more", grouped(more)))
	}
	return strings.Join(names, ", ")
}

// named returns the name and the number of a fiber.
func (t *tree) named(id uint64) string {
	name, ok := t.names[id]
	if !ok {
		return number(id)
	}
	return numberedName(clean(name, nameRunes), id)
}

// numberedName returns the name and the number of a fiber. The number of a goroutine is in its name.
func numberedName(name string, id uint64) string {
	if id >= snapshot.FirstGoroutine {
		return cmp.Or(name, number(id))
	}
	return strings.TrimSpace(name + " " + number(id))
}

// number returns the number of a fiber or a goroutine.
func number(id uint64) string {
	if id >= snapshot.FirstGoroutine {
		return "goroutine[" + strconv.FormatUint(id-snapshot.FirstGoroutine, 10) + "]"
	}
	return "#" + strconv.FormatUint(id, 10)
}

func (t *tree) since(since time.Time) string { return age(max(0, t.Taken.Sub(since))) }

func (t *tree) fibers() {
	t.line(0, "\nNurseries and fibers")
	if len(t.Fibers) == len(t.goroutines) {
		t.line(1, "none")
		return
	}
	known := map[uint64]bool{}
	for i := range t.Nurseries {
		known[t.Nurseries[i].ID] = true
	}
	for i := range t.Nurseries {
		if n := &t.Nurseries[i]; n.Parent == 0 || !known[n.Parent] || t.names[n.Owner] == "" && !t.shows(n.Owner) {
			t.nursery(n, 1)
		}
	}
	for i := range t.Nurseries { // nurseries in a cycle, which only a wrong snapshot has
		t.nursery(&t.Nurseries[i], 1)
	}
	var rest []*snapshot.Fiber
	for i := range t.Fibers {
		if f := &t.Fibers[i]; !known[f.Nursery] && f.State != snapshot.StateGoroutine {
			rest = append(rest, f)
		}
	}
	if len(rest) > 0 {
		t.line(1, "fibers of nurseries that are not in the snapshot")
		t.group(rest, 2)
	}
	if t.left > 0 {
		t.line(1, "and %s more, which the page and snapshot.json show", count(t.left, "fiber"))
	}
}

// others writes the goroutines that are not fibers. Their lines are part of those of the tree.
func (t *tree) others() {
	t.goroutinesThat("wait", t.goroutines)
	t.goroutinesThat("hold objects, and wait for none", t.outside)
}

func (t *tree) goroutinesThat(do string, all []*snapshot.Fiber) {
	if len(all) == 0 {
		return
	}
	t.line(0, "\nOther goroutines that %s", do)
	t.left = 0
	t.group(all, 1)
	if t.left > 0 {
		t.line(1, "and %s more, which the page and snapshot.json show", count(t.left, "goroutine"))
	}
}

// shows reports whether a fiber is in the snapshot.
func (t *tree) shows(id uint64) bool {
	_, ok := t.names[id]
	return ok
}

// nursery writes a nursery and everything below it.
func (t *tree) nursery(n *snapshot.Nursery, depth int) {
	if t.done[n.ID] {
		return
	}
	t.done[n.ID] = true
	members := t.members[n.ID]
	if t.written >= treeLines || depth >= mostDeep {
		t.left += len(members)
		for _, f := range members {
			for _, below := range t.owned[f.ID] {
				if !t.done[below.ID] {
					t.nursery(below, min(depth+1, mostDeep))
				}
			}
		}
		return
	}
	t.written++
	t.line(depth, "%s", t.describe(n))
	t.group(members, depth+1)
}

func (t *tree) describe(n *snapshot.Nursery) string {
	what := "nursery"
	if n.Parent == 0 {
		what = "run"
	}
	parts := []string{fmt.Sprintf("%s %d", what, n.ID)}
	children := count(n.Children, "fiber")
	if n.Limit > 0 {
		children += fmt.Sprintf(" of at most %s", grouped(n.Limit))
	}
	parts = append(parts, children)
	if !n.Deadline.IsZero() {
		if left := n.Deadline.Sub(t.Taken); left >= 0 {
			parts = append(parts, "ends in "+age(left))
		} else {
			parts = append(parts, "should have ended "+age(-left)+" ago")
		}
	}
	if n.Ended {
		parts = append(parts, "cancelled: "+clean(cmp.Or(n.Cause, "cause not known"), textRunes))
	}
	return strings.Join(parts, ", ")
}

// group writes fibers. Fibers that do the same are one line.
func (t *tree) group(fibers []*snapshot.Fiber, depth int) {
	for _, g := range t.alike(fibers) {
		if t.written >= treeLines {
			t.left += len(g)
			for _, f := range g {
				for _, n := range t.owned[f.ID] {
					t.nursery(n, depth+1)
				}
			}
			continue
		}
		t.written++
		t.line(depth, "%s", t.doing(g))
		if len(g) == 1 {
			for _, n := range t.owned[g[0].ID] {
				t.nursery(n, depth+1)
			}
		}
	}
}

// opens reports whether a fiber has opened a nursery that must be written below it.
func (t *tree) opens(f *snapshot.Fiber) bool {
	return slices.ContainsFunc(t.owned[f.ID], func(n *snapshot.Nursery) bool { return !t.done[n.ID] })
}

// alike groups fibers that do the same. The groups are in the order of their first fibers. A fiber that has opened a
// nursery has a group of its own.
func (t *tree) alike(fibers []*snapshot.Fiber) [][]*snapshot.Fiber {
	var groups [][]*snapshot.Fiber
	at := map[string]int{}
	var key []byte
	for _, f := range fibers {
		if t.opens(f) {
			groups = append(groups, []*snapshot.Fiber{f})
			continue
		}
		key = t.groups.AppendKey(key[:0], f)
		if i, ok := at[string(key)]; ok {
			groups[i] = append(groups[i], f)
			continue
		}
		at[string(key)] = len(groups)
		groups = append(groups, []*snapshot.Fiber{f})
	}
	return groups
}

// place returns a source position with only its last directory.
func place(at string) string {
	if i := strings.LastIndexAny(at, `/\`); i > 0 {
		at = at[strings.LastIndexAny(at[:i], `/\`)+1:]
	}
	return clean(at, nameRunes)
}

// doing says what a group of fibers does.
func (t *tree) doing(g []*snapshot.Fiber) string {
	f := g[0]
	oldest, youngest := f, f
	for _, other := range g {
		switch {
		case other.Since.IsZero():
		case oldest.Since.IsZero():
			oldest, youngest = other, other
		case other.Since.Before(oldest.Since):
			oldest = other
		case other.Since.After(youngest.Since):
			youngest = other
		}
	}
	var b strings.Builder
	verb := "waits "
	if len(g) == 1 {
		fmt.Fprintf(&b, "%s: ", t.named(f.ID))
	} else {
		stem, _ := snapshot.Stem(f.Name)
		name := clean(stem, nameRunes)
		if stem != f.Name {
			name += "[...]"
		}
		fmt.Fprintf(&b, "%s x %s: ", grouped(len(g)), name)
		verb = "wait "
	}
	if len(f.Wait) == 0 {
		b.WriteString(clean(string(f.State), nameRunes))
		if in := f.Blocked(); in != "" {
			fmt.Fprintf(&b, " in %s", clean(in, nameRunes))
		}
	}
	for i, w := range firstOf(f.Wait, 4) {
		if i > 0 {
			b.WriteString(", or ")
		} else {
			b.WriteString(verb)
		}
		b.WriteString(clean(w.Text, textRunes))
		various := func(other *snapshot.Fiber) bool { return other.Wait[i].Object != w.Object }
		if strings.Contains(w.Text, number(w.Object)) && slices.ContainsFunc(g, various) {
			b.WriteString(" or others without a name")
			continue
		}
		if by := t.holders[w.Object]; by != "" {
			b.WriteString(", " + by)
		}
	}
	if more := len(f.Wait) + f.More - 4; more > 0 {
		fmt.Fprintf(&b, ", or %d others", more)
	}
	if !oldest.Since.IsZero() {
		if len(g) == 1 {
			fmt.Fprintf(&b, ", for %s", t.since(oldest.Since))
		} else {
			fmt.Fprintf(&b, ", the oldest %s for %s", number(oldest.ID), t.since(oldest.Since))
			if lasts := t.Taken.Sub(oldest.Since); lasts >= time.Second && t.Taken.Sub(youngest.Since) < lasts/2 {
				fmt.Fprintf(&b, ", the youngest for %s", t.since(youngest.Since))
			}
		}
	}
	if f.At != "" {
		fmt.Fprintf(&b, ", at %s", place(f.At))
	}
	if f.Spawned != "" {
		fmt.Fprintf(&b, "; from %s", place(f.Spawned))
	}
	if f.System {
		b.WriteString(" (of coir)")
	}
	return b.String()
}

func (t *tree) objects() {
	if len(t.Objects) == 0 {
		return
	}
	t.line(0, "\nWhat they wait for")
	groups := t.groups.Objects(t.Objects)
	all := make([]*snapshot.ObjectGroup, len(groups))
	for i := range groups {
		all[i] = &groups[i]
	}
	slices.SortStableFunc(all, func(a, b *snapshot.ObjectGroup) int { // those that should be short first, then by age
		if x := a.Contended(); x != b.Contended() {
			if x {
				return -1
			}
			return 1
		}
		if a.Oldest.IsZero() != b.Oldest.IsZero() {
			return cmp.Compare(b.Oldest.UnixNano(), a.Oldest.UnixNano())
		}
		return a.Oldest.Compare(b.Oldest)
	})
	for _, o := range firstOf(all, objectLines) {
		t.line(1, "%s", t.object(o))
		for _, x := range firstOf(o.Tickets, ticketLines) {
			t.line(2, "%s, open for %s", cmp.Or(clean(x.Name, nameRunes), "a ticket"), t.since(x.Opened))
		}
	}
	more := 0
	for _, o := range all[min(len(all), objectLines):] {
		more += o.N
	}
	if more > 0 {
		t.line(1, "and %s more", count(more, "object"))
	}
}

// fills lists the kinds of objects that have a length, each with a word that follows it.
var fills = map[string]string{"channel": "", "subscription": "", snapshot.KindPool: " lent", "desk": " open"}

// heldBy returns the words between an object and its holders.
func heldBy(o *snapshot.Object) string {
	if o.Kind == snapshot.KindPool {
		return "lent to"
	}
	return "held by"
}

// held says who holds an object, in words that follow it: where each holder is, and since when each snapshot has shown
// it, if that is known.
func (t *tree) held(o *snapshot.Object) string {
	if len(o.Holders) == 0 {
		return ""
	}
	var all []string
	for i, id := range firstOf(o.Holders, mostHolders) {
		var more []string
		if at := t.lines[id]; at != "" {
			more = append(more, "at "+place(at))
		}
		if i < len(o.HeldSince) && !o.HeldSince[i].IsZero() {
			more = append(more, "in each snapshot for "+t.since(o.HeldSince[i]))
		}
		text := t.named(id)
		if len(more) > 0 {
			text += " (" + strings.Join(more, ", ") + ")"
		}
		all = append(all, text)
	}
	if more := len(o.Holders) - mostHolders; more > 0 {
		all = append(all, fmt.Sprintf("and %s more", grouped(more)))
	}
	return heldBy(o) + " " + strings.Join(all, ", ")
}

func (t *tree) object(o *snapshot.ObjectGroup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", clean(o.Kind, nameRunes), clean(o.Name, nameRunes))
	name := strings.TrimSpace(b.String()) + " #" + strconv.FormatUint(o.ID, 10)
	if o.N > 1 {
		name = clean(o.Title(), nameRunes)
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	word, ok := fills[o.Kind]
	switch {
	case !ok || o.N > 1:
	case o.Cap < 0:
		add("%s%s, no limit", grouped(o.Len), word)
	case o.Cap == 0:
		add("no buffer")
	default:
		add("%s of %s%s", grouped(o.Len), grouped(o.Cap), word)
	}
	if o.Note != "" {
		add("%s", clean(o.Note, textRunes))
	}
	if o.Closed {
		add("closed")
	}
	switch by := t.held(&o.Object); {
	case by == "" || o.N > 1:
	case o.Kind == snapshot.KindPool && len(parts) > 0: // 4 of 4 lent to
		parts[0] += strings.TrimPrefix(by, "lent")
	default:
		add("%s", by)
	}
	receive := "to receive"
	if o.Kind == snapshot.KindPool {
		receive = "for a value"
	}
	for _, w := range []struct {
		n    int
		what string
	}{{o.Senders, "to send"}, {o.Receivers, receive}, {o.Waiters, ""}} {
		if w.n > 0 {
			verb := "wait"
			if w.n == 1 {
				verb = "waits"
			}
			add("%s", strings.TrimSpace(fmt.Sprintf("%s %s %s", grouped(w.n), verb, w.what)))
		}
	}
	if !o.Oldest.IsZero() {
		add("the oldest for %s", t.since(o.Oldest))
	}
	counters := o.Counters()
	used := o.Kind != snapshot.KindPool &&
		slices.ContainsFunc(counters, func(c snapshot.Counter) bool { return c.Main && c.Value > 0 })
	for _, c := range counters {
		switch {
		case c.Main && !used: // the main counters of a pool count its permits
		case c.Main || c.Value > 0:
			add("%s %s", grouped(c.Value), c.Words)
		}
	}
	if o.Made != "" {
		add("made at %s", place(o.Made))
	}
	if o.Trouble != "" {
		add("trouble for %s: %s", t.since(o.TroubleSince), clean(o.Trouble, textRunes))
	}
	text := name
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// age returns a duration for people: 3.1s, 12m5s, 2d4h.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + age(-d)
	case d < time.Microsecond:
		return strconv.FormatInt(int64(d), 10) + "ns"
	case d < time.Millisecond:
		return d.Round(100 * time.Nanosecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Truncate(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return parts(d, time.Minute, "m", time.Second, "s")
	case d < day:
		return parts(d, time.Hour, "h", time.Minute, "m")
	}
	return parts(d, day, "d", time.Hour, "h")
}

// parts returns a duration in two units, without the smaller one if it is 0.
func parts(d, large time.Duration, l string, small time.Duration, s string) string {
	text := strconv.Itoa(int(d/large)) + l
	if rest := d % large / small; rest > 0 {
		text += strconv.Itoa(int(rest)) + s
	}
	return text
}

// grouped returns a number with commas between thousands.
func grouped[T int | int64 | uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count[T int | int64 | uint64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}
