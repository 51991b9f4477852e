package stream

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/coir-go/coir"
)

// plan describes a stage and the stages before it.
type plan struct {
	stage    string // "Map", "Buffer(16)"
	boundary string // describes the boundary before this stage, or "" if it is in the loop of its input
	inputs   []*plan
	at       uintptr // where the program made the stage, if it starts fibers
	name     string  // see Stream.Named
}

// called returns the name of the stage, or other if it has none.
func (p *plan) called(other string) string { return cmp.Or(p.name, other) }

// of returns the name of one of the stage's objects.
func (p *plan) of(object string) string {
	if p.name == "" {
		return object
	}
	return object + " of " + p.name
}

// loop returns the name of the last stage that has one, of those in the loop that ends in p.
func (p *plan) loop() string {
	for ; p != nil; p = p.inputs[0] {
		if p.name != "" || p.beginsLoop() {
			return p.name
		}
	}
	return ""
}

// beginsLoop reports whether the stage is the first of its loop.
func (p *plan) beginsLoop() bool { return p.boundary != "" || len(p.inputs) != 1 }

// fused returns the plan of a stage that is in the loop of its input.
func fused(in *plan, format string, args ...any) *plan {
	return &plan{stage: fmt.Sprintf(format, args...), inputs: []*plan{in}}
}

// apart returns the plan of a stage whose inputs run in fibers of their own.
func apart(boundary, stage string, in ...*plan) *plan {
	return &plan{stage: stage, boundary: boundary, inputs: in, at: maker()}
}

// Explain describes how the stream runs. Each line is a loop, whose stages are calls, with no channel and no fiber
// between them. Between two loops there is a boundary: the stages before it run in a fiber of their own. The inputs of
// [Concat] are loops too, but they run one after the other, in the fiber of the loop after them. Streams that a
// function returns while the stream runs, as for [FlatMap], are not shown. The name of a stage, from [Stream.Named], is
// in quotation marks behind it.
//
//	loop 1: FromSlice, Map, Filter
//	  boundary: channel of 64
//	loop 2: Buffer, Map
func (s Stream[T]) Explain() string {
	var e explainer
	e.loop(s.plan)
	return e.out.String()
}

type explainer struct {
	out   strings.Builder
	loops int
}

// loop writes the loop that ends in p, after those that it needs, and returns its number.
func (e *explainer) loop(p *plan) int {
	var stages []string
	at := p
	for ; at != nil; at = at.inputs[0] {
		text := at.stage
		if at.name != "" {
			text = fmt.Sprintf("%s %q", text, at.name)
		}
		stages = append(stages, text)
		if at.beginsLoop() {
			break
		}
	}
	var from []int
	if at != nil {
		for _, in := range at.inputs {
			from = append(from, e.loop(in))
		}
	}
	e.loops++
	switch {
	case at == nil:
		stages = append(stages, "Empty")
	case at.boundary != "" && len(from) > 1:
		fmt.Fprintf(&e.out, "  boundary: %s, from loops %s\n", at.boundary, numbers(from))
	case at.boundary != "":
		fmt.Fprintf(&e.out, "  boundary: %s\n", at.boundary)
	case len(from) > 1:
		fmt.Fprintf(&e.out, "  one after the other: loops %s\n", numbers(from))
	}
	fmt.Fprintf(&e.out, "loop %d:", e.loops)
	for i := len(stages) - 1; i >= 0; i-- {
		e.out.WriteString(" " + stages[i])
		if i > 0 {
			e.out.WriteByte(',')
		}
	}
	e.out.WriteByte('\n')
	return e.loops
}

func numbers(ns []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(ns), "[]"), " ", ", ")
}

// describe names a channel by its capacity.
func describe(capacity int) string {
	switch capacity {
	case coir.Unbounded:
		return "unbounded channel"
	case coir.Conflated:
		return "channel that keeps the newest"
	}
	return fmt.Sprintf("channel of %d", capacity)
}
