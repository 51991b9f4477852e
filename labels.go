package coir

import (
	"context"
	"reflect"
	"runtime/pprof"
	"sync"

	"github.com/coir-go/coir/internal/coro"
)

// Names of fibers in Go's own tools. The tools show goroutines, which have no names, but can have profiler labels.
//
// When a fiber starts, on its own goroutine, it gets the labels of its spawner, as all fibers do (see prepare), and
// labels with its names. They are reset when the fiber ends, before another fiber runs on the goroutine (coro.Reset).
// The fiber's context has the labels too, because pprof.Do takes the labels of its context, and sets them again when it
// returns.
//
// Package pprof can add labels to those of a context, but not to those of a goroutine. So the labels of the goroutine
// are put into a context, under the key and with the type that package pprof uses.

// WithLabels makes Go's own tools show the names of fibers. Each fiber gets two labels of package [runtime/pprof]:
// "fiber" is its name, and "nursery" is the name of the fiber that opened its nursery. The names then appear in
// goroutine profiles and CPU profiles, in the debugger Delve, and in tracebacks, such as that of a crash. Tracebacks
// show them since Go 1.27, or with GODEBUG=tracebacklabels=1.
//
// Labels that the program sets itself are kept. A goroutine that a fiber starts inherits the labels, as every goroutine
// does. Without WithLabels a fiber has only the labels of its spawner. The option makes starting a fiber slower; it
// costs nothing else.
func WithLabels() RuntimeOption {
	return func(s *settings) { s.labels = true }
}

// withNames returns a function that calls fn with the names of f added to its labels.
func withNames(f *Fiber, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		pprof.SetGoroutineLabels(pprof.WithLabels(labelsHere(), f.names()))
		return fn(ctx)
	}
}

// names returns the labels that name the fiber.
//
//go:norace
func (f *Fiber) names() pprof.LabelSet {
	return pprof.Labels("fiber", f.Name(), "nursery", f.nursery.owner.Name())
}

// addLabels returns the value for key in the fiber's context, where v is the value for key in the context around it. It
// returns v, unless package pprof asks for the labels.
func (f *Fiber) addLabels(key, v any) any {
	if key != labelling().key {
		return v
	}
	return pprof.WithLabels(labelContext{context.Background(), v}, f.names()).Value(key)
}

// labelContext is a context that returns labels to package pprof.
type labelContext struct {
	context.Context
	labels any
}

func (c labelContext) Value(key any) any {
	if key == labelling().key {
		return c.labels
	}
	return nil
}

// labelsHere returns a context with the labels of the calling goroutine.
func labelsHere() context.Context {
	labels, set := coro.Labels(), labelling().set
	if labels == nil || set == nil {
		return context.Background()
	}
	return labelContext{context.Background(), reflect.NewAt(set, labels).Interface()}
}

// labelling returns how package pprof keeps the labels of a context: the key, and the type that its value points to.
// The goroutine's label pointer has the same type. The returned type is nil if this release of Go does it differently;
// then the labels of the spawner are lost. Guarded by TestFibersHaveLabels.
var labelling = sync.OnceValue(func() (how struct {
	key any
	set reflect.Type
}) {
	var asked keyContext
	pprof.Label(&asked, "")
	how.key = asked.key
	v := pprof.WithLabels(context.Background(), pprof.Labels("", "")).Value(how.key)
	if t := reflect.TypeOf(v); t != nil && t.Kind() == reflect.Pointer {
		how.set = t.Elem()
	}
	return how
})

// keyContext records the key that its Value method is called with.
type keyContext struct {
	context.Context
	key any
}

func (c *keyContext) Value(key any) any {
	c.key = key
	return nil
}
