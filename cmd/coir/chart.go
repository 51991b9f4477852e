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
)

// page writes the page of a failure into a directory, and returns its path.
func (r *result) page(to, dir, replay string) (string, error) {
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

// draw adds the steps to a chart that has the goroutines.
func (r *result) draw(c *chart.Chart, dir string) {
	c.Before = r.firstStep() - 1
	columns := r.columns()
	at := map[int]int{} // rows of steps
	things := &things{result: r, dir: dir, index: map[string]int{}}
	for i := range r.stepsOf {
		s := &r.stepsOf[i]
		column, ok := columns[s.g]
		if !ok || !r.shows(s) {
			continue
		}
		at[s.n] = len(c.Steps)
		if s.last {
			c.Of[column].Since = len(c.Steps)
		}
		c.Steps = append(c.Steps, r.drawn(s, column, dir))
		things.used(s, &c.Steps[len(c.Steps)-1])
	}
	c.Objects = things.all
	for child, s := range r.starters() {
		if row, ok := at[s.n]; ok {
			if column, ok := columns[child]; ok {
				c.Starts = append(c.Starts, chart.Start{Step: row, Actor: column})
			}
		}
	}
	slices.SortFunc(c.Starts, func(a, b chart.Start) int { return a.Step - b.Step })
	for _, a := range r.arrows() {
		from, ok := at[a.from.n]
		to, there := at[a.to.n]
		if ok && there {
			c.Arrows = append(c.Arrows, chart.Arrow{From: from, To: to, Kind: a.kind, Text: a.text, Guess: a.guess})
		}
	}
	awaited(c)
}

// columns returns the place of each goroutine among the actors of the chart. The first goroutine is the harness.
func (r *result) columns() map[int]int {
	columns := map[int]int{}
	for _, id := range r.ids() {
		if id != 1 {
			columns[id] = len(columns)
		}
	}
	return columns
}

// awaited finds out how long goroutines waited: until the step that an arrow leads from, if that is later; for time,
// until the goroutine's next step.
func awaited(c *chart.Chart) {
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
}

// things are the channels, locks and the like of a chart.
type things struct {
	*result
	dir   string
	all   []chart.Object
	index map[string]int
}

// of returns the place of the object of an operation. Of what an atomic or a map was used for nothing is known.
func (t *things) of(op, id int) (place int, ok bool) {
	name, kind := t.object(op, id), coir.Ops[op].On
	if name == "" || kind == "atomic" || kind == "map" {
		return 0, false
	}
	place, ok = t.index[name]
	if !ok {
		o := chart.Object{Name: name, Room: -1}
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
		t.index[name], t.all = place, append(t.all, o)
	}
	return place, true
}

// used adds to a row what the step did to which object, or would do if it waits at the end.
func (t *things) used(s *step, row *chart.Step) {
	use := func(op, id int) (u chart.Use, ok bool) {
		u.Object, ok = t.of(op, id)
		switch op {
		case opSend:
			u.What = chart.Put
		case opRecv:
			u.What = chart.Get
		case opClose:
			u.What = chart.Shut
		case opLock, opRLock, opWLock:
			u.What = chart.Hold
		case opUnlock, opRUnlock, opWUnlock:
			u.What = chart.Release
		}
		if t.made[id].timer && coir.Ops[op].On == "chan" {
			u.What = chart.Touch
		}
		return u, ok
	}
	chosen := func(c selectCase) (u chart.Use, ok bool) {
		if c.send {
			return use(opSend, c.object)
		}
		return use(opRecv, c.object)
	}
	for _, c := range s.cases {
		if u, ok := chosen(c); ok {
			row.Wants = append(row.Wants, u)
			if t.happened(s) && c.n == s.chose-1 {
				row.Did = append(row.Did, u)
			}
		}
	}
	if u, ok := use(s.op, s.object); ok {
		if row.Wants = append(row.Wants, u); t.happened(s) && s.done > 0 {
			row.Did = append(row.Did, u)
		}
	}
}

// drawn returns a step of the chart.
func (r *result) drawn(s *step, column int, dir string) chart.Step {
	d := chart.Step{
		Actor: column, Number: s.n, Text: r.words(*s), At: s.at, Switches: s.switches, Takes: s.kind == selected,
		Inner: coirs(s.via), Waits: r.blockedIn(s),
	}
	switch coir.Ops[s.op].On {
	case "chan":
		d.Kind = chart.Channel
	case "mutex", "rwmutex":
		d.Kind = chart.Lock
	}
	d.Timed = s.op == opRecv && r.made[s.object].timer
	if s.op == opSelect {
		d.Kind = chart.Channel
		for _, c := range s.cases {
			d.Timed = d.Timed || c.n == s.chose-1 && r.made[c.object].timer
		}
	}
	d.Title = s.place.said("at %s, in "+s.place.function, dir)
	if len(s.cases) > 0 {
		d.Title += "\nselect " + r.wishes(s.cases, dir, false)
	} else if coir.Ops[s.op].On == "chan" {
		d.Title += "\n" + r.channel(s.object, dir, false)
	}
	if s.switches > 0 {
		d.Switch = [...]string{
			keep:     "another goroutine gets the turn, although this one could continue",
			free:     "of the goroutines that can run, another than the first gets the turn",
			giveUp:   "of the goroutines that can run, another than the next gets the turn",
			selected: "of the cases that are ready, the select takes another than the first",
		}[min(s.kind, selected)]
		if s.switches > 1 {
			d.Switch = fmt.Sprintf("%d switches; the last: %s", s.switches, d.Switch)
		}
	}
	return d
}

// arrow leads from a step to another step that it let continue.
type arrow struct {
	from, to *step
	kind     chart.Relation
	text     string
	guess    bool
}

// arrows finds out which operation let which other one continue, from the order in which they began.
func (r *result) arrows() (all []arrow) {
	order := r.inOrder()
	after := map[*step]int{} // when the goroutine of a step continued after it: the place in order of its next step
	next := map[int]int{}
	for i, s := range slices.Backward(order) {
		after[s] = len(order)
		if at, ok := next[s.g]; ok {
			after[s] = at
		}
		next[s.g] = i
	}
	if !r.cut() { // without the beginning the senders are not known
		all = r.messages(order)
	}
	all = append(all, r.handOvers(order)...)
	return append(all, r.wakes(order, after)...)
}

// shows reports whether a step is shown: it is no part of another one, and not only coir has a part in it.
func (r *result) shows(s *step) bool { return s.inner == "" && !coirsOwn(s.place, s.via) }

// happened reports whether an operation was completed: it does not wait at the end, and has not panicked.
func (r *result) happened(s *step) bool {
	a := r.actors[s.g]
	return !s.last || a == nil || a.state != waiting
}

// messages pairs sends with receives: a channel is a queue, and so are its waiters. A receive without a send has found
// the channel closed.
func (r *result) messages(order []*step) (all []arrow) {
	type flow struct {
		sends, recvs []*step
		closed       *step
	}
	flows, ids := map[int]*flow{}, []int(nil)
	of := func(id int) *flow {
		if flows[id] == nil {
			flows[id] = new(flow)
			ids = append(ids, id)
		}
		return flows[id]
	}
	for _, s := range order {
		op, id := s.op, s.object
		if s.op == opSelect {
			for _, c := range s.cases {
				if c.n == s.chose-1 {
					op, id = opRecv, c.object
					if c.send {
						op = opSend
					}
				}
			}
		}
		if s.chose < 0 || !r.happened(s) || r.made[id].timer {
			continue
		}
		switch op {
		case opSend:
			of(id).sends = append(of(id).sends, s)
		case opRecv:
			of(id).recvs = append(of(id).recvs, s)
		case opClose:
			of(id).closed = s
		}
	}
	for _, id := range ids {
		f, text := flows[id], r.object(opRecv, id)
		guess := f.closed == nil && len(f.recvs) > len(f.sends) // there are sends that have no step
		for i, to := range f.recvs {
			switch {
			case i < len(f.sends):
				all = append(all, arrow{f.sends[i], to, chart.Message, text, guess})
			case f.closed != nil:
				all = append(all, arrow{f.closed, to, chart.Closing, text, false})
			}
		}
	}
	return all
}

// handOvers pairs each lock with the unlock before it, if another goroutine did that: the last one before the goroutine
// itself unlocks again, because until then no other can.
func (r *result) handOvers(order []*step) (all []arrow) {
	type holding struct{ goroutine, object int }
	held := map[holding]*step{} // the lock that a goroutine has not unlocked yet
	last := map[int]*step{}     // unlocks of a lock, and of them those of a writer
	lastWrite := map[int]*step{}
	end := func(h holding) {
		to := held[h]
		delete(held, h)
		from := last[h.object]
		if to != nil && to.op == opRLock {
			from = lastWrite[h.object]
		}
		if to != nil && from != nil && from.g != to.g && r.happened(to) {
			all = append(all, arrow{from, to, chart.HandOver, r.object(to.op, to.object), false})
		}
	}
	for _, s := range order {
		h := holding{s.g, s.object}
		if s.inner != "" {
			continue
		}
		switch s.op {
		case opLock, opWLock, opRLock:
			end(h)
			held[h] = s
		case opUnlock, opWUnlock, opRUnlock:
			end(h)
			if last[s.object] = s; s.op != opRUnlock {
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

// wakes finds what ended the waits for WaitGroups, which is the last Done before the goroutine continued, and for
// conditions, which are a queue.
func (r *result) wakes(order []*step, after map[*step]int) (all []arrow) {
	queues := map[int][]*step{}
	for i, s := range order {
		switch s.op {
		case opWait:
			if !r.happened(s) {
				continue
			}
			for k := after[s] - 1; k >= 0; k-- {
				if by := order[k]; by.op == opDone && by.object == s.object {
					if by.g != s.g {
						all = append(all, arrow{by, s, chart.Wake, r.object(opWait, s.object), false})
					}
					break
				}
			}
		case opCondWait:
			queues[s.object] = append(queues[s.object], s)
		case opSignal, opBroadcast:
			n := len(queues[s.object])
			if s.op == opSignal {
				n = min(n, 1)
			}
			for _, to := range queues[s.object][:n] {
				all = append(all, arrow{order[i], to, chart.Wake, r.object(opCondWait, s.object), false})
			}
			queues[s.object] = queues[s.object][n:]
		}
	}
	return all
}
