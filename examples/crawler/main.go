// Crawler visits every page that can be reached from the first one. It visits each page once, and a bounded number of
// pages at a time.
//
// The difficulty is knowing when to end. An empty frontier does not mean that the crawl is complete: a fetch that is
// still running may find more pages. The usual solution is a counter. Here the writers of a pipe are counted instead:
// each page in the frontier carries a writer to the frontier, which stays open until the page has been fetched and its
// links have been sent. When the last writer is closed, no page is queued and no fetch is running, and the frontier
// closes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/coir-go/coir"
)

type crawler struct {
	fetch    func(ctx context.Context, page int) (links []int, err error)
	places   int           // fetches that may run at a time
	patience time.Duration // time limit for one page
	overall  time.Duration
}

// job is a page to fetch. Its holder closes the writer after the fetch.
type job struct {
	page     int
	frontier *coir.Writer[job]
}

// visit is the result of a page. Only the fiber that fetches the page writes it, and it is read after Run has returned.
type visit struct {
	links []int
	err   error
}

// crawl visits the pages that can be reached from page 0. If the time runs out, it returns the visits so far and an
// error that is context.DeadlineExceeded.
func (c *crawler) crawl(ctx context.Context) (map[int]*visit, error) {
	ctx, cancel := coir.WithTimeout(ctx, c.overall)
	defer cancel()
	visits := make(map[int]*visit)
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(c.places)
		first, frontier := coir.Pipe[job](coir.Unbounded, coir.WithName("frontier"))
		if err := first.Send(ctx, job{0, first}); err != nil {
			return err
		}
		for j, err := range frontier.All(ctx) { // ends when no work is left
			if err != nil {
				return err
			}
			if visits[j.page] != nil {
				j.frontier.Close()
				continue
			}
			v := new(visit)
			visits[j.page] = v
			n.Go("fetch", func(ctx context.Context) error { return c.visit(ctx, j, v) }, coir.WithIndex(j.page))
		}
		return ctx.Err()
	})
	return visits, err
}

// visit fetches a page and sends its links to the frontier. If a page cannot be fetched, visit records the error, and
// the crawl continues.
func (c *crawler) visit(ctx context.Context, j job, v *visit) error {
	defer j.frontier.Close()
	limited, cancel := coir.WithTimeout(ctx, c.patience)
	defer cancel()
	v.links, v.err = c.fetch(limited, j.page)
	for _, page := range v.links {
		if err := j.frontier.Send(ctx, job{page, j.frontier.Clone()}); err != nil {
			return err
		}
	}
	return nil
}

// site is a simulated web site in memory.
type site struct {
	links [][]int // the links of each page
	slow  []bool
}

// newSite makes a site from a seed. One page in fifty takes an hour to answer.
func newSite(seed uint64, pages int) *site {
	random := rand.New(rand.NewPCG(seed, 0))
	s := &site{links: make([][]int, pages), slow: make([]bool, pages)}
	for page := range pages {
		for range 1 + random.IntN(3) {
			s.links[page] = append(s.links[page], random.IntN(pages))
		}
		s.slow[page] = random.IntN(50) == 0
	}
	return s
}

func (s *site) fetch(ctx context.Context, page int) ([]int, error) {
	latency := time.Millisecond
	if s.slow[page] {
		latency = time.Hour
	}
	if err := coir.Sleep(ctx, latency); err != nil {
		return nil, err
	}
	return s.links[page], nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	const pages = 500
	c := crawler{fetch: newSite(1, pages).fetch, places: 8, patience: time.Second / 4, overall: time.Minute}
	visits, err := c.crawl(context.Background())
	timedOut := 0
	for _, v := range visits {
		if errors.Is(v.err, coir.ErrTimeout) {
			timedOut++
		}
	}
	fmt.Fprintf(out, "%d of %d pages visited, %d of them took too long\n", len(visits), pages, timedOut)
	return err
}
