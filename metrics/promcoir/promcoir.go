// Package promcoir exports the metrics of a runtime to Prometheus:
//
//	registry.MustRegister(promcoir.New(metrics.New(coir.Default())))
//
// To distinguish several runtimes, register each with its own label:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"runtime": "batch"}, registry).
//		MustRegister(promcoir.New(metrics.New(batch)))
package promcoir

import (
	"github.com/coir-go/coir/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// New returns a collector to register with Prometheus. For the cost of a scrape see package metrics.
func New(of *metrics.Collector) prometheus.Collector {
	c := &collector{of: of, series: map[string]series{}}
	for m := range metrics.All() {
		kind := prometheus.GaugeValue
		if m.Kind == metrics.KindCounter {
			kind = prometheus.CounterValue
		}
		c.series[m.Name] = series{prometheus.NewDesc(m.Name, m.Help, m.Labels, nil), kind}
	}
	return c
}

type collector struct {
	of     *metrics.Collector
	series map[string]series
}

// series is a metric in the form that Prometheus needs.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, s := range c.series {
		to <- s.desc
	}
}

func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, sample := range c.of.Samples() {
		s := c.series[sample.Name]
		m, err := prometheus.NewConstMetric(s.desc, s.kind, sample.Value, sample.Labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(s.desc, err)
		}
		to <- m
	}
}
