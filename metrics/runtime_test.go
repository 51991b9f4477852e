package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/snapshot"
)

// running runs fn in a bubble until all its fibers wait, and then calls look.
func running(t *testing.T, fn func(context.Context, *coir.Nursery) error, look func(*testing.T, *coir.Runtime)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rt := coir.Default()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- rt.Run(ctx, fn) }()
		synctest.Wait()
		look(t, rt)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// The numbers are those of the program.
func TestARuntime(t *testing.T) {
	orders := coir.NewChan[int](2, coir.WithName("orders"))
	scales := locks.NewMutex(coir.WithName("scales"))
	running(t, func(ctx context.Context, n *coir.Nursery) error {
		for range 3 {
			n.Go("send", func(ctx context.Context) error {
				for {
					if err := orders.Send(ctx, 1); err != nil {
						return err
					}
				}
			})
		}
		n.Go("native", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, coir.WithGoroutine())
		for range 2 {
			n.Go("weigh", func(ctx context.Context) error {
				if err := scales.Lock(ctx); err != nil {
					return err
				}
				defer scales.Unlock()
				return coir.Sleep(ctx, time.Hour)
			})
		}
		return nil
	}, func(t *testing.T, rt *coir.Runtime) {
		time.Sleep(time.Minute) // on the virtual clock
		synctest.Wait()
		got := newCollector(rt).again(t)
		for name, want := range map[string]float64{
			"coir_fibers_live": 7, "coir_fibers{waiting}": 6, "coir_fibers{outside}": 1, "coir_fibers_omitted": 0,
			"coir_waits{send}": 3, "coir_waits{join}": 1, "coir_waits{sleep}": 1, "coir_waits{use}": 1,
			"coir_wait_oldest_seconds{sleep}":      60,
			"coir_nurseries{open}":                 1,
			"coir_channel_length{orders}":          2,
			"coir_channel_capacity{orders}":        2,
			"coir_channel_sent_total{orders}":      2,
			"coir_channel_senders_waiting{orders}": 3,
			"coir_object_waiting{mutex,scales}":    1,
		} {
			if got[name] != want {
				t.Errorf("%s is %v, not %v", name, got[name], want)
			}
		}
		for _, name := range []string{
			"coir_channel_wait_oldest_seconds{orders}", "coir_object_wait_oldest_seconds{mutex,scales}",
		} {
			if got[name] < 59 || got[name] > 60 {
				t.Errorf("%s is %v, not 60", name, got[name])
			}
		}
	})
}

// A program with hostile names, and more names than there is room for, has a bounded number of series and bytes, and
// the sums include all fibers.
func TestHostileNames(t *testing.T) {
	const channels = 1500
	names := []string{
		"<img src=x onerror=alert(1)>", "line\nbreak\x00\x1b[2J", strings.Repeat("long", 1<<18), "\xff\xfe", `"quoted\"`,
		"other", "",
	}
	running(t, func(ctx context.Context, n *coir.Nursery) error {
		for i := range channels {
			name := fmt.Sprint("channel ", i)
			if i < len(names) {
				name = names[i]
			}
			c := coir.NewChan[int](1, coir.WithName(name))
			lock := locks.NewMutex(coir.WithName(name))
			lock.TryLock()
			n.Go("fill", func(ctx context.Context) error {
				if err := c.Send(ctx, 1); err != nil {
					return err
				}
				return c.Send(ctx, 2)
			})
			n.Go("lock", func(ctx context.Context) error { return lock.Lock(ctx) })
		}
		return nil
	}, func(t *testing.T, rt *coir.Runtime) {
		c := newCollector(rt)
		for range 3 { // also when there is an earlier snapshot
			got := c.again(t)
			sum := map[string]float64{}
			bytes := 0
			for _, s := range c.samples {
				sum[s.Name] += s.Value
				bytes += len(s.Name)
				for _, l := range s.Labels {
					bytes += len(l)
				}
			}
			for name, want := range map[string]float64{
				"coir_channel_length": channels, "coir_channel_capacity": channels, "coir_channel_sent_total": channels,
				"coir_channel_senders_waiting": channels, "coir_object_waiting": channels,
			} {
				if sum[name] != want {
					t.Errorf("the sum of %s is %v, not %v", name, sum[name], want)
				}
			}
			if len(got) > mostSeries || bytes > 64<<10 {
				t.Errorf("%d series with %d bytes", len(got), bytes)
			}
			for _, name := range []string{"<img src=x onerror=alert(1)>", `line\nbreak\x00\x1b[2J`, `\xff\xfe`, "unnamed"} {
				if got["coir_channel_senders_waiting{"+name+"}"] != 1 {
					t.Errorf("%s has no series", name)
				}
			}
			if got["coir_channel_senders_waiting{other}"] < channels/2 {
				t.Errorf("%v wait for the others", got["coir_channel_senders_waiting{other}"])
			}
		}
	})
}

// A deadlock is counted by the first scrape after it, and by a scrape hours later, with the same numbers.
func TestExplanationsAreCounted(t *testing.T) {
	running(t, func(ctx context.Context, n *coir.Nursery) error {
		a, b := locks.NewMutex(coir.WithName("a")), locks.NewMutex(coir.WithName("b"))
		met := locks.NewBarrier(2)
		for _, pair := range [][2]*locks.Mutex{{a, b}, {b, a}} {
			n.Go("transfer", func(ctx context.Context) error {
				if err := pair[0].Lock(ctx); err != nil {
					return err
				}
				defer pair[0].Unlock()
				if _, _, err := met.Wait(ctx); err != nil {
					return err
				}
				return pair[1].Lock(ctx)
			})
		}
		return nil
	}, func(t *testing.T, rt *coir.Runtime) {
		c := newCollector(rt)
		for _, after := range []time.Duration{0, time.Second, time.Second, time.Hour} {
			time.Sleep(after) // on the virtual clock
			synctest.Wait()
			got := c.again(t)
			for _, e := range explanations {
				name := fmt.Sprintf("coir_explanations{%s,%s}", e.kind, e.certainty)
				want := 0.0
				if e.kind == snapshot.ProblemDeadlock && e.certainty == "certain" {
					want = 1
				}
				if v, ok := got[name]; !ok || v != want {
					t.Errorf("%s is %v (%v), not %v", name, v, ok, want)
				}
			}
		}
	})
}

// Each kind of explanation is counted in each scrape.
func TestEveryProblemIsCounted(t *testing.T) {
	const file = "../snapshot/explain.go"
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the module is not in the repository: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\tProblem\w+ +Problem += "([a-z-]+)"$`).FindAllSubmatch(text, -1)
	if len(kinds) == 0 {
		t.Fatal("no kinds are found in ", file)
	}
	for _, m := range kinds {
		e := explanation{snapshot.Problem(m[1]), "likely"}
		if !slices.Contains(explanations, e) {
			t.Errorf("a scrape without an explanation of the kind %s has no series for it: add it to severity in %s", e.kind, file)
		}
	}
}

// Scrapes within half a second share their numbers.
func TestScrapesShare(t *testing.T) {
	wait := func(ctx context.Context, _ *coir.Nursery) error { return coir.WaitCancel(ctx) }
	running(t, wait, func(t *testing.T, rt *coir.Runtime) {
		c := New(rt)
		first := &c.Samples()[0]
		time.Sleep(fresh - time.Nanosecond)
		if &c.Samples()[0] != first {
			t.Error("a scrape shortly after another took a snapshot")
		}
		time.Sleep(time.Nanosecond)
		if &c.Samples()[0] == first {
			t.Error("a scrape has old numbers")
		}
		if n := series(t, c.Samples())["coir_scrapes_total"]; n != 2 {
			t.Errorf("%v scrapes are counted, not 2", n)
		}
	})
}

// slow is a source that detects two snapshots at the same time.
type slow struct {
	*coir.Runtime
	now, taken atomic.Int32
	together   atomic.Bool
}

func (s *slow) Snapshot(o snapshot.Options) *snapshot.Snapshot {
	if s.now.Add(1) > 1 {
		s.together.Store(true)
	}
	defer s.now.Add(-1)
	s.taken.Add(1)
	for range 100 {
		runtime.Gosched() // lets the others run
	}
	return s.Runtime.Snapshot(o)
}

// Any number of concurrent scrapes together take the two snapshots of one scrape.
func TestScrapesAtTheSameTime(t *testing.T) {
	// In a bubble, the clock does not advance until all of them have ended.
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Runtime: coir.Default()}
		c := newCollector(s)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { c.Samples() })
		}
		all.Wait()
		if s.together.Load() || s.taken.Load() != 2 {
			t.Errorf("%d snapshots, at the same time: %v", s.taken.Load(), s.together.Load())
		}
	})
}

// Scrapes of a program that spawns fibers, sends and ends are well-formed, and its totals do not decrease.
func TestScrapesUnderLoad(t *testing.T) {
	rt := coir.NewRuntime()
	c := newCollector(rt)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := 0; ctx.Err() == nil; i++ {
				ch := coir.NewChan[int](i%3, coir.WithName(fmt.Sprint("ch", i%50)))
				if err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Go("send", func(ctx context.Context) error {
						defer ch.Close()
						_, err := ch.SendMany(ctx, make([]int, 20))
						return err
					})
					for _, err := range ch.All(ctx) {
						if err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := map[string]float64{}
			for range 50 {
				c.mu.Lock()
				c.made = time.Time{} // forces a new snapshot
				c.mu.Unlock()
				for name, value := range series(t, c.Samples()) {
					if strings.Contains(name, "_total") && value < last[name] {
						t.Errorf("%s fell from %v to %v", name, last[name], value)
					}
					if value < 0 {
						t.Errorf("%s is %v", name, value)
					}
					last[name] = value
				}
			}
		})
	}
	all.Wait()
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	// In the end, only the totals are left.
	got := c.again(t)
	if got["coir_fibers_live"] != 0 || got["coir_workers{idle}"]+got["coir_workers{active}"] != 0 ||
		got["coir_fibers_spawned_total"] == 0 || got["coir_fibers_spawned_total"] != got["coir_fibers_ended_total"] {
		t.Errorf("of a closed runtime: %v", got)
	}
}

// Scrapes continue while a runtime closes.
func TestScrapesWhileARuntimeCloses(t *testing.T) {
	for range 20 {
		rt := coir.NewRuntime()
		c := newCollector(rt)
		ended := make(chan error)
		started := make(chan struct{})
		go func() {
			ended <- rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
				for range 100 {
					n.Go("wait", func(ctx context.Context) error { return coir.WaitCancel(ctx) })
				}
				close(started)
				return nil
			})
		}()
		<-started
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 5 {
					c.again(t)
				}
			})
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if live := c.again(t)["coir_fibers_live"]; live != 0 {
			t.Errorf("%v fibers live", live)
		}
	}
}

// BenchmarkScrape scrapes 10,000 fibers that wait for 100 channels: go -C metrics test -bench Scrape -run '^$'
func BenchmarkScrape(b *testing.B) {
	rt := coir.NewRuntime()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() {
		done <- rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			chans := make([]*coir.Chan[int], 100)
			for i := range chans {
				chans[i] = coir.NewChan[int](0, coir.WithName(fmt.Sprint("ch", i)))
			}
			for i := range 10_000 {
				n.Go("recv", func(ctx context.Context) error {
					_, err := chans[i%len(chans)].Recv(ctx)
					return err
				}, coir.WithIndex(i))
			}
			return nil
		})
	}()
	c := newCollector(rt)
	for {
		c.mu.Lock()
		samples := c.scrape()
		c.mu.Unlock()
		waiting := 0.0
		for _, s := range samples {
			if s.Name == "coir_waits" {
				waiting += s.Value
			}
		}
		if waiting == 10_001 {
			break
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c.mu.Lock()
		c.scrape()
		c.mu.Unlock()
	}
	cancel()
	<-done
}
