package promcoir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/metrics"
	"github.com/coir-go/coir/metrics/promcoir"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// run runs fn in a bubble until all its fibers wait. Then it calls look, while the clock does not advance.
func run(t *testing.T, fn func(n *coir.Nursery), look func(t *testing.T, c *metrics.Collector)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				fn(n)
				return nil
			})
		}()
		synctest.Wait()
		look(t, metrics.New(coir.Default()))
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// waiters starts two fibers for each name: one waits to receive from a channel of that name, and one waits for a lock.
func waiters(names ...string) func(n *coir.Nursery) {
	return func(n *coir.Nursery) {
		for _, name := range names {
			c, lock := coir.NewChan[int](0, coir.WithName(name)), locks.NewMutex(coir.WithName(name))
			for range 2 {
				n.Go("lock", func(ctx context.Context) error {
					if err := lock.Lock(ctx); err != nil {
						return err
					}
					_, err := c.Recv(ctx)
					return err
				})
			}
		}
	}
}

// registryOf returns a registry with the collector. It is pedantic: it checks the collected metrics.
func registryOf(t *testing.T, c *metrics.Collector) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(promcoir.New(c)); err != nil {
		t.Fatal(err)
	}
	return registry
}

// Prometheus gets all samples, with their labels, kinds and help texts.
func TestEverySampleIsExported(t *testing.T) {
	run(t, waiters("orders", "scales"), func(t *testing.T, c *metrics.Collector) {
		families, err := registryOf(t, c).Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			all := slices.Collect(metrics.All())
			i := slices.IndexFunc(all, func(m metrics.Metric) bool { return m.Name == f.GetName() })
			if i < 0 {
				t.Errorf("%s is not in the vocabulary", f.GetName())
				continue
			}
			kind := "GAUGE"
			if all[i].Kind == metrics.KindCounter {
				kind = "COUNTER"
			}
			if f.GetType().String() != kind || f.GetHelp() != all[i].Help {
				t.Errorf("%s is a %s: %s", f.GetName(), f.GetType(), f.GetHelp())
			}
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				got[fmt.Sprint(f.GetName(), labels)] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		want := map[string]float64{}
		for _, s := range c.Samples() { // from the same snapshot, because the clock does not advance
			all := slices.Collect(metrics.All())
			m := all[slices.IndexFunc(all, func(m metrics.Metric) bool { return m.Name == s.Name })]
			labels := map[string]string{}
			for i, l := range m.Labels {
				labels[l] = s.Labels[i]
			}
			want[fmt.Sprint(s.Name, labels)] = s.Value
		}
		for name, value := range want {
			if v, ok := got[name]; !ok || v != value {
				t.Errorf("%s is %v (%v), not %v", name, v, ok, value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d series, not %d", len(got), len(want))
		}
	})
}

// For any number of hostile names, the response is valid and bounded.
func TestHostileNamesAreServed(t *testing.T) {
	names := []string{
		"<script>alert(1)</script>", "a\nb\r\x00\x1b[2J", strings.Repeat("x", 1<<20), "\xff\xfe", `"} 1`, "other", "",
		"unnamed", "\u202e",
	}
	for i := range 1500 {
		names = append(names, fmt.Sprintf(`%d "%s"`, i, strings.Repeat("\\", 200)))
	}
	run(t, waiters(names...), func(t *testing.T, c *metrics.Collector) {
		registry := registryOf(t, c)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		series := 0
		for _, f := range families {
			series += len(f.GetMetric())
		}
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if w.Code != http.StatusOK || series > 1000 || w.Body.Len() > 400<<10 {
			t.Errorf("%d: %d series in %d bytes", w.Code, series, w.Body.Len())
		}
		for _, want := range []string{
			`coir_channel_receivers_waiting{name="<script>alert(1)</script>"} 1`,
			`coir_channel_receivers_waiting{name="a\\nb\\r\\x00\\x1b[2J"} 1`,
			`coir_channel_receivers_waiting{name="\\xff\\xfe"} 1`,
			`coir_channel_receivers_waiting{name="\"} 1"} 1`,
			`coir_channel_receivers_waiting{name="unnamed"} 2`,
		} {
			if !strings.Contains(w.Body.String(), want+"\n") {
				t.Errorf("%s is missing", want)
			}
		}
	})
}

// Scrapes by many servers at the same time, while the program runs, ends, and its runtime closes, are all answered.
func TestManyServers(t *testing.T) {
	rt := coir.NewRuntime()
	server := httptest.NewServer(promhttp.HandlerFor(registryOf(t, metrics.New(rt)), promhttp.HandlerOpts{}))
	defer server.Close()
	scrape := func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r, err := http.Get(server.URL)
				if err != nil {
					t.Error(err)
					return
				}
				defer r.Body.Close()
				text, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), "coir_fibers_live") {
					t.Errorf("%v, %d: %.200s", err, r.StatusCode, text)
				}
			})
		}
		all.Wait()
	}
	err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		waiters("orders")(n)
		_, err := coir.Blocking(t.Context(), func() (struct{}, error) {
			scrape()
			return struct{}{}, nil
		})
		n.Cancel(nil)
		return err
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	scrape()
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
	scrape()
	http.DefaultClient.CloseIdleConnections()
}

// A label distinguishes two runtimes.
func TestTwoRuntimes(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"front", "batch"} {
		rt := coir.NewRuntime()
		defer func() {
			if err := rt.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		labelled := prometheus.WrapRegistererWith(prometheus.Labels{"runtime": name}, registry)
		if err := labelled.Register(promcoir.New(metrics.New(rt))); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "coir_fibers_live" && len(f.GetMetric()) != 2 {
			t.Errorf("%d series of %s, not 2", len(f.GetMetric()), f.GetName())
		}
	}
}
