package main

import (
	"strings"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// screen is the content of the middle of the terminal. It consists of rows, of which only the visible ones are drawn.
type screen interface {
	state() *list
	title(m *model) string
	orders() []string // the orders in which the rows can be sorted
	searches() bool   // whether the rows can be searched

	// build makes the rows again after the snapshot, the order, the search or the size has changed.
	build(m *model)
	len() int
	id(i int) rowID

	intro(m *model, width int) []string      // lines above the rows
	head(m *model, width int) string         // the titles of the columns
	row(m *model, i, width int) []string     // the lines of row i
	mark(m *model, i int) string             // certain, likely or ""
	enter(m *model, i int) screen            // the screen that Enter opens, or nil
	object(m *model, i int) *snapshot.Object // the object that f follows, or nil
	keys() string                            // the most important keys
}

// list is the state of a screen with rows.
type list struct {
	cursor, top int
	moved       bool  // the user has moved the cursor, so it stays on its row
	at          rowID // that row
	order       int
	backward    bool
	query       string
}

// rowID identifies the content of a row. It is the same in each snapshot.
type rowID struct {
	kind byte
	n    uint64
	text string
}

func (l *list) state() *list { return l }

// wanted returns the text to search for, in lower case.
func (l *list) wanted() string { return strings.ToLower(strings.TrimSpace(l.query)) }

// direction reverses a comparison if the order is backward.
func (l *list) direction(c int) int {
	if l.backward {
		return -c
	}
	return c
}

// plain is a screen whose rows are lines of text. The cursor is at the first line that is shown.
type plain struct {
	list
	text []string
}

func (p *plain) orders() []string                    { return nil }
func (p *plain) searches() bool                      { return false }
func (p *plain) len() int                            { return len(p.text) }
func (p *plain) id(i int) rowID                      { return rowID{n: uint64(i)} }
func (p *plain) intro(*model, int) []string          { return nil }
func (p *plain) head(*model, int) string             { return "" }
func (p *plain) row(m *model, i, _ int) []string     { return []string{cut(p.text[i], m.width)} }
func (p *plain) mark(*model, int) string             { return "" }
func (p *plain) enter(*model, int) screen            { return nil }
func (p *plain) object(*model, int) *snapshot.Object { return nil }
func (p *plain) add(head, text string, width int) {
	p.text = append(p.text, hang(head, text, width)...)
}
func (p *plain) line(text string) { p.text = append(p.text, text) }
func (p *plain) keys() string     { return "esc back" }

// older compares times so that the oldest is first, and an unknown time last.
func older(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// helpScreen lists the keys.
type helpScreen struct{ plain }

func (h *helpScreen) title(*model) string { return "keys" }

func (h *helpScreen) build(m *model) {
	h.text = h.text[:0]
	for _, k := range [][2]string{
		{"1 2 3 4 5", "fibers, nurseries, objects, workers, what is wrong; also tab"},
		{"j k, arrows", "next and previous row; also PageDown, PageUp, Home, End"},
		{"enter", "open what the row is about; fold a nursery"},
		{"esc", "back; ends a search"},
		{"/", "search: names, states, waits, lines; enter keeps it"},
		{"s S", "sort by the next column; turn the order around"},
		{"g", "fibers that do the same as one row, or each by itself"},
		{"e", "explain: what is wrong"},
		{"f", "follow its channel or lock, with a curve; again to stop"},
		{"left right", "fold and unfold a nursery"},
		{"r", "read now; in the page of a fiber its stack"},
		{"space", "pause or resume"},
		{"q", "quit; also ctrl+c"},
	} {
		h.add("  "+left(k[0], 13), k[1], m.width)
	}
	h.line("")
	h.add("  "+left("! ?", 13), "a certain explanation is about this, or a likely one", m.width)
	h.add("  "+left("AGE", 13), "how long it has waited; of several the oldest, or the youngest..the oldest", m.width)
}
