//go:build corpus

package corpus

import (
	"testing"
)

// A pager fetches pages ahead of a reader. The reader asks it to stop after a page that it knows and ranges over what
// is left. A pager that stops early returns without closing its channel, and the range never ends.
//
// Class: channel
// Expect: deadlock

func fetchPages(pages []string, stop <-chan struct{}) <-chan string {
	out := make(chan string, 2)
	go func() {
		for _, page := range pages {
			select {
			case out <- page:
			case <-stop:
				return
			}
		}
		close(out)
	}()
	return out
}

func fetchPagesFixed(pages []string, stop <-chan struct{}) <-chan string {
	out := make(chan string, 2)
	go func() {
		defer close(out)
		for _, page := range pages {
			select {
			case out <- page:
			case <-stop:
				return
			}
		}
	}()
	return out
}

func runPager(t *testing.T, fetch func([]string, <-chan struct{}) <-chan string) {
	stop := make(chan struct{})
	read := 0
	for page := range fetch([]string{"known", "older", "oldest"}, stop) {
		read++
		if page == "known" {
			close(stop)
		}
	}
	if read < 1 || read > 3 {
		t.Errorf("read %d pages", read)
	}
}

func TestBugPager(t *testing.T) {
	runPager(t, fetchPages)
}

func TestFixedPager(t *testing.T) {
	runPager(t, fetchPagesFixed)
}
