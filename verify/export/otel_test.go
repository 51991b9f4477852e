package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/metrics"
	"github.com/coir-go/coir/metrics/otelcoir"
	"github.com/coir-go/coir/metrics/promcoir"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// shop runs a program with the given names in a bubble until all its fibers wait. Then it calls look, while the clock
// does not advance.
func shop(t *testing.T, names []string, look func(t *testing.T, c *metrics.Collector)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for _, name := range names {
					orders := coir.NewChan[int](3, coir.WithName(name))
					scales := locks.NewMutex(coir.WithName(name))
					for range 2 {
						n.Go("pack", func(ctx context.Context) error {
							if err := scales.Lock(ctx); err != nil {
								return err
							}
							_, err := orders.SendMany(ctx, make([]int, 10))
							return err
						})
					}
				}
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

// names returns names of objects. Some are hostile, and there are more than can have series.
func names() []string {
	all := []string{
		"orders", "<script>", "a\nb\x00\x1b[2J", strings.Repeat("x", 1<<20), "\xff\xfe", "other", "", "\u202e",
	}
	for i := range 600 {
		all = append(all, fmt.Sprint("shelf ", i))
	}
	return all
}

// register registers the collector with a provider that has the reader.
func register(t *testing.T, c *metrics.Collector, reader sdk.Reader) {
	t.Helper()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := otelcoir.Register(provider.Meter("coir"), c); err != nil {
		t.Fatal(err)
	}
}

// collect reads all points, by name of the metric and attributes.
func collect(t *testing.T, reader *sdk.ManualReader) (points map[string]float64, kinds map[string]metricdata.Metrics) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	points, kinds = map[string]float64{}, map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			kinds[m.Name] = m
			var of []metricdata.DataPoint[float64]
			switch data := m.Data.(type) {
			case metricdata.Sum[float64]:
				of = data.DataPoints
			case metricdata.Gauge[float64]:
				of = data.DataPoints
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
			for _, p := range of {
				points[point(m.Name, p.Attributes.ToSlice()...)] = p.Value
			}
		}
	}
	return points, kinds
}

// point returns a name with attributes.
func point(name string, attributes ...attribute.KeyValue) string {
	for _, a := range attributes { // sorted by their keys
		name += fmt.Sprintf("{%s=%s}", a.Key, a.Value.String())
	}
	return name
}

// The reader of the SDK gets all samples, with kinds, units and attributes.
func TestTheSDKReadsEverySample(t *testing.T) {
	shop(t, names(), func(t *testing.T, c *metrics.Collector) {
		reader := sdk.NewManualReader()
		register(t, c, reader)
		got, kinds := collect(t, reader)
		vocabulary := slices.Collect(metrics.All())
		of := func(name string) metrics.Metric {
			return vocabulary[slices.IndexFunc(vocabulary, func(m metrics.Metric) bool { return m.Name == name })]
		}
		n := 0
		for _, s := range c.Samples() { // from the same snapshot, because the clock does not advance
			m := of(s.Name)
			var attributes []attribute.KeyValue
			for i, l := range m.Labels {
				attributes = append(attributes, attribute.String(l, s.Labels[i]))
			}
			set := attribute.NewSet(attributes...)
			name := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds"), "_", ".")
			if v, ok := got[point(name, set.ToSlice()...)]; !ok || v != s.Value {
				t.Errorf("%s%q is %v (%v), not %v", name, s.Labels, v, ok, s.Value)
			}
			n++
			k := kinds[name]
			sum, additive := k.Data.(metricdata.Sum[float64])
			if additive != (m.Kind != metrics.KindGauge) || sum.IsMonotonic != (m.Kind == metrics.KindCounter) ||
				k.Unit != m.Unit || k.Description != m.Help {
				t.Errorf("%s is a %T in %s: %s", name, k.Data, k.Unit, k.Description)
			}
		}
		if len(got) != n || n > 1000 {
			t.Errorf("%d points of %d samples", len(got), n)
		}
	})
}

// gather returns the series of a registry.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += fmt.Sprintf("{%s=%s}", l.GetName(), l.GetValue())
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

// The exporters agree: OpenTelemetry's exporter to Prometheus has the same series, with the same names and values.
func TestBothAgree(t *testing.T) {
	shop(t, names(), func(t *testing.T, c *metrics.Collector) {
		direct, bridged := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
		direct.MustRegister(promcoir.New(c))
		reader, err := exporter.New(exporter.WithRegisterer(bridged),
			exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
		if err != nil {
			t.Fatal(err)
		}
		register(t, c, reader)
		want, got := gather(t, direct), gather(t, bridged)
		for name, value := range want {
			if v, ok := got[name]; !ok || v != value {
				t.Errorf("%s is %v (%v), not %v", name, v, ok, value)
			}
		}
		if len(got) != len(want) || len(want) < 500 {
			t.Errorf("%d series, not %d", len(got), len(want))
		}
	})
}

// After Unregister, the SDK reads no samples.
func TestUnregister(t *testing.T) {
	shop(t, []string{"orders"}, func(t *testing.T, c *metrics.Collector) {
		reader := sdk.NewManualReader()
		provider := sdk.NewMeterProvider(sdk.WithReader(reader))
		registration, err := otelcoir.Register(provider.Meter("coir"), c)
		if err != nil {
			t.Fatal(err)
		}
		if points, _ := collect(t, reader); len(points) == 0 {
			t.Error("nothing is read")
		}
		if err := registration.Unregister(); err != nil {
			t.Error(err)
		}
		if points, _ := collect(t, reader); len(points) != 0 {
			t.Errorf("%d points are read after Unregister", len(points))
		}
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// Readers of both exporters run at the same time, while the program runs and after its runtime has closed.
func TestBothAtTheSameTime(t *testing.T) {
	rt := coir.NewRuntime()
	c := metrics.New(rt)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(promcoir.New(c))
	reader := sdk.NewManualReader()
	register(t, c, reader)
	read := func() {
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { gather(t, registry) })
			all.Go(func() { collect(t, reader) })
		}
		all.Wait()
	}
	if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		_, err := coir.Blocking(ctx, func() (struct{}, error) {
			read()
			return struct{}{}, nil
		})
		return err
	}); err != nil {
		t.Error(err)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
	read()
}
