package supervise

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// history is what the children of a supervisor have done so far, for snapshots, which any goroutine may take at any
// time. Only the fiber of Run changes it.
type history struct{ now atomic.Pointer[past] }

// past is the state of a history. It does not change.
type past struct {
	restarts uint64
	children []childPast // those that have failed or were restarted, the one with the newest event first
}

type childPast struct {
	name     string
	restarts int
	failed   string // the first line of the last error, or ""
}

const (
	mostShown = 3  // children
	mostError = 60 // characters of an error
)

// childVerb describes the wait for the end of a child.
var childVerb = &coir.Verb{Name: "recv", Waits: "for a child of", Of: "supervisor"}

// add adds an event.
func (h *history) add(e *Event) {
	if e.Kind != KindFailed && e.Kind != KindRestarting {
		return
	}
	var is past
	if was := h.now.Load(); was != nil {
		is = past{was.restarts, slices.Clone(was.children)}
	}
	one := childPast{name: e.Child}
	if i := slices.IndexFunc(is.children, func(c childPast) bool { return c.name == e.Child }); i >= 0 {
		one = is.children[i]
		is.children = slices.Delete(is.children, i, i+1)
	}
	if e.Kind == KindFailed {
		one.failed = shortText(e.Err)
	} else {
		one.restarts++
		is.restarts++
	}
	is.children = slices.Insert(is.children, 0, one)
	h.now.Store(&is)
}

// shortText returns the beginning of the text of an error, which the program provides.
func shortText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "(its Error method panics)"
		}
	}()
	all := []rune(firstLine(err))
	if len(all) > mostError {
		return string(all[:mostError]) + "…"
	}
	return string(all)
}

// show describes the supervisor in a snapshot, in place of the channel on which it waits for the ends of its children.
func (h *history) show(o *snapshot.Object) {
	o.Len, o.Cap, o.Sent, o.Received, o.Dropped = 0, 0, 0, 0, 0
	is := h.now.Load()
	if is == nil {
		return
	}
	o.Restarts = is.restarts
	var texts []string
	for _, c := range is.children[:min(len(is.children), mostShown)] {
		var parts []string
		if c.restarts > 0 {
			parts = append(parts, restarts(c.restarts))
		}
		if c.failed != "" {
			parts = append(parts, "last error: "+c.failed)
		}
		texts = append(texts, c.name+": "+strings.Join(parts, ", "))
	}
	if more := len(is.children) - mostShown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	o.Note = strings.Join(texts, "; ")
}
