package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// statements is a lot whose statements wait until the test lets them continue. A request is a number of bytes, and its
// answer is the same number.
type statements struct {
	lot[int, int]
	begun chan []int // the requests of a statement that has begun
	end   chan error // lets the statement end
}

func newStatements(t *testing.T) *statements {
	tr := &Transport{}
	tr.ctx, tr.cancel = context.WithCancel(context.Background())
	s := &statements{begun: make(chan []int), end: make(chan error)}
	s.lot = lot[int, int]{t: tr, what: "try", size: func(n int) int { return n }, do: func(_ context.Context, qs []int) ([]int, error) {
		s.begun <- qs
		return qs, <-s.end
	}}
	t.Cleanup(func() {
		tr.running.Wait()
		tr.cancel()
	})
	return s
}

// asking starts a request, and waits until it is in the lot.
func (s *statements) asking(ctx context.Context, n *coir.Nursery, q int) *coir.Task[int] {
	before := s.len()
	task := coir.Start(n, "request", func(ctx context.Context) (int, error) { return s.ask(ctx, q) })
	for s.len() == before {
		_ = coir.Yield(ctx)
	}
	return task
}

// Requests that come while a statement is on its way are sent together, in their order, and within the bound of bytes.
func TestALotGathers(t *testing.T) {
	s := newStatements(t)
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		first := coir.Start(n, "request", func(ctx context.Context) (int, error) { return s.ask(ctx, 1) })
		if got := <-s.begun; !slices.Equal(got, []int{1}) {
			t.Errorf("the first statement has %v", got)
		}
		var later []*coir.Task[int]
		sizes := []int{2, 3, lotBytes - 10, 4, 5, 2 * lotBytes, 6}
		for _, q := range sizes {
			later = append(later, s.asking(ctx, n, q))
		}
		s.end <- nil
		for _, want := range [][]int{{2, 3, lotBytes - 10, 4}, {5}, {2 * lotBytes}, {6}} {
			if got := <-s.begun; !slices.Equal(got, want) {
				t.Errorf("a statement has %v, not %v", got, want)
			}
			s.end <- nil
		}
		for i, task := range append(later, first) {
			want := append(slices.Clone(sizes), 1)[i]
			if got, err := task.Wait(ctx); got != want || err != nil {
				t.Errorf("the answer to %d is %d: %v", want, got, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A request whose context ends before it was sent has no effect. If it was sent, its outcome is not known.
func TestALotWithdraws(t *testing.T) {
	s := newStatements(t)
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		short, cancel := coir.WithCancel(ctx)
		results := make(chan error, 2)
		n.Go("sent", func(context.Context) error {
			_, err := s.ask(short, 1)
			results <- err
			return nil
		}, coir.WithGoroutine())
		<-s.begun
		n.Go("waiting", func(context.Context) error {
			_, err := s.ask(short, 2)
			results <- err
			return nil
		}, coir.WithGoroutine())
		for s.len() == 0 {
			_ = coir.Yield(ctx)
		}
		cancel()
		unknown := 0
		for range 2 {
			err := <-results
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, remote.ErrUnknown) {
				unknown++
			}
		}
		if unknown != 1 {
			t.Errorf("%d of the requests have an outcome that is not known, and one was sent", unknown)
		}
		s.end <- nil
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
