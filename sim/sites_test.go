package sim

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
)

// A cancel in a function that the program has passed to the library is not shown as the library's call of the function.
func TestSiteOfACancel(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		_ = stream.ForEach(ctx, stream.FromSlice([]int{1}), func(ctx context.Context, _ int) error {
			ctx, cancel := coir.WithTimeout(ctx, time.Second)
			defer cancel()
			return coir.Sleep(ctx, time.Millisecond)
		})
		s.Errorf("end")
	})
	if at := f.sites[1]; len(f.sites) != 2 || at.call != "" || !strings.HasSuffix(at.file, "sites_test.go") {
		t.Errorf("the cancel is at %v of %d", at, len(f.sites))
	}
}

// The lines are those of the reported run, and each step has its own.
func TestSitesOfOperations(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](2, coir.WithName("c"))
		_ = c.Send(ctx, 1)
		_, _ = c.SendMany(ctx, []int{1})
		c.Close()
		for range c.All(ctx) { //nolint:revive // all values in the channel
		}
		s.Errorf("end")
	})
	first := f.sites[0].line
	for i, want := range []int{0, 1, 2} {
		if at := f.sites[i]; at.line != first+want || !strings.HasSuffix(at.file, "sites_test.go") || at.call != "" {
			t.Errorf("step %d is at %v", i+1, at)
		}
	}
	for i, at := range f.sites[3:] {
		if at.line != first+3 || !strings.HasSuffix(at.file, "sites_test.go") || at.call != "" {
			t.Errorf("step %d, of the loop, is at %v", i+4, at)
		}
	}
}

// A wait for the next value of a loop is at the line of the loop, and an operation in its body at its own, whatever the
// compiler has inlined.
func TestSitesOfLoops(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	byChan := func(ctx context.Context, c, d *coir.Chan[int]) {
		for v := range c.All(ctx) { // line 2
			_ = d.Send(ctx, v)     // line 3
			for range d.All(ctx) { // line 4
				_ = coir.Yield(ctx) // line 5
			}
		}
	}
	byReader := func(ctx context.Context, r *coir.Reader[int]) {
		for range r.All(ctx) { // line 10
			_ = coir.Yield(ctx) // line 11
		}
	}
	byOrdered := func(ctx context.Context, o *coir.Ordered[int]) {
		for range o.All(ctx) { // line 15
			_ = coir.Yield(ctx)
		}
	}
	const end = 19
	for _, x := range []struct {
		program func(ctx context.Context)
		want    []string // the call and the line of each step, without repetitions
	}{
		{func(ctx context.Context) {
			c, d := coir.NewChan[int](1), coir.NewChan[int](1)
			_ = c.TrySend(1)
			byChan(ctx, c, d)
		}, []string{" 2", " 3", " 4", " 5", " 4"}},
		{func(ctx context.Context) {
			w, r := coir.Pipe[int](1)
			_ = w.TrySend(1)
			byReader(ctx, r)
		}, []string{" 10", " 11", " 10"}},
		{func(ctx context.Context) {
			o := coir.NewOrdered[int](1)
			byOrdered(ctx, o)
		}, []string{"Ordered.All 15"}},
	} {
		f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) { x.program(ctx) })
		var got []string
		for _, at := range f.sites {
			text := fmt.Sprint(at.call, " ", at.line-line)
			if at.line > line && at.line < line+end && (len(got) == 0 || got[len(got)-1] != text) {
				got = append(got, text)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("the loop has the steps %q, not %q:\n%v", got, x.want, f)
		}
	}
}
