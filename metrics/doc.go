// Package metrics provides numbers about the fibers of a runtime, and what they wait for, for a monitoring system.
// Package promcoir exports them to Prometheus, and package otelcoir to OpenTelemetry:
//
//	registry.MustRegister(promcoir.New(metrics.New(coir.Default())))
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// [All] lists the metrics, with the same names and units for both. The guide docs/guide/seeing.md shows them in
// a table, and grafana/coir.json in this module is a dashboard for Grafana.
//
// # Cost
//
// Nothing is recorded between two scrapes. A scrape takes a snapshot of the runtime ([coir.Runtime.Snapshot]) and reads
// at most 100,000 fibers; coir_fibers_omitted counts the others. Scrapes within half a second share their numbers, and
// no two snapshots are taken at the same time.
//
// An explanation ([snapshot.Explain]) needs two snapshots, so a scrape takes a small one first. Therefore a deadlock is
// counted by the first scrape after it began. A problem that must last for some time, such as a fiber that does not
// yield, is counted when two scrapes have seen it. A [Collector] keeps at most 10,000 fibers of each snapshot.
//
// # Names
//
// The names of channels, and of other objects that fibers wait for, are labels: see [coir.WithName]. The numbers of
// objects with the same name are added up, and objects without a name are called unnamed, as are all tickets, because a
// ticket is often named after a request. A label has no control characters and at most 128 bytes. A scrape has at most
// 1,000 series: objects whose names have no place among them are added up under the name other. Names get places in the
// order of their appearance. If there are not enough places, a name loses its place when no fiber has waited for its
// objects for ten minutes.
//
// # Channels
//
// A snapshot contains a channel only while a fiber waits for it. At other times the channel's length and capacity are
// missing, and its totals do not change; when a fiber waits for it again, they include everything in between. With
// [coir.ListObjects] snapshots also contain named channels for which no fiber waits, if they were made after that call.
// The same is true of pools and their lent values. Desks and their open tickets are only in snapshots with ListObjects.
package metrics
