// Package otelcoir exports the metrics of a runtime to OpenTelemetry:
//
//	_, err := otelcoir.Register(otel.Meter("coir"), metrics.New(coir.Default()))
//
// The names are derived from those of package metrics: coir_fibers_spawned_total becomes coir.fibers.spawned, and
// coir_wait_oldest_seconds becomes coir.wait.oldest with the unit s. An exporter to Prometheus converts them back to
// the original names. To distinguish several runtimes, register each with a meter that has its own attribute
// ([metric.WithInstrumentationAttributes]).
package otelcoir

import (
	"context"
	"fmt"
	"strings"

	"github.com/coir-go/coir/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Register creates the instruments of all metrics, and observes them when the meter asks for them. For the cost see
// package metrics. To end the registration, call its method Unregister.
func Register(meter metric.Meter, of *metrics.Collector) (metric.Registration, error) {
	instruments := map[string]instrument{}
	var all []metric.Observable
	for m := range metrics.All() {
		o, err := observable(meter, m)
		if err != nil {
			return nil, fmt.Errorf("otelcoir: %s: %w", m.Name, err)
		}
		instruments[m.Name] = instrument{o, m.Labels}
		all = append(all, o)
	}
	r, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, s := range of.Samples() {
			i := instruments[s.Name]
			attributes := make([]attribute.KeyValue, len(s.Labels))
			for l, value := range s.Labels {
				attributes[l] = attribute.String(i.labels[l], value)
			}
			to.ObserveFloat64(i.Float64Observable, s.Value, metric.WithAttributes(attributes...))
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("otelcoir: %w", err)
	}
	return r, nil
}

type instrument struct {
	metric.Float64Observable
	labels []string
}

func observable(meter metric.Meter, m metrics.Metric) (metric.Float64Observable, error) {
	help, unit := metric.WithDescription(m.Help), metric.WithUnit(m.Unit)
	switch m.Kind {
	case metrics.KindCounter:
		return meter.Float64ObservableCounter(name(m), help, unit)
	case metrics.KindUpDown:
		return meter.Float64ObservableUpDownCounter(name(m), help, unit)
	default:
		return meter.Float64ObservableGauge(name(m), help, unit)
	}
}

// name returns the name of a metric without the parts that follow from its kind and its unit.
func name(m metrics.Metric) string {
	n := strings.TrimSuffix(m.Name, "_total")
	if m.Unit == "s" {
		n = strings.TrimSuffix(n, "_seconds")
	}
	return strings.ReplaceAll(n, "_", ".")
}
