package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// page writes the page of a failure into a directory, and returns its path.
func (r *record) page(to, dir, replay string) (string, error) {
	if err := os.MkdirAll(to, 0o777); err != nil {
		return "", err
	}
	path := filepath.Join(to, strings.NewReplacer("/", "_", "\\", "_", ":", "_").Replace(r.path+"."+r.test)+".html")
	w, err := os.Create(path)
	if err != nil {
		return "", err
	}
	c := r.traced(dir).Chart
	c.Title, c.Text, c.Verdict, c.Replay = r.test+": "+r.headline(), r.explain(dir), kinds[r.failure.kind], replay
	return path, errors.Join(c.Write(w), w.Close())
}

// draw adds the steps to a trace that already has the goroutines.
func (r *record) draw(t *report.Trace, dir string) {
	t.Before, t.Complete = r.firstStep()-1, !r.cut()
	columns, things := r.columns(), &things{record: r, dir: dir, index: map[string]int{}}
	at, events := map[*step]int{}, map[*step]report.Event{}
	latest := map[int]int{} // the row of the last shown step of each goroutine
	r.rows = at
	for i := range r.known {
		s := &r.known[i]
		by := s.g
		if r.helps(by) {
			by = s.on
		}
		column, ok := columns[r.by(by, s.n)]
		if row, shown := latest[s.g]; ok && shown && s.calls() && s.inner != "" {
			events[s] = things.used(s, column, row)
		}
		if !ok || !r.shows(s) {
			continue
		}
		at[s], latest[s.g] = len(t.Steps), len(t.Steps)
		if s.last && by == s.g {
			t.Of[column].Since = len(t.Steps)
		}
		events[s] = things.used(s, column, len(t.Steps))
		t.Steps = append(t.Steps, r.drawn(s, column, dir))
	}
	t.Named, t.Objects = func(i int) string { return things.all[i].Name }, things.all
	order := r.inOrder()
	for _, s := range order {
		e, ok := events[s]
		if !ok {
			column, ok := columns[r.by(s.g, s.n)]
			if !ok {
				continue
			}
			e = things.used(s, column, -1)
		}
		t.Events = append(t.Events, e)
	}
	for child, s := range r.starters() {
		if row, ok := at[s]; ok {
			if column, ok := columns[r.by(child, 0)]; ok {
				t.Starts = append(t.Starts, chart.Start{Step: row, Actor: column})
			}
		}
	}
	slices.SortFunc(t.Starts, func(a, b chart.Start) int { return a.Step - b.Step })
	t.Link()
	for _, a := range slices.Concat(r.handOvers(order), r.wakes(order), r.moved(order)) {
		from, ok := at[a.from]
		to, there := at[a.to]
		if ok && there {
			t.Arrows = append(t.Arrows, chart.Arrow{From: from, To: to, Kind: a.kind, Text: a.text})
		}
	}
	awaited(t)
	t.Touch(func(i int) (int, bool) { return i, true })
}

// columns returns the index of each goroutine among the actors of the chart. The first goroutine, which is the harness,
// and goroutines that help have no column.
func (r *record) columns() map[int]int {
	columns := map[int]int{}
	for _, id := range r.ids() {
		if id != 1 && !r.helps(id) {
			columns[id] = len(columns)
		}
	}
	return columns
}

// awaited sets how long goroutines waited: until the step from which an arrow leads to the wait, if that step is later.
// A wait for time lasts until the goroutine's next step.
func awaited(c *report.Trace) {
	for _, a := range c.Arrows {
		if to := &c.Steps[a.To]; a.From > a.To {
			to.Until = max(to.Until, a.From)
		}
	}
	next := make([]int, len(c.Of))
	for i := len(c.Steps) - 1; i >= 0; i-- {
		s := &c.Steps[i]
		if s.Timed && next[s.Actor] > i+1 {
			s.Until = next[s.Actor]
		}
		next[s.Actor] = i
	}
	for i := range c.Events {
		if e := &c.Events[i]; e.Row >= 0 {
			a := &c.Of[e.Actor]
			e.Waited = c.Steps[e.Row].Until > e.Row || a.Why != "" && a.Since == e.Row
		}
	}
}

// things are the channels, locks and other objects of a chart.
type things struct {
	*record
	dir   string
	all   []chart.Object
	index map[string]int
}

// of returns the index of the object of an operation. Atomics and maps are omitted.
func (t *things) of(op, id int) (place int, ok bool) {
	key, kind := t.key(op, id), coir.Ops[op].On
	if key == "" || kind == "atomic" || kind == "map" {
		return 0, false
	}
	place, ok = t.index[key]
	if !ok {
		o := chart.Object{Name: t.object(op, id), Room: -1}
		switch kind {
		case "chan":
			o.Sort = "channel"
			o.Made = t.made[id].place.said("made at %s", t.dir)
			if t.made[id].timer {
				o.Sort = ""
			} else if c, ok := t.made[id]; ok {
				o.Room = c.room
			}
		case "mutex", "rwmutex":
			o.Sort = "lock"
		}
		place = len(t.all)
		t.index[key], t.all = place, append(t.all, o)
	}
	return place, true
}

// used returns the event of a step: what it did to which objects, or would do if it still waits at the end. row is the
// row of the step, or negative if it has none.
func (t *things) used(s *step, actor, row int) report.Event {
	e := report.Event{Actor: actor, Step: s.n, Row: row, Did: -1}
	switch {
	case s.chose < 0:
		e.Out = report.Failed
	case t.happened(s):
		e.Out = report.Done
	}
	add := func(op, id int, did bool) {
		place, ok := t.of(op, id)
		if !ok {
			return
		}
		u := chart.Use{Object: place, N: 1}
		switch op {
		case coir.OpSend:
			u.What = chart.Put
		case coir.OpRecv:
			u.What = chart.Get
		case coir.OpClose:
			u.What = chart.Shut
		case coir.OpLock, coir.OpRLock, coir.OpWLock:
			u.What = chart.Hold
		case coir.OpUnlock, coir.OpRUnlock, coir.OpWUnlock:
			u.What = chart.Release
		}
		if t.made[id].timer && coir.Ops[op].On == "chan" {
			u.What = chart.Touch
		}
		if did {
			e.Did = len(e.Uses)
		}
		e.Uses = append(e.Uses, u)
	}
	for _, c := range s.cases {
		op := coir.OpRecv
		if c.send {
			op = coir.OpSend
		}
		add(op, c.object, c.n == s.chose-1)
	}
	add(s.op, s.object, true)
	return e
}

// drawn returns a step of the chart.
func (r *record) drawn(s *step, column int, dir string) chart.Step {
	d := chart.Step{
		Actor: column, Number: s.n, Text: r.words(*s), At: s.at, Switches: s.switches, Takes: s.kind == coir.Case,
		Inner: coirs(s.via), Waits: r.blockedIn(s), Starts: starts(s), Aside: s.aside,
		Missed: s.missed,
	}
	for _, c := range s.cases {
		d.On = append(d.On, r.object(coir.OpRecv, c.object))
	}
	if name := r.object(s.op, s.object); name != "" {
		d.On = append(d.On, name)
	}
	switch coir.Ops[s.op].On {
	case "chan":
		d.Kind = chart.Channel
	case "mutex", "rwmutex":
		d.Kind = chart.Lock
	}
	d.Timed = s.op == coir.OpRecv && r.made[s.object].timer
	if s.op == coir.OpSelect {
		d.Kind = chart.Channel
		for _, c := range s.cases {
			d.Timed = d.Timed || c.n == s.chose-1 && r.made[c.object].timer
		}
	}
	d.Title = s.place.said("at %s, in "+s.place.function, dir)
	if len(s.cases) > 0 {
		d.Title += "\nselect " + r.wishes(s.cases, dir, false)
	} else if coir.Ops[s.op].On == "chan" {
		d.Title += "\n" + r.channel(s.object, s.name, dir, false)
	}
	if s.switches > 0 {
		d.Switch = [...]string{
			coir.Keep:   "another goroutine gets the turn, although this one could continue",
			coir.Free:   "a goroutine other than the first that can run gets the turn",
			coir.GiveUp: "a goroutine other than the next that can run gets the turn",
			coir.Case:   "the select takes a ready case other than the first",
			coir.Fault:  "it meets a fault",
		}[min(s.kind, coir.Fault)]
		if s.switches > 1 {
			d.Switch = fmt.Sprintf("%d switches; the last: %s", s.switches, d.Switch)
		}
	}
	return d
}

// starts reports whether a step starts a goroutine or a server, or belongs to such a start: counting the goroutines, or
// preparing the library.
func starts(s *step) bool {
	switch s.op {
	case coir.OpGo, coir.OpAdd, coir.OpListen:
		return true
	case coir.OpOnce:
		return !strings.HasPrefix(s.via, "sync.")
	}
	return false
}

// arrow leads from a step to a step that could continue because of it.
type arrow struct {
	from, to *step
	kind     chart.Relation
	text     string
}

// shows reports whether a step is shown: it is not part of another step, and does not involve only coir.
func (r *record) shows(s *step) bool { return s.inner == "" && !coirsOwn(s.place, s.via) }

// happened reports whether an operation was completed, which means that it does not wait at the end and has not
// panicked.
func (r *record) happened(s *step) bool {
	a := r.actors[s.g]
	return !s.last || a == nil || a.state != coir.Waiting
}

// handOvers pairs each lock operation with the unlock before it, if another goroutine did the unlock. That is the last
// unlock before the goroutine itself unlocks again, because until then no other goroutine can.
func (r *record) handOvers(order []*step) (all []arrow) {
	type holding struct{ goroutine, object int }
	held := map[holding]*step{}  // the lock that a goroutine has not unlocked yet
	last := map[int]*step{}      // the last unlock of each lock
	lastWrite := map[int]*step{} // the last unlock of each lock by a writer
	end := func(h holding) {
		to := held[h]
		delete(held, h)
		from := last[h.object]
		if to != nil && to.op == coir.OpRLock {
			from = lastWrite[h.object]
		}
		if to != nil && from != nil && from.g != to.g && r.happened(to) {
			all = append(all, arrow{from, to, chart.HandOver, r.object(to.op, to.object)})
		}
	}
	for _, s := range order {
		h := holding{s.g, s.object}
		if s.inner != "" {
			continue
		}
		switch s.op {
		case coir.OpLock, coir.OpWLock, coir.OpRLock:
			end(h)
			held[h] = s
		case coir.OpUnlock, coir.OpWUnlock, coir.OpRUnlock:
			end(h)
			if last[s.object] = s; s.op != coir.OpRUnlock {
				lastWrite[s.object] = s
			}
		}
	}
	var rest []holding
	for h := range held {
		rest = append(rest, h)
	}
	slices.SortFunc(rest, func(a, b holding) int { return held[a].done - held[b].done })
	for _, h := range rest {
		end(h)
	}
	return all
}

// moved returns the arrows from writes to the reads of their bytes, or to the answer that net/http has read for a
// client.
func (r *record) moved(order []*step) (all []arrow) {
	for _, s := range order {
		if s.from == nil || s.from.g == s.g {
			continue
		}
		to := s
		if r.helps(s.g) {
			i := slices.IndexFunc(order, func(a *step) bool { return a.g == s.on && a.note != "" && a.done > s.from.done })
			if i < 0 {
				continue
			}
			to = order[i]
		}
		all = append(all, arrow{s.from, to, chart.Message, r.object(s.op, s.object)})
	}
	return all
}

// wakes finds the steps that ended waits. For a WaitGroup, that is the last Done before the goroutine continued. For a
// condition, it is the Signal or Broadcast that reached the goroutine's place in the queue.
func (r *record) wakes(order []*step) (all []arrow) {
	after := make([]int, len(order)) // the index of the next step of the same goroutine: when it continued
	next := map[int]int{}
	for i, s := range slices.Backward(order) {
		after[i] = len(order)
		if at, ok := next[s.g]; ok {
			after[i] = at
		}
		next[s.g] = i
	}
	queues := map[int][]*step{}
	for i, s := range order {
		switch s.op {
		case coir.OpWait:
			if !r.happened(s) {
				continue
			}
			for k := after[i] - 1; k >= 0; k-- {
				if by := order[k]; by.op == coir.OpDone && by.object == s.object {
					if by.g != s.g {
						all = append(all, arrow{by, s, chart.Wake, r.object(coir.OpWait, s.object)})
					}
					break
				}
			}
		case coir.OpCondWait:
			queues[s.object] = append(queues[s.object], s)
		case coir.OpSignal, coir.OpBroadcast:
			n := len(queues[s.object])
			if s.op == coir.OpSignal {
				n = min(n, 1)
			}
			for _, to := range queues[s.object][:n] {
				all = append(all, arrow{order[i], to, chart.Wake, r.object(coir.OpCondWait, s.object)})
			}
			queues[s.object] = queues[s.object][n:]
		}
	}
	return all
}
