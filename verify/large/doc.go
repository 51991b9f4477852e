// Package large holds tests of services that are built on modules from outside, each with a bug of such a module in
// some order of events. They are for coir test: hundreds of steps, more than ten goroutines, tickers and selects.
//
// The tests are built only with the tag corpus. The line Expect above a test is what coir test must find. The reports
// stand beside the tests; TestLargeReports of cmd/coir compares them.
package large
