package coir_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/stream"
)

// iterators has the iterators that end with their context. Each has a value that it may yield before.
var iterators = map[string]func(ctx context.Context) iter.Seq2[any, error]{
	"buf.(*Chan)": func(ctx context.Context) iter.Seq2[any, error] { return anys(buf.NewChan(1).All(ctx)) },
	"coir.(*Chan[T])": func(ctx context.Context) iter.Seq2[any, error] {
		return anys(coir.NewChan[int](1).All(ctx))
	},
	"coir.(*Ordered[T])": func(ctx context.Context) iter.Seq2[any, error] {
		return anys(coir.NewOrdered[int](1).All(ctx))
	},
	"coir.(*Reader[T])": func(ctx context.Context) iter.Seq2[any, error] {
		_, r := coir.Pipe[int](1)
		return anys(r.All(ctx))
	},
	"pubsub.(*Subscription[T])": func(ctx context.Context) iter.Seq2[any, error] {
		return anys(pubsub.NewBroadcast[int]().Subscribe(1).All(ctx))
	},
	"stream.(Stream[T])": func(ctx context.Context) iter.Seq2[any, error] {
		return anys(stream.From[int](coir.NewChan[int](1)).All(ctx))
	},
}

// notTried are the iterators that need a region of shared memory, or another process.
var notTried = []string{"buf-shm.(*Receiver)", "remote.(*Chan[T])"}

func anys[T any](seq iter.Seq2[T, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for v, err := range seq {
			if !yield(v, err) {
				return
			}
		}
	}
}

// An iterator that its context ends yields the error as the last pair, and does not end silently.
func TestIteratorsYieldTheCancel(t *testing.T) {
	for name, all := range iterators {
		for _, now := range []bool{true, false} {
			if err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
				ctx, cancel := coir.WithCancel(ctx)
				defer cancel()
				if now {
					cancel()
				}
				n.Go("cancel", func(context.Context) error { cancel(); return nil })
				values, err := collect(all(ctx))
				if !errors.Is(err, context.Canceled) || len(values) > 0 {
					t.Errorf("%s: %v, then %v; want only the error of the cancel", name, values, err)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	}
}

// Each method All that takes a context is in one of the lists above.
func TestIteratorsAreListed(t *testing.T) {
	files, err := filepath.Glob("api/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimSuffix(filepath.Base(file), ".txt")
		for line := range strings.Lines(string(text)) {
			of, isMethod := strings.CutPrefix(line, "method ")
			of, _, isAll := strings.Cut(of, " All(ctx ")
			if !isMethod || !isAll {
				continue
			}
			name := pkg + "." + of
			found++
			if iterators[name] == nil && !strings.Contains(strings.Join(notTried, " "), name) {
				t.Errorf("%s has an All, and is in no list", name)
			}
		}
	}
	if found != len(iterators)+len(notTried) {
		t.Errorf("%d methods All, and %d in the lists", found, len(iterators)+len(notTried))
	}
}
