package large

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A crawler. Its workers take addresses from a queue, fetch each page at a limited rate, and add the links of the page to
// the queue. The crawl ends when no address is left.

// limiter gives out tokens at a rate.
type limiter struct {
	tokens chan struct{}
	stop   chan struct{}
	done   sync.WaitGroup
}

func newLimiter(every time.Duration, burst int) *limiter {
	l := &limiter{tokens: make(chan struct{}, burst), stop: make(chan struct{})}
	l.done.Add(1)
	go func() {
		defer l.done.Done()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				select {
				case l.tokens <- struct{}{}:
				default:
				}
			case <-l.stop:
				return
			}
		}
	}()
	return l
}

func (l *limiter) take() { <-l.tokens }

func (l *limiter) close() {
	close(l.stop)
	l.done.Wait()
}

// site is the pages, each with its links.
type site map[string][]string

// archive returns a site whose first page has a link to each of some lists. A list goes on from page to page, and has some
// files at its end.
func archive(lengths ...int) site {
	s := site{"/": nil}
	for i, n := range lengths {
		at := fmt.Sprintf("/%d/", i)
		s["/"] = append(s["/"], at)
		for page := range n {
			next := fmt.Sprintf("/%d/%d/", i, page+1)
			s[at] = []string{"/", next}
			at = next
		}
		s[at] = []string{"/"}
		for file := range 4 {
			name := fmt.Sprintf("/%d/file-%d.pdf", i, file)
			s[at], s[name] = append(s[at], name), nil
		}
	}
	return s
}

// fetch returns the links of a page.
func (s site) fetch(address string) []string {
	took := 3
	for _, letter := range address {
		took += int(letter) % 2
	}
	took = 3 + took%2
	if strings.HasSuffix(address, ".pdf") {
		took = 9
	}
	time.Sleep(time.Duration(took) * time.Millisecond)
	return s[address]
}

// crawler visits each page of a site once.
type crawler struct {
	site    site
	limit   *limiter
	queue   chan string
	mu      sync.Mutex
	seen    map[string]bool
	open    int // addresses that are queued or being fetched
	visited []string
	pages   chan string
}

func newCrawler(s site, limit *limiter) *crawler {
	return &crawler{
		site: s, limit: limit, queue: make(chan string, len(s)), seen: map[string]bool{}, pages: make(chan string, 4),
	}
}

// add queues an address that is new.
func (c *crawler) add(address string) {
	c.mu.Lock()
	if c.seen[address] {
		c.mu.Unlock()
		return
	}
	c.seen[address] = true
	c.open++
	c.mu.Unlock()
	c.queue <- address
}

// finished is called when an address has been fetched.
func (c *crawler) finished(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.visited = append(c.visited, address)
	if c.open--; c.open == 0 {
		close(c.queue)
	}
}

// work fetches pages until there are no more.
func (c *crawler) work() {
	for address := range c.queue {
		c.limit.take()
		links := c.site.fetch(address)
		c.finished(address)
		for _, link := range links {
			c.add(link)
		}
		select {
		case c.pages <- address:
		default:
		}
	}
}

// crawl visits all pages from a first one on, with some workers.
func (c *crawler) crawl(first string, workers int) {
	var wg sync.WaitGroup
	c.add(first)
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c.work()
		}()
	}
	wg.Wait()
}

// progress counts pages until it is stopped.
func (c *crawler) progress(stop chan struct{}) (pages int) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.pages:
			pages++
		case <-tick.C:
		case <-stop:
			return pages
		}
	}
}

// Expect: panic
func TestCrawler(t *testing.T) {
	s := archive(0, 0, 1, 8, 8)
	limit := newLimiter(time.Millisecond, 4)
	c := newCrawler(s, limit)
	for i := range 5 { // known from the last crawl
		c.add(fmt.Sprintf("/%d/", i))
	}
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Add(1)
	go func() {
		defer watch.Done()
		c.progress(stop)
	}()
	c.crawl("/", 9)
	close(stop)
	watch.Wait()
	limit.close()
	if len(c.visited) != len(s) {
		t.Errorf("%d pages were visited, of %d", len(c.visited), len(s))
	}
}
