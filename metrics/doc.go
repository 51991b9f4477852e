// Package metrics counts what the fibers of a runtime do and wait for, as numbers for a monitoring system. Package
// promcoir beside it exports them to Prometheus, and package otelcoir to OpenTelemetry:
//
//	registry.MustRegister(promcoir.New(metrics.New(coir.Default())))
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// [Vocabulary] lists the metrics, with the same names and units for both. The guide docs/guide/seeing.md shows them in
// a table, and grafana/coir.json in this module is a dashboard for Grafana.
//
// # Cost
//
// Nothing is recorded between two scrapes. A scrape takes a snapshot of the runtime ([coir.Runtime.Snapshot]) and looks
// at 100,000 fibers at most; coir_fibers_omitted counts the others. Scrapes within half a second share their numbers,
// and no two snapshots are taken at the same time.
//
// An explanation ([snapshot.Explain]) needs two snapshots, so a scrape takes a small one first: a deadlock is counted
// by the first scrape after it has begun. What must last to be wrong, such as a fiber that does not yield, is counted
// when two scrapes have seen it. A [Collector] keeps 10,000 fibers of each snapshot at most.
//
// # Names
//
// Channels, and other objects that fibers wait for, have their names as labels: see [coir.WithName]. Those with the
// same name are added up, and those without one are called unnamed. A label has no control character and at most 128
// bytes. A scrape has at most 1,000 series: objects whose names find no place among them are added up under the name
// other. The first names keep their places. If places are missing, a name loses its place when no fiber has waited for
// its objects for ten minutes.
//
// # Channels
//
// A snapshot has a channel only while a fiber waits for it. So its length and capacity are missing at other times, and
// its totals stand still until a fiber waits for it again; then they have caught up. With [coir.ListObjects] snapshots
// also have the channels that have a name and for which no fiber waits.
package metrics
