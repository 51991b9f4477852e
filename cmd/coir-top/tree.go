package main

import (
	"strings"

	"github.com/coir-go/coir/snapshot"
)

// mostDeep is the number of levels that the tree shows. Deeper nurseries begin again at the left.
const mostDeep = 1000

// treeScreen shows the nurseries as a tree.
type treeScreen struct {
	list
	shut map[uint64]bool // the nurseries that are folded

	rows  []treeRow
	done  map[uint64]bool // nurseries that have a row, or are inside a folded nursery
	query string
	ages  int // the width of the column with ages
}

// treeRow is a nursery, a fiber, or fibers of one nursery that do the same.
type treeRow struct {
	depth   int
	nursery *snapshot.Nursery // or nil
	group   group             // or empty
	text    string            // the text of a row that is neither
}

func (s *treeScreen) title(*model) string { return "nurseries" }
func (s *treeScreen) orders() []string    { return nil }
func (s *treeScreen) searches() bool      { return true }
func (s *treeScreen) keys() string {
	return "enter open, fold  / search  f follow"
}
func (s *treeScreen) intro(*model, int) []string { return nil }
func (s *treeScreen) len() int                   { return len(s.rows) }

func (s *treeScreen) build(m *model) {
	d := m.data
	s.rows, s.done, s.query, s.ages = s.rows[:0], map[uint64]bool{}, s.wanted(), ageWidth
	for i := range d.Nurseries {
		if n := &d.Nurseries[i]; n.Parent == 0 || d.nurseries[n.Parent] == nil || d.fibers[n.Owner] == nil {
			s.nursery(d, n, 0, false)
		}
	}
	for i := range d.Nurseries { // nurseries that are too deep, or in a cycle, which only a wrong snapshot has
		s.nursery(d, &d.Nurseries[i], 0, false)
	}
	var rest, goroutines []*fiber
	for i := range d.all {
		switch f := &d.all[i]; {
		case f.State == snapshot.StateGoroutine:
			goroutines = append(goroutines, f)
		case d.nurseries[f.Nursery] == nil:
			rest = append(rest, f)
		}
	}
	if len(rest) > 0 {
		s.rows = append(s.rows, treeRow{text: "fibers of nurseries that are not in the snapshot"})
		s.fibers(d, rest, 1, false)
	}
	if len(goroutines) > 0 {
		s.rows = append(s.rows, treeRow{text: "other goroutines that wait"})
		s.fibers(d, goroutines, 1, false)
	}
	if s.query != "" {
		s.filter(d)
	}
}

// nursery adds the rows of a nursery, and those below it.
func (s *treeScreen) nursery(d *data, n *snapshot.Nursery, depth int, hidden bool) {
	if s.done[n.ID] || depth >= mostDeep {
		return
	}
	s.done[n.ID] = true
	if !hidden {
		s.rows = append(s.rows, treeRow{depth: depth, nursery: n})
	}
	s.fibers(d, d.members[n.ID], depth+1, hidden || s.shut[n.ID] && s.query == "")
}

// fibers adds the rows of fibers, and those of the nurseries that they have opened.
func (s *treeScreen) fibers(d *data, fibers []*fiber, depth int, hidden bool) {
	for _, g := range d.groups(fibers, func(f *fiber) bool { return len(d.owned[f.ID]) > 0 }) {
		if !hidden {
			s.rows = append(s.rows, treeRow{depth: depth, group: g})
			if d.spread(&g) {
				s.ages = agesWidth
			}
		}
		if g.n == 1 {
			for _, n := range d.owned[g.ID] {
				s.nursery(d, n, depth+1, hidden)
			}
		}
	}
}

// filter keeps only the rows that match the search, and the rows above them in the tree.
func (s *treeScreen) filter(d *data) {
	var kept []treeRow
	above := 0 // the next row with a smaller depth than this is above a row that is kept
	for i := len(s.rows) - 1; i >= 0; i-- {
		r := s.rows[i]
		if r.depth < above || s.matches(d, &r) {
			kept = append(kept, r)
			above = r.depth
		}
	}
	s.rows = s.rows[:0]
	for i := len(kept) - 1; i >= 0; i-- {
		s.rows = append(s.rows, kept[i])
	}
}

// matches reports whether a row matches the search.
func (s *treeScreen) matches(d *data, r *treeRow) bool {
	if r.group.n == 1 {
		return d.matches(r.group.fiber, s.query)
	}
	return match(s.query, s.text(d, r), r.from())
}

// from returns the position at which the fiber of a row was spawned.
func (r *treeRow) from() string {
	if r.group.n == 0 {
		return ""
	}
	return r.group.Spawned
}

// text returns the text of a row without indentation and age.
func (s *treeScreen) text(d *data, r *treeRow) string {
	switch {
	case r.nursery != nil && s.shut[r.nursery.ID] && s.query == "":
		return "+ " + d.nurseryText(r.nursery)
	case r.nursery != nil:
		return "- " + d.nurseryText(r.nursery)
	case r.text != "":
		return r.text
	case r.group.n > 1:
		return grouped(r.group.n) + " x " + r.group.name() + ": " + d.doing(r.group.fiber, true)
	}
	return r.group.name() + ": " + d.doing(r.group.fiber, false)
}

func (s *treeScreen) id(i int) rowID {
	switch r := &s.rows[i]; {
	case r.nursery != nil:
		return rowID{'n', r.nursery.ID, ""}
	case r.text != "":
		return rowID{'t', 0, r.text}
	case r.group.n > 1:
		return rowID{'g', r.group.Nursery, r.group.key}
	default:
		return rowID{'f', r.group.ID, ""}
	}
}

func (s *treeScreen) head(_ *model, width int) string {
	return s.line(width, "AGE", "NURSERIES AND FIBERS", "SPAWNED AT")
}

func (s *treeScreen) line(width int, age, text, from string) string {
	head := right(age, s.ages) + "  "
	if w := fromWidth(width); w > 0 {
		return head + left(text, width-columns(head)-w-2) + "  " + cut(from, w)
	}
	return head + cut(text, width-columns(head))
}

func (s *treeScreen) row(m *model, i, width int) []string {
	r := &s.rows[i]
	lasts := ""
	if r.group.n > 0 {
		lasts = m.data.lasts(&r.group)
	}
	indent := strings.Repeat("  ", min(r.depth, width/6))
	return []string{s.line(width, lasts, indent+s.text(m.data, r), r.from())}
}

func (s *treeScreen) mark(_ *model, i int) string { return s.rows[i].group.mark }

// fold folds or unfolds a nursery. If row i is a fiber and shut is set, fold moves the cursor to the fiber's nursery.
func (s *treeScreen) fold(m *model, i int, shut bool) {
	n := s.rows[i].nursery
	if n == nil {
		for i >= 0 && shut {
			if r := &s.rows[i]; r.nursery != nil && r.depth < s.rows[s.cursor].depth {
				m.move(i - s.cursor)
				return
			}
			i--
		}
		return
	}
	delete(s.shut, n.ID)
	if shut {
		s.shut[n.ID] = true
	}
	m.build()
}

func (s *treeScreen) enter(_ *model, i int) screen {
	r := &s.rows[i]
	if r.group.n == 0 {
		return nil
	}
	if r.group.n == 1 {
		return &fiberScreen{number: r.group.ID}
	}
	in := r.group.Nursery
	same := inGroup(r.group.key)
	return &fibersScreen{of: grouped(r.group.n) + " x " + r.group.name(), only: func(d *data, f *fiber) bool {
		return f.Nursery == in && same(d, f)
	}}
}

func (s *treeScreen) object(_ *model, i int) *snapshot.Object {
	if g := &s.rows[i].group; g.n > 0 {
		return g.object
	}
	return nil
}
