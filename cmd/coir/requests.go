package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// A goroutine of net/http serves all requests of a connection, one after the other. A report shows each request as an
// actor, as if it had a goroutine of its own, because the name of the last request would be wrong for the steps of the
// earlier ones. The actor of the goroutine itself stands for the last request: its final wait belongs to that request.
// The earlier requests have ended.

// request is the beginning of a request on a connection that serves several.
type request struct {
	from  int // the number of its first step
	actor int
}

// by returns the number of the actor that did a step of a goroutine: the goroutine itself, or an earlier request.
func (r *record) by(g, step int) int {
	for _, q := range slices.Backward(r.requests[g]) {
		if q.from <= step {
			return q.actor
		}
	}
	return g
}

// goroutine returns the number of an actor's goroutine. Earlier requests have the goroutine of their connection.
func (a *actor) goroutine() int { return cmp.Or(a.of, a.id) }

// splitConnections makes an actor of each earlier request of a connection.
func (r *record) splitConnections() {
	steps := map[int][]*step{} // of each goroutine
	for i := range r.known {
		s := &r.known[i]
		steps[s.g] = append(steps[s.g], s)
	}
	r.requests = map[int][]request{}
	next := 0
	for id := range r.actors {
		next = max(next, id+1)
	}
	for _, id := range r.ids() {
		own := r.actors[id]
		begins := r.handled(steps[id])
		for i, s := range begins {
			q := request{0, id} // the first one begins with the connection
			if i > 0 {
				q.from = s.n
			}
			if i < len(begins)-1 {
				q.actor = next
				r.actors[next] = &actor{
					id: next, of: id, parent: -1, state: coir.Ended, made: own.made, madeBy: own.madeBy, birth: own.birth,
					role: s.request,
				}
				next++
			}
			r.requests[id] = append(r.requests[id], q)
		}
	}
}

// begin is the step in which a connection begins to read a request.
type begin struct {
	*step
	request string
}

// handled returns the first steps of the requests that a goroutine served, or nil if there was only one request. If the
// beginning of the trace is missing, the first steps of the goroutine belong to an earlier request of unknown name.
func (r *record) handled(steps []*step) (all []begin) {
	var first *step // the first read after the last write
	for _, s := range steps {
		switch {
		case strings.HasPrefix(s.note, "handler "):
			all = append(all, begin{cmp.Or(first, s), s.note})
			first = nil
		case s.op == coir.OpNetWrite:
			first = nil
		case s.op == coir.OpNetRead && first == nil:
			first = s
		}
	}
	if r.firstStep() > 1 && len(all) > 0 && all[0].step != steps[0] {
		all = slices.Insert(all, 0, begin{steps[0], "handler of an earlier request"})
	}
	if len(all) == 1 {
		return nil
	}
	return all
}
