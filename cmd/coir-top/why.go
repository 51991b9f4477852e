package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/snapshot"
)

// whyScreen lists what is wrong, in the words of package inspect.
type whyScreen struct {
	list
	rows []*snapshot.Explanation
}

func (s *whyScreen) title(*model) string     { return "what is wrong" }
func (s *whyScreen) orders() []string        { return nil }
func (s *whyScreen) searches() bool          { return true }
func (s *whyScreen) keys() string            { return "enter its fibers  / search  f follow" }
func (s *whyScreen) head(*model, int) string { return "" }
func (s *whyScreen) len() int                { return len(s.rows) }
func (s *whyScreen) mark(*model, int) string { return "" }

// id returns the index of the row, because an explanation has no identity that lasts over several snapshots.
func (s *whyScreen) id(i int) rowID { return rowID{n: uint64(i)} }

func (s *whyScreen) intro(m *model, width int) []string {
	if len(m.data.why) > 0 {
		return nil
	}
	return hang("  ", m.data.fine, width)
}

func (s *whyScreen) build(m *model) {
	query := s.wanted()
	s.rows = s.rows[:0]
	for i := range m.data.why {
		if e := &m.data.why[i]; query == "" || match(query, e.Text, string(e.Kind)) {
			s.rows = append(s.rows, e)
		}
	}
}

// whyHead returns the beginning of an explanation.
func whyHead(e *snapshot.Explanation) string {
	if e.Certain {
		return "certain: "
	}
	return "likely:  "
}

// whyText returns an explanation with its kind.
func whyText(e *snapshot.Explanation) string { return "[" + string(e.Kind) + "] " + e.Text }

func (s *whyScreen) row(m *model, i, width int) []string {
	e := s.rows[i]
	lines := hang(whyHead(e), whyText(e), width)
	lines[0] = colour(e, lines[0])
	var more []string
	if !e.Since.IsZero() && !e.SaysAge {
		more = append(more, "for "+m.data.since(e.Since))
	}
	if len(e.Fibers) > 0 {
		more = append(more, "fibers "+m.data.list(e.Fibers))
	}
	if len(more) > 0 {
		lines = append(lines, hang("         ", strings.Join(more, "; "), width)...)
	}
	return append(lines, "")
}

func (s *whyScreen) enter(_ *model, i int) screen {
	e := s.rows[i]
	if len(e.Fibers) == 0 {
		return nil
	}
	ids := slices.Clone(e.Fibers)
	slices.Sort(ids)
	return &fibersScreen{of: fmt.Sprintf("fibers of explanation %d", i+1), only: func(_ *data, f *fiber) bool {
		_, ok := slices.BinarySearch(ids, f.ID)
		return ok
	}}
}

func (s *whyScreen) object(m *model, i int) *snapshot.Object {
	var some *snapshot.Object
	for _, id := range s.rows[i].Objects {
		if o := m.data.objects[id]; o != nil {
			if isChannel(o) {
				return o
			}
			some = o
		}
	}
	return some
}
