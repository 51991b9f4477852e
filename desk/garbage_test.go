package desk_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// countedContext counts the functions registered to be called when it ends.
type countedContext struct {
	context.Context
	waiting *atomic.Int32
}

// Value hides that the inner context belongs to package context, so that AfterFunc is called.
func (c countedContext) Value(any) any { return nil }

func (c countedContext) AfterFunc(f func()) (stop func() bool) {
	c.waiting.Add(1)
	stopped := context.AfterFunc(c.Context, f)
	return func() bool {
		ok := stopped()
		if ok {
			c.waiting.Add(-1)
		}
		return ok
	}
}

// collect collects garbage until done reports true.
func collect(t *testing.T, what string, done func() bool) {
	t.Helper()
	for i := 0; !done(); i++ {
		if i == 1000 {
			t.Fatal(what)
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// A desk that is no longer used and has no open tickets is collected even if the context of its last ticket has not
// ended, and leaves nothing in the context. An open ticket ends with its context even if its desk is no longer used.
func TestDroppedDeskIsGarbage(t *testing.T) {
	scope, end := coir.WithCancel(context.Background())
	defer end()
	std, cancel := context.WithCancel(context.Background())
	defer cancel()
	var waiting, freed, ended atomic.Int32
	counted := countedContext{std, &waiting}
	const desks = 20
	for i := range desks {
		for _, ctx := range []context.Context{scope, counted, context.Background()} {
			d := desk.New[int](desk.WithName("of a connection"))
			runtime.AddCleanup(d, func(int) { freed.Add(1) }, 0)
			for range 2 {
				tk := open(t, ctx, d)
				if err := d.Resolve(tk.ID(), i); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	open(t, scope, desk.New[int](desk.WithName("dropped"))).OnDone(func(int, error) { ended.Add(1) })
	open(t, counted, desk.New[int](desk.WithName("dropped"))).OnDone(func(int, error) { ended.Add(1) })
	collect(t, "desks stay", func() bool { return freed.Load() == 3*desks })
	collect(t, "watches stay", func() bool { return waiting.Load() == 1 })
	end()
	cancel()
	collect(t, "open tickets of a dropped desk do not end", func() bool { return ended.Load() == 2 })
}
