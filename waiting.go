package coir

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/snapshot"
)

// mostSaid is the largest number of cases of a select that Waiting names.
const mostSaid = 4

// Waiting returns what the fiber waits for, in words that can follow "waits": "to send to orders". It returns "" if the
// fiber is not waiting, or runs on its own goroutine. An [Observer] may call it: in FiberParked it returns what the
// fiber is about to wait for.
func (f *Fiber) Waiting() string {
	// Spec: OB-01 (every park has a readable reason)
	var on [mostSaid]any
	n, more := f.parksFor(&on)
	if n == 0 {
		n, more = f.waitsFor(&on)
	}
	return say(on[:n], more, words)
}

// say joins the descriptions of what a fiber waits for, and adds how many more there are.
func say(on []any, more int, words func(on any) string) string {
	if len(on) == 0 {
		return ""
	}
	text := words(on[0])
	if len(on) == 1 && more == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	for _, on := range on[1:] {
		b.WriteString(", or " + words(on))
	}
	if more > 0 {
		b.WriteString(", or " + strconv.Itoa(more) + " others")
	}
	return b.String()
}

// said returns what the fiber waits for, for the reports of coir test, and the numbers of the fibers that hold it.
// Objects without a name are shown without a number there, because numbers may differ between two runs of the same
// schedule.
//
//go:norace
func (f *Fiber) said() (text string, holders []uint64) {
	race.Disable()
	defer race.Enable()
	var on [mostSaid]any
	n, more := f.waitsFor(&on)
	text = say(on[:n], more, func(on any) string {
		s, ok := on.(subject)
		if !ok {
			return words(on)
		}
		op, o := s.op(), snapshot.Object{Kind: "fiber"}
		if d, ok := on.(described); ok {
			d.describe(&o)
			holders = append(holders, o.Holders...)
		}
		return op.Waits(cmp.Or(op.Name, "a "+o.Kind))
	})
	return text, holders
}

// words returns the description of a subject.
func words(on any) string {
	s, ok := on.(subject)
	if !ok {
		return "for something"
	}
	op := s.op()
	name := op.Name
	if op.Kind == policy.Wait && name == "" {
		name = "fiber"
	}
	if op.Object != 0 && (name == "" || op.Kind == policy.Wait) {
		name = strings.TrimLeft(name+" #"+strconv.FormatUint(op.Object, 10), " ")
	}
	return op.Waits(name)
}

// parksFor stores in on the first subjects that the fiber is about to wait for, if the fiber is the caller. It returns
// their number, and how many more there are. It uses little stack, because the stack of a fiber that parks should stay
// small.
//
//go:norace
func (f *Fiber) parksFor(on *[mostSaid]any) (n, more int) {
	race.Disable()
	defer race.Enable()
	if !f.task.Here() {
		return 0, 0
	}
	first, ok := f.task.Parks()
	if !ok {
		return 0, 0
	}
	s, ok := first.(*scratch)
	if !ok {
		on[0] = first
		return 1, 0
	}
	for i := range s.on {
		switch {
		case s.on[i] == nil:
		case n == mostSaid:
			more++
		default:
			on[n] = s.on[i]
			n++
		}
	}
	return n, more
}

// waitsFor is parksFor for any fiber that has parked.
//
//go:noinline
//go:norace
func (f *Fiber) waitsFor(on *[mostSaid]any) (n, more int) {
	g := new(glimpse)
	if !g.look(&f.task, f.nursery.rt, false) || g.state != snapshot.StateWaiting {
		return 0, 0
	}
	for i := range min(g.n, mostSaid) {
		on[i] = g.on[i]
	}
	return min(g.n, mostSaid), max(0, g.n-mostSaid) + g.more
}
