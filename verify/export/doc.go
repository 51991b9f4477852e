// Package export has the tests of module metrics that need more dependencies than its users do: the SDK of
// OpenTelemetry, the parser of PromQL, and the schema of Grafana's dashboards. It has only tests.
package export
