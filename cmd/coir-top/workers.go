package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/coir-go/coir/snapshot"
)

// workersScreen lists the workers, and the fibers that they run.
type workersScreen struct {
	list
	rows []*snapshot.Worker
}

func (s *workersScreen) title(*model) string { return "workers" }
func (s *workersScreen) orders() []string    { return []string{"number", "state", "queue", "rate"} }
func (s *workersScreen) searches() bool      { return true }
func (s *workersScreen) keys() string        { return "enter its fiber  s sort  / search" }
func (s *workersScreen) len() int            { return len(s.rows) }
func (s *workersScreen) id(i int) rowID      { return rowID{'w', uint64(s.rows[i].ID), ""} }

// intro returns a line with the numbers of fibers in the queues and of those spawned.
func (s *workersScreen) intro(m *model, width int) []string {
	queued := 0
	for i := range m.data.Workers {
		queued += m.data.Workers[i].Queue
	}
	text := fmt.Sprintf("  %s in the queues; %s spawned since the start", count(queued, "fiber"),
		grouped(m.data.Process.Spawned))
	if r := rate(m.past.spawned.per); r != "" {
		text += ", " + r + " in a second"
	}
	return []string{cut(text, width)}
}

func (s *workersScreen) build(m *model) {
	d := m.data
	query := s.wanted()
	s.rows = s.rows[:0]
	for i := range d.Workers {
		w := &d.Workers[i]
		if query == "" || match(query, string(w.State), s.runs(d, w)) {
			s.rows = append(s.rows, w)
		}
	}
	compare := []func(a, b *snapshot.Worker) int{
		func(a, b *snapshot.Worker) int { return cmp.Compare(a.ID, b.ID) },
		func(a, b *snapshot.Worker) int { return cmp.Compare(a.State, b.State) },
		func(a, b *snapshot.Worker) int { return cmp.Compare(b.Queue, a.Queue) },
		func(a, b *snapshot.Worker) int { return cmp.Compare(m.ran(b), m.ran(a)) },
	}[s.order]
	slices.SortFunc(s.rows, func(a, b *snapshot.Worker) int {
		return cmp.Or(s.direction(compare(a, b)), cmp.Compare(a.ID, b.ID))
	})
}

// runs returns the name of the fiber that a worker runs.
func (s *workersScreen) runs(d *data, w *snapshot.Worker) string {
	if w.Fiber == 0 {
		return ""
	}
	return d.named(w.Fiber)
}

// ran returns the number of fibers that a worker has run per second, or a negative number if unknown.
func (m *model) ran(w *snapshot.Worker) float64 {
	if l := m.past.workers[w.ID]; l != nil {
		return l.ran.per
	}
	return -1
}

func (s *workersScreen) head(_ *model, width int) string {
	return s.line(width, "WORKER", "STATE", "QUEUE", "RUNS/S", "SAME FOR", "FIBER")
}

func (s *workersScreen) line(width int, id, state, queue, runs, same, fiber string) string {
	text := right(id, 6) + "  " + left(state, 10) + right(queue, 6) + right(runs, 8) + right(same, 10) + "  "
	return text + cut(fiber, width-columns(text))
}

func (s *workersScreen) row(m *model, i, width int) []string {
	w := s.rows[i]
	same := ""
	if l := m.past.workers[w.ID]; l != nil && w.Fiber != 0 && l.since.Before(m.data.Taken) {
		same = m.data.since(l.since)
	}
	runs := s.runs(m.data, w)
	return []string{s.line(width, strconv.Itoa(w.ID), string(w.State), grouped(w.Queue), rate(m.ran(w)), same, runs)}
}

func (s *workersScreen) mark(m *model, i int) string {
	if f := m.data.fibers[s.rows[i].Fiber]; f != nil {
		return f.told
	}
	return ""
}

func (s *workersScreen) enter(m *model, i int) screen {
	if w := s.rows[i]; m.data.fibers[w.Fiber] != nil {
		return &fiberScreen{number: w.Fiber}
	}
	return nil
}

func (s *workersScreen) object(*model, int) *snapshot.Object { return nil }
