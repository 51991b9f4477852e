// Package large has tests of services that are built on third-party modules. Each shows a bug of such a module in some
// order of events. The tests are for coir test: they have hundreds of steps, more than ten goroutines, tickers and
// selects.
//
// The tests are built only with the tag corpus. The line Expect above a test says what coir test must find. The reports
// are stored beside the tests; TestLargeReports of cmd/coir compares them.
package large
