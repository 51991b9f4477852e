package main

// Every page that can be reached is fetched once, with a bounded number of fetches at a time. The crawl ends when no
// work is left or when its time runs out. Only tests of a time limit wait for time.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

const places = 4

func TestItSaysWhatItHasVisited(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	var visited, timedOut int
	if _, err := fmt.Sscanf(out.String(), "%d of 500 pages visited, %d of them took too long\n", &visited, &timedOut); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	if visited < 1 || visited > 500 || timedOut > visited {
		t.Errorf("it printed %q", out.String())
	}
}

// Spec: CH-46 (the last Close of a side tells the other)
// Spec: NU-14 (Limit bounds the children that run)
func TestEveryReachablePageIsFetchedOnce(t *testing.T) {
	const pages = 300
	for seed := range uint64(20) {
		s := newSite(seed, pages)
		var fetched [pages]atomic.Int32
		var running, most atomic.Int32
		visits, err := patient(func(ctx context.Context, page int) ([]int, error) {
			for now, m := running.Add(1), most.Load(); now > m && !most.CompareAndSwap(m, now); {
				m = most.Load()
			}
			defer running.Add(-1)
			fetched[page].Add(1)
			return s.links[page], coir.Yield(ctx)
		}).crawl(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reachable := s.reachable()
		for page := range pages {
			n, v := fetched[page].Load(), visits[page]
			switch {
			case reachable[page] && (n != 1 || v == nil || v.err != nil):
				t.Errorf("seed %d: page %d was fetched %d times: %v", seed, page, n, v)
			case !reachable[page] && (n != 0 || v != nil):
				t.Errorf("seed %d: page %d cannot be reached, and was fetched %d times", seed, page, n)
			}
		}
		if n := most.Load(); n > places {
			t.Errorf("seed %d: %d fetches at once, with %d places", seed, n, places)
		}
	}
}

// All places are used: each fetch ends only when as many fetches as there are places have begun.
func TestAsManyAreFetchedAtOnceAsThereArePlaces(t *testing.T) {
	var begun atomic.Int32
	all := coir.NewChan[int](0)
	visits, err := patient(func(ctx context.Context, page int) ([]int, error) {
		if page == 0 {
			return []int{1, 2, 3, 4}, nil
		}
		if begun.Add(1) == places {
			all.Close()
		}
		if _, err := all.Recv(ctx); !errors.Is(err, coir.ErrClosed) {
			return nil, err
		}
		return nil, nil
	}).crawl(t.Context())
	if err != nil || len(visits) != 1+places {
		t.Errorf("%d visits, %v", len(visits), err)
	}
}

// A page that takes too long is abandoned; the other pages are not.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
func TestASlowPageTimesOut(t *testing.T) {
	links := [][]int{{1, 2}, {3}, {4}, {}, {}} // page 3 can only be reached through the slow page
	c := patient(func(ctx context.Context, page int) ([]int, error) {
		if page == 1 {
			return nil, coir.Sleep(ctx, time.Hour)
		}
		return links[page], nil // at once, so it cannot be late
	})
	c.patience = 10 * time.Millisecond
	visits, err := c.crawl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range []bool{true, true, true, false, true} {
		v := visits[page]
		if (v != nil) != want {
			t.Errorf("page %d: visited is %t", page, v != nil)
		} else if v != nil && errors.Is(v.err, coir.ErrTimeout) != (page == 1) {
			t.Errorf("page %d: %v", page, v.err)
		}
	}
}

// A crawl of an endless site ends when its time runs out, and returns the pages visited so far.
func TestTheWholeCrawlHasADeadline(t *testing.T) {
	c := patient(func(ctx context.Context, page int) ([]int, error) { return []int{page + 1, page + 2}, coir.Yield(ctx) })
	c.overall = 10 * time.Millisecond
	visits, err := c.crawl(t.Context())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d visits, %v", len(visits), err)
	}
}

// patient returns a crawler that never runs out of time.
func patient(fetch func(context.Context, int) ([]int, error)) *crawler {
	return &crawler{fetch: fetch, places: places, patience: time.Hour, overall: time.Hour}
}

// reachable computes the set of reachable pages without coir.
func (s *site) reachable() map[int]bool {
	seen, queue := map[int]bool{0: true}, []int{0}
	for len(queue) > 0 {
		for _, link := range s.links[queue[0]] {
			if !seen[link] {
				seen[link] = true
				queue = append(queue, link)
			}
		}
		queue = queue[1:]
	}
	return seen
}
