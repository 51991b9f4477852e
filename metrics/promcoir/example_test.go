package promcoir_test

import (
	"net/http"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/metrics"
	"github.com/coir-go/coir/metrics/promcoir"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A program serves the metrics of its fibers for Prometheus to scrape.
func ExampleNew() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(promcoir.New(metrics.New(coir.Default())))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// Next, call http.ListenAndServe("localhost:2112", mux).
}
