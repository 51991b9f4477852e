package coir

import (
	"context"
	"reflect"
	"runtime/pprof"
	"sync"

	"github.com/coir-go/coir/internal/coro"
)

// Names of fibers in Go's own tools. These know goroutines, which have no names, but have labels for the profiler.
//
// A fiber gets its labels when it begins, on its own goroutine: those of its spawner, as all fibers do (see prepare),
// and its names. They are reset when it ends, before another fiber runs on the goroutine (coro.Reset). Its context has
// them too: pprof.Do takes the labels of a context, and sets these again when it returns.
//
// Package pprof adds labels to those of a context, not to those of a goroutine. So the labels of the goroutine are made
// those of a context, by the key and the type that package pprof uses.

// WithLabels makes Go's own tools show the names of fibers. Each fiber has two labels of package [runtime/pprof]:
// "fiber" is its name, "nursery" the name of the fiber that opened its nursery. So the names are in goroutine profiles
// and CPU profiles, in the debugger Delve, and in tracebacks, for example of a crash; the last since Go 1.27, or with
// GODEBUG=tracebacklabels=1.
//
// Labels that the program sets itself are kept. A goroutine that a fiber starts inherits the labels, as every goroutine
// does. Without WithLabels a fiber has the labels of its spawner and no others. The option makes the start of a fiber
// slower, and nothing else.
func WithLabels() RuntimeOption {
	return func(s *settings) { s.labels = true }
}

// withNames returns a function that calls fn with the names of f as labels.
func withNames(f *Fiber, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		pprof.SetGoroutineLabels(pprof.WithLabels(labelsHere(), f.names()))
		return fn(ctx)
	}
}

// names returns the labels of the fiber itself.
//
//go:norace
func (f *Fiber) names() pprof.LabelSet {
	return pprof.Labels("fiber", f.Name(), "nursery", f.nursery.owner.Name())
}

// addLabels returns the value of the fiber's context for a key, of which v is that of the context around it: v itself,
// unless package pprof asks for the labels.
func (f *Fiber) addLabels(key, v any) any {
	if key != labelling().key {
		return v
	}
	return pprof.WithLabels(labelContext{context.Background(), v}, f.names()).Value(key)
}

// labelContext is a context with labels for package pprof.
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

// labelsHere returns a context with the labels of the running goroutine.
func labelsHere() context.Context {
	labels, set := coro.Labels(), labelling().set
	if labels == nil || set == nil {
		return context.Background()
	}
	return labelContext{context.Background(), reflect.NewAt(set, labels).Interface()}
}

// labelling returns how package pprof keeps the labels of a context: under which key, and as a pointer to which type. A
// goroutine has the same pointer. The type is nil if it is not so in this release of Go; then the labels of the spawner
// are lost. Guarded by TestFibersHaveLabels.
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

// keyContext records the key for which it is asked.
type keyContext struct {
	context.Context
	key any
}

func (c *keyContext) Value(key any) any {
	c.key = key
	return nil
}
