// Package moving holds the plain Go code of docs/guide/moving.md, with errgroup, a worker pool and native channels: the
// code before each change. The code after each change is in docs/guide/guide_test.go.
package moving

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

type page struct{ url, text string }

var (
	errNoPage = errors.New("no such page")
	errQuit   = errors.New("quit")
	errLate   = errors.New("late")
)

func get(ctx context.Context, url string) (page, error) {
	if url == "missing" {
		return page{}, errNoPage
	}
	return page{url, "text of " + url}, ctx.Err()
}

// The functions below are in the guide, word for word.

func fetchAll(ctx context.Context, urls []string) ([]page, error) {
	pages := make([]page, len(urls))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, url := range urls {
		g.Go(func() (err error) {
			pages[i], err = get(ctx, url)
			return err
		})
	}
	return pages, g.Wait()
}

func process(ctx context.Context, workers int, source []string, out chan<- page) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan string, 16)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for url := range jobs {
				p, err := get(ctx, url)
				if err != nil {
					cancel(err)
					return
				}
				select {
				case out <- p:
				case <-ctx.Done():
					return
				}
			}
		})
	}
feed:
	for _, url := range source {
		select {
		case jobs <- url:
		case <-ctx.Done():
			break feed
		}
	}
	close(jobs)
	wg.Wait()
	close(out)
	return context.Cause(ctx)
}

func firstOf(ctx context.Context, answers <-chan string, quit <-chan struct{}) (string, error) {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case answer, ok := <-answers:
		if !ok {
			return "", io.EOF
		}
		return answer, nil
	case <-quit:
		return "", errQuit
	case <-late.C:
		return "", errLate
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
