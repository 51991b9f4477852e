package guide_test

// The code of streams.md.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/stream"
)

type entry struct {
	host   string
	status int
}

func parse(line string) (entry, error) {
	var e entry
	_, err := fmt.Sscanf(line, "%s %d", &e.host, &e.status)
	return e, err
}

// The guide shows the program as it is, and what it prints.
func TestFirstPipeline(t *testing.T) {
	program := read(t, "testdata/count/main.go")
	shown := fmt.Sprintf("    $ ls *.go | go run .\n    %d main.go\n", strings.Count(program, "\n"))
	if guide := read(t, "streams.md"); !strings.Contains(guide, "```go\n"+program+"```\n") || !strings.Contains(guide, shown) {
		t.Errorf("streams.md does not show testdata/count/main.go, and:\n%s", shown)
	}
	if testing.Short() {
		t.Skip("it builds a program")
	}
	cmd := exec.Command("go", "run", "./testdata/count")
	cmd.Stdin = strings.NewReader("testdata/count/main.go\ntestdata/missing.go\ntestdata/count/main.go\n")
	out, err := cmd.Output()
	if err == nil || string(out) != fmt.Sprintf("%d testdata/count/main.go\n", strings.Count(program, "\n")) {
		t.Errorf("it prints %s, error %v", out, err)
	}
}

func failures(ctx context.Context, file io.Reader, save func(ctx context.Context, batch []entry) error) error {
	entries := stream.MapErr(stream.Lines(file), func(_ context.Context, line string) (entry, error) {
		return parse(line)
	})
	failed := stream.Filter(entries, func(e entry) bool { return e.status >= 500 })
	return stream.ForEach(ctx, stream.Batch(failed, 100, time.Second), save)
}

func TestFailures(t *testing.T) {
	var saved []entry
	save := func(_ context.Context, batch []entry) error {
		saved = append(saved, batch...)
		return nil
	}
	err := failures(t.Context(), strings.NewReader("a 200\nb 500\nc 503\nd 404\n"), save)
	if err != nil || !slices.Equal(saved, []entry{{"b", 500}, {"c", 503}}) {
		t.Errorf("saved %v, error %v", saved, err)
	}
	if err := failures(t.Context(), strings.NewReader("nonsense"), save); err == nil {
		t.Error("no error")
	}
}

func titles(ctx context.Context, urls []string) ([]string, error) {
	pages := stream.Parallel(stream.FromSlice(urls), 8, get)
	return stream.ToSlice(ctx, stream.Map(pages, func(p page) string { return p.text }))
}

func firstMatch(ctx context.Context, urls []string, word string) (page, error) {
	pages := stream.ParallelUnordered(stream.FromSlice(urls), 8, get)
	return stream.First(ctx, stream.Filter(pages, func(p page) bool { return strings.Contains(p.text, word) }))
}

func TestTitles(t *testing.T) {
	got, err := titles(t.Context(), []string{"a", "b"})
	if err != nil || !slices.Equal(got, []string{"text of a", "text of b"}) {
		t.Errorf("%v, error %v", got, err)
	}
	if _, err := titles(t.Context(), []string{"a", "missing"}); !errors.Is(err, errNoPage) {
		t.Errorf("error %v", err)
	}
	if p, err := firstMatch(t.Context(), []string{"a", "b"}, "of b"); err != nil || p.url != "b" {
		t.Errorf("%v, error %v", p, err)
	}
}

func perHost(entries stream.Stream[entry]) stream.Stream[string] {
	return stream.GroupBy(entries, 1000, func(e entry) string { return e.host },
		func(ctx context.Context, host string, group stream.Stream[entry]) (string, error) {
			n, err := stream.Count(ctx, group)
			return fmt.Sprintf("%s: %d", host, n), err
		})
}

func linesOf(n *coir.Nursery, file io.Reader) *coir.Reader[string] {
	return stream.Downstream(n, "lines", stream.Lines(file), 16)
}

func TestPerHost(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		in := stream.MapErr(stream.From(linesOf(n, strings.NewReader("a 1\nb 1\na 1\n"))),
			func(_ context.Context, line string) (entry, error) { return parse(line) })
		got, err := stream.ToSlice(ctx, perHost(in))
		slices.Sort(got)
		if !slices.Equal(got, []string{"a: 2", "b: 1"}) {
			t.Errorf("the stream gave %v, want [a: 2 b: 1]", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

type payment struct {
	account string
	cents   int
}

func balances(payments stream.Stream[payment], book func(context.Context, payment) (int, error)) stream.Stream[int] {
	return stream.ParallelPerKey(payments, 8, func(p payment) string { return p.account }, book)
}

func TestBalances(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		balance, calls := map[string]int{}, map[string]int{}
		all := stream.FromSlice([]payment{{"ann", 1}, {"bob", 20}, {"ann", 300}, {"bob", 4000}})
		got, err := stream.ToSlice(ctx, balances(all, func(ctx context.Context, p payment) (int, error) {
			calls[p.account]++
			s.Sometimes(calls["ann"]+calls["bob"] == 2, "two accounts at a time")
			if calls[p.account] > 1 {
				s.Errorf("two calls for %s at a time", p.account)
			}
			before := balance[p.account]
			err := coir.Yield(ctx)
			balance[p.account] = before + p.cents
			calls[p.account]--
			return balance[p.account], err
		}))
		ann := slices.DeleteFunc(slices.Clone(got), func(v int) bool { return v%20 == 0 })
		if err != nil || !slices.Equal(ann, []int{1, 301}) || balance["bob"] != 4020 {
			s.Errorf("%v, error %v", got, err)
		}
	})
}

type receipt struct{ host string }

type connection struct{ closed *int }

func (c *connection) store(_ context.Context, e entry) (receipt, error) { return receipt{e.host}, nil }

func (c *connection) Close() { *c.closed++ }

func stored(entries stream.Stream[entry], connect func(context.Context) (*connection, error)) stream.Stream[receipt] {
	return stream.Stage(entries, func(ctx context.Context, in stream.Stream[entry], emit emitter) error {
		worker := func(ctx context.Context, in stream.Stream[entry]) error {
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			return stream.ForEach(ctx, stream.MapErr(in, c.store), emit)
		}
		return stream.FanOut(ctx, in, worker, worker, worker, worker)
	})
}

type emitter = func(ctx context.Context, r receipt) error

func TestStored(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		opened, closed := 0, 0
		connect := func(ctx context.Context) (*connection, error) {
			opened++
			return &connection{&closed}, coir.Yield(ctx)
		}
		n, err := stream.Count(ctx, stored(stream.FromSlice([]entry{{"a", 1}, {"b", 2}, {"c", 3}}), connect))
		if n != 3 || err != nil || closed != opened {
			s.Errorf("%d stored, error %v; %d of %d connections are closed", n, err, closed, opened)
		}
		s.Sometimes(opened == 4, "all workers have connected")
		_, err = stream.Count(ctx, stored(stream.FromSlice([]entry{{"a", 1}}), func(context.Context) (*connection, error) {
			return nil, errNoPage
		}))
		if !errors.Is(err, errNoPage) {
			s.Errorf("the error %v", err)
		}
	})
}

func isTemporary(err error) bool { return errors.Is(err, errNoPage) }

func steady(feed stream.Stream[page], spare stream.Stream[page]) stream.Stream[page] {
	feed = stream.Retry(stream.Timeout(feed, time.Minute), 5, time.Second, time.Minute)
	return stream.Catch(feed, func(err error) (stream.Stream[page], error) {
		if isTemporary(err) {
			return spare, nil
		}
		return stream.Stream[page]{}, err
	})
}

func TestSteady(t *testing.T) {
	n, err := stream.Count(t.Context(), steady(stream.FromSlice(make([]page, 3)), stream.Stream[page]{}))
	if n != 3 || err != nil {
		t.Errorf("%d, error %v", n, err)
	}
}

func again(urls stream.Stream[string]) stream.Stream[page] {
	return stream.Parallel(urls, 8, func(ctx context.Context, url string) (page, error) {
		var p page
		err := pace.Retry(ctx, 5, time.Second, time.Minute, func(ctx context.Context) (err error) {
			if p, err = get(ctx, url); err != nil && !isTemporary(err) {
				return pace.Permanent(err)
			}
			return err
		})
		return p, err
	})
}

func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		pages, err := stream.ToSlice(t.Context(), again(stream.FromSlice([]string{"a", "missing"})))
		if len(pages) != 1 || !errors.Is(err, errNoPage) || time.Since(began) < 15*time.Second {
			t.Errorf("%v, error %v, after %v", pages, err, time.Since(began))
		}
	})
}

type purchase struct{ id, cents int }

func price(ctx context.Context, p purchase) (purchase, error) {
	return purchase{p.id, 100}, coir.Sleep(ctx, time.Second)
}

func sell(next func(ctx context.Context) (purchase, error), store func(ctx context.Context, p purchase) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)                        // so that a second signal ends the process
	work, cancel := coir.WithGrace(ctx, 10*time.Second) // ends 10 s after the signal
	defer cancel()
	orders := stream.Until(ctx, stream.FromFunc(next)) // ends at the signal
	return stream.ForEach(work, stream.Parallel(orders, 8, price), store)
}

func TestSell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot send itself a signal there")
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	taken, stored := 0, 0
	err = sell(func(ctx context.Context) (purchase, error) {
		if taken == 3 {
			if err := self.Signal(syscall.SIGTERM); err != nil {
				return purchase{}, err
			}
			return purchase{}, coir.WaitCancel(ctx)
		}
		taken++
		return purchase{id: taken}, nil
	}, func(_ context.Context, p purchase) error {
		if stored++; p != (purchase{stored, 100}) {
			t.Errorf("stored %v", p)
		}
		return nil
	})
	if err != nil || stored != 3 {
		t.Errorf("%d are stored, %v", stored, err)
	}
}

// The guide shows a plan.
func TestPlan(t *testing.T) {
	s := stream.Map(stream.FromSlice([]int{1, 2, 3}), func(v int) int { return v * v })
	s = stream.Buffer(stream.Filter(s, func(v int) bool { return v > 1 }), 16)
	s = stream.Parallel(stream.Skip(s, 1), 4, func(_ context.Context, v int) (int, error) { return -v, nil })
	if !strings.Contains(read(t, "streams.md"), "```\n"+s.Explain()+"```\n") {
		t.Errorf("the guide does not show\n%s", s.Explain())
	}
}
