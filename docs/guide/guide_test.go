package guide_test

// The code of the guides: see TestDocumentsQuoteCode.

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/sim"
)

type page struct{ url, text string }

var errNoPage = errors.New("no such page")

func get(ctx context.Context, url string) (page, error) {
	if url == "missing" {
		return page{}, errNoPage
	}
	return page{url, "text of " + url}, ctx.Err()
}

// From errgroup.

func fetchAll(ctx context.Context, urls []string) ([]page, error) {
	pages := make([]page, len(urls))
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(8)
		for i, url := range urls {
			n.Go("fetch", func(ctx context.Context) (err error) {
				pages[i], err = get(ctx, url)
				return err
			}, coir.WithIndex(i))
		}
		return nil
	})
	return pages, err
}

func TestFetchAll(t *testing.T) {
	pages, err := fetchAll(t.Context(), []string{"a", "b", "c"})
	if err != nil || len(pages) != 3 || pages[2].text != "text of c" {
		t.Errorf("got %v, %v", pages, err)
	}
	if _, err := fetchAll(t.Context(), []string{"a", "missing", "c"}); !errors.Is(err, errNoPage) {
		t.Errorf("got %v", err)
	}
}

// From a worker pool.

func process(ctx context.Context, workers int, source []string, out *coir.Chan[page]) error {
	defer out.Close()
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		jobs := coir.NewChan[string](16, coir.WithName("jobs"))
		for i := range workers {
			n.Go("worker", func(ctx context.Context) error {
				for url, err := range jobs.All(ctx) {
					if err != nil {
						return err
					}
					p, err := get(ctx, url)
					if err != nil {
						return err
					}
					if err := out.Send(ctx, p); err != nil {
						return err
					}
				}
				return nil
			}, coir.WithIndex(i))
		}
		defer jobs.Close()
		for _, url := range source {
			if err := jobs.Send(ctx, url); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestProcess(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var got []string
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			out := coir.NewChan[page](0, coir.WithName("pages"))
			n.Go("process", func(ctx context.Context) error {
				return process(ctx, 2, []string{"a", "b", "c"}, out)
			})
			for p, err := range out.All(ctx) {
				if err != nil {
					return err
				}
				got = append(got, p.url)
			}
			return nil
		})
		slices.Sort(got)
		if err != nil || strings.Join(got, "") != "abc" {
			s.Errorf("got %v, %v", got, err)
		}
	})
}

// From native channels.

func firstOf(ctx context.Context, answers *coir.Chan[string], quit *coir.Event) (string, error) {
	var answer string
	switch i, err := coir.Select(ctx, answers.RecvCase(&answer), quit.DoneCase(), coir.After(time.Second)); i {
	case 0:
		return answer, err // ErrClosed if there are no more
	case 1:
		return "", errQuit
	case 2:
		return "", errLate
	default:
		return "", err // ctx ended
	}
}

var (
	errQuit = errors.New("quit")
	errLate = errors.New("late")
)

func TestFirstOf(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		answers, quit := coir.NewChan[string](1), coir.NewEvent()
		if _, err := firstOf(ctx, answers, quit); !errors.Is(err, errLate) {
			s.Errorf("got %v", err)
		}
		_ = answers.TrySend("yes")
		if answer, err := firstOf(ctx, answers, quit); answer != "yes" || err != nil {
			s.Errorf("got %q, %v", answer, err)
		}
		quit.Set()
		if _, err := firstOf(ctx, answers, quit); !errors.Is(err, errQuit) {
			s.Errorf("got %v", err)
		}
	})
}

// Kinds of channels.

type (
	order  int
	event  string
	config struct{ version int }
	sample struct{ value int }
)

func TestKinds(t *testing.T) {
	handover := coir.NewChan[order](0)
	queue := coir.NewChan[order](64)
	log := coir.NewChan[event](coir.Unbounded)
	configs := coir.NewChan[config](coir.Conflated)
	samples := coir.NewChan[sample](64, coir.WithOverflow(coir.OverflowDropOldest))
	if err := handover.TrySend(1); !errors.Is(err, coir.ErrWouldBlock) {
		t.Errorf("a rendezvous without a receiver: %v", err)
	}
	if queue.Cap() != 64 {
		t.Errorf("capacity %d", queue.Cap())
	}
	for i := range 100 {
		if log.TrySend("started") != nil || configs.TrySend(config{i}) != nil || samples.TrySend(sample{i}) != nil {
			t.Fatal("a send failed on a channel that is never full")
		}
	}
	if c, _ := configs.TryRecv(); c.version != 99 {
		t.Errorf("got version %d", c.version)
	}
	if s, _ := samples.TryRecv(); s.value != 36 {
		t.Errorf("got sample %d", s.value)
	}
}

// Locks.

type account struct {
	lock    *locks.Mutex
	balance int
}

func transfer(ctx context.Context, from, to *account, amount int) error {
	if err := from.lock.Lock(ctx); err != nil {
		return err
	}
	defer from.lock.Unlock()
	if err := to.lock.Lock(ctx); err != nil {
		return err
	}
	defer to.lock.Unlock()
	from.balance -= amount
	to.balance += amount
	return nil
}

func transferBothWays(ctx context.Context, _ *sim.Sim) {
	a := &account{lock: locks.NewMutex(coir.WithName("a")), balance: 100}
	b := &account{lock: locks.NewMutex(coir.WithName("b")), balance: 100}
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("there", func(ctx context.Context) error { return transfer(ctx, a, b, 10) })
		n.Go("back", func(ctx context.Context) error { return transfer(ctx, b, a, 20) })
		return nil
	})
}

func inOrder(ctx context.Context, from, to *account, amount int, idFrom, idTo int) error {
	first, second := from, to
	if idFrom > idTo {
		first, second = to, from
	}
	if err := first.lock.Lock(ctx); err != nil {
		return err
	}
	defer first.lock.Unlock()
	if err := second.lock.Lock(ctx); err != nil {
		return err
	}
	defer second.lock.Unlock()
	from.balance -= amount
	to.balance += amount
	return nil
}

func TestInOrder(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		a, b := &account{lock: locks.NewMutex(coir.WithName("a"))}, &account{lock: locks.NewMutex(coir.WithName("b"))}
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("there", func(ctx context.Context) error { return inOrder(ctx, a, b, 10, 1, 2) })
			n.Go("back", func(ctx context.Context) error { return inOrder(ctx, b, a, 20, 2, 1) })
			return nil
		})
		if err != nil || a.balance != 10 || b.balance != -10 {
			s.Errorf("%d, %d, %v", a.balance, b.balance, err)
		}
	})
}

// What waits for a lock can wait for something else at the same time.
func lockOrQuit(ctx context.Context, m *locks.Mutex, quit *coir.Event) error {
	switch i, err := coir.Select(ctx, m.LockCase(), quit.DoneCase()); i {
	case 0:
		defer m.Unlock()
		return nil
	case 1:
		return errQuit
	default:
		return err
	}
}

func TestLockOrQuit(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var m locks.Mutex
		quit := coir.NewEvent()
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			if err := m.Lock(ctx); err != nil {
				return err
			}
			n.Go("waits", func(ctx context.Context) error {
				if err := lockOrQuit(ctx, &m, quit); !errors.Is(err, errQuit) {
					s.Errorf("%v", err)
				}
				return nil
			})
			quit.Set()
			return nil
		})
	}, sim.WithSchedules(100))
}

// A counter needs no lock of this package: its holder calls no operation of coir.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

func TestCounter(t *testing.T) {
	var c counter
	if c.add() != 1 {
		t.Error("not 1")
	}
}

// quoted lists the files that have the code of a document, which are compiled.
var quoted = map[string][]string{
	"guide/buffers.md":    {"buffers_test.go"},
	"guide/coir-test.md":  {"../../cmd/coir/testdata/pay/pay_test.go", "../../cmd/coir/testdata/bank/bank_test.go"},
	"guide/desk.md":       {"desk_test.go"},
	"guide/io.md":         {"io_test.go", "../../verify/iodb/iodb_test.go"},
	"guide/kinds.md":      {"guide_test.go"},
	"guide/locks.md":      {"guide_test.go"},
	"guide/moving.md":     {"guide_test.go", "../../bench/twins/moving/moving.go"},
	"guide/production.md": {"production_test.go"},
	"guide/remote.md": {
		"../../remote/guide_test.go", "../../remote/postgres/guide_test.go",
		"../../remote/nats/examples/orders/first/main.go", "../../remote/nats/examples/orders/main.go",
		"../../remote/nats/examples/orders/orders_test.go",
		"../../remote/postgres/internal/guide/guide_test.go",
	},
	"guide/reports.md": {"reports_test.go", "../../cmd/coir/testdata/three/three_test.go"},
	"guide/seeing.md": {
		"seeing_test.go", "../../metrics/promcoir/example_test.go", "../../metrics/otelcoir/example_test.go",
	},
	"guide/service.md": {
		"../../examples/service/service.go", "../../examples/service/supervise.go", "../../examples/service/main.go",
		"../../examples/service/main_test.go",
	},
	"guide/streams.md": {"streams_test.go"},
	"guide/testing.md": {"testdata/prices/prices_test.go"},
	"guide/tuning.md":  {"tuning_test.go"},
}

// TestDocumentsQuoteCode: every block of Go in docs is code of a file that is compiled, word for word but for its
// indentation, or a whole program, which TestProgramsInDocsBuild builds, or has a comment above it that says why it is
// neither: <!-- fragment: reason -->. A line of three dots stands for code that is left out.
func TestDocumentsQuoteCode(t *testing.T) {
	blocks := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		document := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		var code string
		for _, file := range quoted[document] {
			code += squeezed(read(t, file))
		}
		before, rest, found := strings.Cut(read(t, path), "```go\n")
		for found {
			blocks++
			block, after, _ := strings.Cut(rest, "\n```")
			lines := strings.Split(strings.TrimRight(before, "\n"), "\n")
			fragment := strings.HasPrefix(lines[len(lines)-1], "<!-- fragment: ")
			for part := range strings.SplitSeq(squeezed(block+"\n"), "...\n") {
				if !fragment && !strings.HasPrefix(block, "package main\n") && !strings.Contains(code, part) {
					t.Errorf("docs/%s has code that is in none of %v:\n%s", document, quoted[document], part)
				}
			}
			before, rest, found = strings.Cut(after, "```go\n")
		}
		return nil
	})
	if err != nil || blocks < 80 {
		t.Errorf("%d blocks of code were found, %v", blocks, err)
	}
}

// The code of the guide to testing does what the guide says: TestPrices fails, and the others pass.
func TestThePricesOfTheGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	out, err := exec.Command("go", "test", "-count=1", "-run", "^TestPrices$", "./testdata/prices").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "deadlock") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = exec.Command("go", "test", "-count=1", "-skip", "^(TestPrices|FuzzPrices)$", "./testdata/prices").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// squeezed returns text without indentation and empty lines.
func squeezed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
