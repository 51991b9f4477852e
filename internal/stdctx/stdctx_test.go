package stdctx

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// The internals of package context that coir looks up must exist in every release of Go that coir supports. Without
// them operations under a cancellable context are correct, but slower.
func TestTheErrorOfAStandardContextIsFound(t *testing.T) {
	if errField == nil {
		t.Fatal("package context has no field err of type atomic.Value any more")
	}
	background := context.Background()
	plain, stopPlain := context.WithCancel(background)
	timed, stopTimed := context.WithTimeout(background, time.Hour)
	type key struct{}
	for name, x := range map[string]struct {
		ctx  context.Context
		stop func()
	}{
		"WithCancel":  {plain, stopPlain},
		"WithTimeout": {timed, stopTimed},
		"WithValue":   {context.WithValue(plain, key{}, 1), stopPlain},
	} {
		err := ErrWord(x.ctx)
		if err == nil {
			t.Fatalf("%s: not found", name)
		}
		if was := x.ctx.Err(); was == nil && err.Load() != nil {
			t.Errorf("%s: has an error before it is cancelled", name)
		}
		x.stop()
		if err.Load() == nil {
			t.Errorf("%s: has no error after it was cancelled", name)
		}
	}
	if ErrWord(ownContext{plain, make(chan struct{})}) != nil {
		t.Error("the error of another context was taken for that of a context with a Done of its own")
	}
}

// ownContext is a user's own implementation of context.Context.
type ownContext struct {
	context.Context
	done chan struct{}
}

func (c ownContext) Done() <-chan struct{} { return c.done }

// TestEnd: a context, and one derived from it, end with the error and the cause of the first call of End.
func TestEnd(t *testing.T) {
	cause := errors.New("a cause")
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
		for _, why := range []error{nil, cause} {
			c := New()
			in, cancel := context.WithCancel(c)
			defer cancel()
			if c.Err() != nil || in.Err() != nil || IsClosed(c.Done()) || IsClosed(in.Done()) {
				t.Fatal("has ended before End")
			}
			c.End(err, why)
			c.End(context.Canceled, errors.New("a second cause"))
			want := why
			if want == nil {
				want = err
			}
			for name, ctx := range map[string]context.Context{"the context": c, "one derived from it": in} {
				if !IsClosed(ctx.Done()) || ctx.Err() != err || context.Cause(ctx) != want {
					t.Errorf("End(%v, %v): %s ended with %v, %v", err, why, name, ctx.Err(), context.Cause(ctx))
				}
			}
		}
	}
}

// TestList: entries that are done are taken in the order in which they were added, others stay.
func TestList(t *testing.T) {
	var l List[int]
	var entries []*Entry[int]
	var done []*Context
	for i := range 6 {
		c := New()
		done = append(done, c)
		entries = append(entries, l.Add(c, c.Done(), i))
	}
	l.Remove(entries[3])
	l.Remove(entries[3])
	for _, i := range []int{4, 3, 0, 5} {
		done[i].End(context.Canceled, nil)
	}
	var took []int
	for e := l.TakeDone(); e != nil; e = l.TakeDone() {
		took = append(took, e.Of)
		l.Remove(e)
	}
	if want := []int{0, 4, 5}; !slices.Equal(took, want) {
		t.Errorf("took %v, want %v", took, want)
	}
	if e := l.Await(0); e != nil {
		t.Errorf("Await returned entry %d, which is not done", e.Of)
	}
	done[1].End(context.Canceled, nil)
	if e := l.Await(time.Hour); e != entries[1] || len(e.Stack()) == 0 {
		t.Errorf("Await returned %v", e)
	}
	l.Remove(entries[2])
	if l.first != nil || l.last != nil || l.n.Load() != 0 {
		t.Error("the list is not empty at the end")
	}
}
