package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coir-go/coir/snapshot"
)

// The orders of fibers.
const (
	byProblem = iota // first those with problems, then those that wait for what others have, then by age
	byName
	byState
	byObject
	byAge
	byCount // only for groups
)

// fibersScreen lists fibers: all of them, or some.
type fibersScreen struct {
	list
	grouped bool
	of      string // the title, if the screen does not list all fibers
	only    func(d *data, f *fiber) bool
	number  uint64 // the object that the screen shows, or 0

	rows   []group
	roles  map[uint64]string // the roles of fibers; see involved
	widest int               // the width of the widest name
	ages   int               // the width of the column with ages
	counts bool              // a row has several fibers, so there is a column with their number
}

func (s *fibersScreen) title(m *model) string {
	if s.number == 0 {
		return cmp.Or(s.of, "fibers")
	}
	if o := m.objectAt(s.number); o != nil {
		return objectName(o)
	}
	return fmt.Sprintf("object #%d", s.number)
}

func (s *fibersScreen) searches() bool { return true }

func (s *fibersScreen) orders() []string {
	all := []string{"problem", "name", "state", "object", "age", "count"}
	if !s.grouped {
		all = all[:byCount]
	}
	return all
}

func (s *fibersScreen) keys() string {
	if s.number != 0 {
		return "enter open  s sort  / search  f follow  esc back"
	}
	return "enter open  s sort  / search  g group  f follow"
}

func (s *fibersScreen) build(m *model) {
	d := m.data
	query := s.wanted()
	s.roles = s.involved(d)
	fibers := make([]*fiber, 0, len(d.all))
	for i := range d.all {
		f := &d.all[i]
		if s.number != 0 && s.roles[f.ID] == "" && !waitsFor(f, s.number) || s.only != nil && !s.only(d, f) {
			continue
		}
		if query == "" || d.matches(f, query) {
			fibers = append(fibers, f)
		}
	}
	s.order = min(s.order, len(s.orders())-1)
	if s.grouped {
		s.rows = d.groups(fibers, func(f *fiber) bool { return s.roles[f.ID] != "" })
	} else {
		s.rows = s.rows[:0]
		for _, f := range fibers {
			s.rows = append(s.rows, single(f))
		}
	}
	s.widest, s.ages, s.counts = 0, ageWidth, false
	for i := range s.rows {
		s.counts = s.counts || s.rows[i].n > 1
		s.widest = max(s.widest, columns(s.rows[i].name()))
		if d.spread(&s.rows[i]) {
			s.ages = agesWidth
		}
	}
	s.sort()
}

// sort sorts the rows.
func (s *fibersScreen) sort() {
	compare := [...]func(a, b group) int{
		byProblem: func(a, b group) int {
			return cmp.Or(cmp.Compare(a.urgent, b.urgent), older(a.oldest.Since, b.oldest.Since))
		},
		byAge:   func(a, b group) int { return older(a.oldest.Since, b.oldest.Since) },
		byName:  func(a, b group) int { return cmp.Or(strings.Compare(a.stem, b.stem), cmp.Compare(a.index, b.index)) },
		byState: func(a, b group) int { return strings.Compare(string(a.State), string(b.State)) },
		byObject: func(a, b group) int {
			switch {
			case a.object == b.object:
				return older(a.oldest.Since, b.oldest.Since)
			case a.object == nil: // after fibers that wait for an object
				return 1
			case b.object == nil:
				return -1
			}
			return cmp.Or(strings.Compare(a.object.Name, b.object.Name), cmp.Compare(a.object.ID, b.object.ID))
		},
		byCount: func(a, b group) int { return cmp.Compare(b.n, a.n) },
	}[s.order]
	slices.SortFunc(s.rows, func(a, b group) int {
		return cmp.Or(s.direction(compare(a, b)), cmp.Compare(a.ID, b.ID))
	})
}

// holds is the role of a fiber that has locked the object.
const holds = "holds it"

// involved returns the roles of fibers that use the object of the screen, other than waiting for it.
func (s *fibersScreen) involved(d *data) map[uint64]string {
	o := d.objects[s.number]
	if o == nil {
		return nil
	}
	roles := map[uint64]string{o.Sender: "sent last", o.Receiver: "received last"}
	for _, id := range o.Holders {
		roles[id] = holds
	}
	delete(roles, 0)
	return roles
}

// waitsFor reports whether a fiber waits for an object.
func waitsFor(f *fiber, object uint64) bool {
	return slices.ContainsFunc(f.Wait, func(w snapshot.Wait) bool { return w.Object == object })
}

func (s *fibersScreen) len() int { return len(s.rows) }

func (s *fibersScreen) id(i int) rowID {
	if g := &s.rows[i]; g.n > 1 {
		return rowID{'g', 0, g.key}
	}
	return rowID{'f', s.rows[i].ID, ""}
}

// fromWidth returns the width of the column SPAWNED AT, or 0 if the terminal is too narrow for it.
func fromWidth(width int) int {
	if width < 100 {
		return 0
	}
	return min(30, width/5)
}

func (s *fibersScreen) head(_ *model, width int) string {
	return s.line(width, "AGE", "COUNT", "FIBER", "WHAT IT DOES", "SPAWNED AT")
}

// line joins columns.
func (s *fibersScreen) line(width int, age, n, name, does, from string) string {
	text := right(age, s.ages) + "  "
	if s.counts {
		text += right(n, 6) + "  "
	}
	text += left(name, min(max(s.widest, 5), max(12, width*3/10))) + "  "
	if w := fromWidth(width); w > 0 {
		room := width - columns(text) - w - 2
		return text + left(fit(does, room), room) + "  " + cut(from, w)
	}
	return text + fit(does, width-columns(text))
}

// fit returns a text about a wait in at most n columns. If it is too long, it cuts what the fiber waits for rather than
// who holds that.
func fit(s string, n int) string {
	const least = 12 // columns that are left of what it waits for
	if columns(s) <= n {
		return s
	}
	for _, words := range []string{heldBy, lentTo} {
		if i := strings.Index(s, words); i >= 0 {
			who := cut(s[i:], n-least)
			return cut(s[:i], n-columns(who)) + who
		}
	}
	return cut(s, n)
}

func (s *fibersScreen) row(m *model, i, width int) []string {
	g := &s.rows[i]
	does := m.data.doing(g.fiber, g.n > 1)
	if g.various {
		does += " or others without a name"
	}
	if role := s.roles[g.ID]; role != "" && (role == holds || !waitsFor(g.fiber, s.number)) {
		does = role + ", " + does
	}
	n := ""
	if g.n > 1 {
		n = grouped(g.n)
	}
	return []string{s.line(width, m.data.lasts(g), n, g.name(), does, g.Spawned)}
}

func (s *fibersScreen) mark(_ *model, i int) string { return s.rows[i].mark }

func (s *fibersScreen) enter(_ *model, i int) screen {
	g := &s.rows[i]
	if g.n == 1 {
		return &fiberScreen{number: g.ID}
	}
	return &fibersScreen{of: grouped(g.n) + " x " + g.name(), only: inGroup(g.key)}
}

// inGroup returns a function that reports whether a fiber of a snapshot is in the group with a key.
func inGroup(key string) func(*data, *fiber) bool {
	var b []byte
	return func(d *data, f *fiber) bool {
		b = d.alike.AppendKey(b[:0], f.Fiber)
		return string(b) == key
	}
}

func (s *fibersScreen) object(m *model, i int) *snapshot.Object {
	if s.number != 0 {
		return m.objectAt(s.number)
	}
	return s.rows[i].object
}

// intro describes the object of the screen.
func (s *fibersScreen) intro(m *model, width int) []string {
	if s.number == 0 {
		return nil
	}
	return objectText(m, s.number, width)
}

// fiberScreen is the page of one fiber.
type fiberScreen struct {
	plain
	number uint64
	asked  bool            // the stack was requested
	with   *snapshot.Fiber // the fiber with its stack
	failed string          // why there is no stack
	next   string          // the name of what the key enter opens
}

func (s *fiberScreen) title(m *model) string { return m.data.named(s.number) }

func (s *fiberScreen) keys() string {
	text := "r read again  f follow  esc back"
	if s.next != "" {
		text = "enter " + s.next + "  " + text
	}
	return text
}

// ask requests the stack. It is not requested with each snapshot, because the program stops while its stacks are read.
func (s *fiberScreen) ask(m *model) tea.Cmd {
	if s.asked || !m.from.live() {
		return nil
	}
	s.asked = true
	ctx, from, id := m.ctx, m.from, s.number
	return func() tea.Msg {
		f, err := from.fiber(ctx, id)
		return opened{id, f, err}
	}
}

// read stores the answer to a request for the stack.
func (s *fiberScreen) read(o opened) {
	s.asked, s.with, s.failed = false, o.fiber, ""
	if o.err != nil {
		s.with, s.failed = nil, o.err.Error()
		if p, ok := o.err.(*problem); ok {
			s.failed = p.what
		}
	}
}

func (s *fiberScreen) build(m *model) {
	s.text = s.text[:0]
	_, s.next = s.below(m)
	d, width := m.data, m.width
	f := d.fibers[s.number]
	add := func(name, text string) {
		if text != "" {
			s.add(label(name), text, width)
		}
	}
	if f == nil {
		add("", fmt.Sprintf("Fiber %d has ended, or the snapshot does not have it.", s.number))
		return
	}
	for i := range d.why {
		if e := &d.why[i]; slices.Contains(e.Fibers, f.ID) {
			s.add(whyHead(e), whyText(e), width)
			s.line("")
		}
	}
	s.waits(d, f, add)
	if f.Foreign {
		add("", "its context is not of coir: the end of that also ends the wait")
	}
	path := d.path(f)
	for i, n := range path {
		name := "nursery"
		if i > 0 {
			name = ""
		}
		text := strings.Repeat("  ", min(i, 10)) + d.nurseryText(n)
		if n.Parent != 0 {
			text += ", opened by " + d.named(n.Owner)
		}
		s.line(label(name) + text)
	}
	if f.System {
		add("belongs", "to coir, not to the program")
	}
	add("spawned", f.Spawned)
	add("progress", "it has begun to wait "+count(f.Waits, "time"))
	at, in := f.At, f.Blocked()
	if s.with != nil {
		at, in = cmp.Or(s.with.At, at), s.with.Blocked()
	}
	switch {
	case in == "":
	case at == "":
		add("is in", in)
	default:
		at += ", in " + in
	}
	add("is at", at)
	s.stack(f)
}

// label returns the beginning of a line of details.
func label(name string) string { return "  " + left(name, 10) }

// waits describes what the fiber waits for.
func (s *fiberScreen) waits(d *data, f *fiber, add func(name, text string)) {
	lasts := ""
	if !f.Since.IsZero() {
		lasts = ", for " + d.since(f.Since)
	}
	if !f.Until.IsZero() {
		lasts += ", at most for another " + age(max(0, f.Until.Sub(d.Taken)))
	}
	if len(f.Wait) == 0 {
		add("state", string(f.State)+lasts)
	}
	for i := range f.Wait {
		name, text := "waits", d.waitText(&f.Wait[i])
		if i > 0 {
			name = "or"
		}
		if i == len(f.Wait)-1 {
			if f.More > 0 {
				text += fmt.Sprintf(", or %s others", grouped(f.More))
			}
			text += lasts
		}
		add(name, text)
	}
	for i := range f.Wait {
		if o := d.objects[f.Wait[i].Object]; o != nil {
			text := objectName(o)
			if isChannel(o) {
				text += ", " + fill(o)
			}
			add("object", text+", "+d.held(o))
		}
	}
}

// stack adds the stack of the fiber.
func (s *fiberScreen) stack(f *fiber) {
	s.line("")
	text := f.Stack
	if s.with != nil {
		text = s.with.Stack
	}
	switch {
	case s.failed != "":
		s.line("  no stack: " + s.failed)
	case text != "":
		s.line("  stack")
		for line := range strings.SplitSeq(text, "\n") {
			s.line("  " + line)
		}
	case s.asked:
		s.line("  reading the stack")
	case s.with == nil:
		s.line("  no stack: the dump was written without ?stacks=1")
	default:
		s.line("  no stack: the fiber has not begun")
	}
}

func (s *fiberScreen) enter(m *model, _ int) screen {
	next, _ := s.below(m)
	return next
}

// below returns the screen of the object, the fiber or the nursery that the fiber waits for, and its name, or nil if
// there is none.
func (s *fiberScreen) below(m *model) (next screen, what string) {
	if o := s.object(m, 0); o != nil {
		return &fibersScreen{grouped: true, number: o.ID}, "its object"
	}
	f := m.data.fibers[s.number]
	if f == nil {
		return nil, ""
	}
	for i := range f.Wait {
		w := &f.Wait[i]
		if m.data.fibers[w.Fiber] != nil {
			return &fiberScreen{number: w.Fiber}, "that fiber"
		}
		if !slices.ContainsFunc(m.data.members[w.Nursery], func(c *fiber) bool { return c != f }) {
			continue
		}
		what = "the nursery"
		if w.Kind == snapshot.WaitJoin {
			what = "its children"
		}
		return &fibersScreen{
			grouped: true, of: fmt.Sprintf("fibers of nursery %d", w.Nursery),
			only: func(_ *data, c *fiber) bool { return c.Nursery == w.Nursery && c.ID != s.number },
		}, what
	}
	return nil, ""
}

func (s *fiberScreen) object(m *model, _ int) *snapshot.Object {
	if f := m.data.fibers[s.number]; f != nil {
		return f.object
	}
	return nil
}

// path returns the nurseries that a fiber is in, the outermost first.
func (d *data) path(f *fiber) []*snapshot.Nursery {
	var path []*snapshot.Nursery
	seen := map[uint64]bool{}
	for id := f.Nursery; id != 0 && !seen[id]; {
		n := d.nurseries[id]
		if n == nil {
			break
		}
		seen[id] = true
		path = append(path, n)
		id = n.Parent
	}
	slices.Reverse(path)
	return path
}
