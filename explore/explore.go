// Package explore marks the part of a test whose schedules coir test explores.
//
// coir test explores every test as it is, and needs no mark. A mark is for a test that prepares something that must not
// be in a schedule: a file, a server, a large table, something that takes a second. That is done before [Test], which
// is given the rest:
//
//	func TestTransfers(t *testing.T) {
//		accounts := load(t, "testdata/accounts.json") // once
//		explore.Test(t, func(t *testing.T) {
//			... // again and again, each time in another order
//		})
//	}
package explore

import (
	"testing"
	"testing/synctest"
)

// Test runs f as a test with goroutines of its own, on a virtual clock. Under go test it is [synctest.Test]: f runs
// once. Under coir test the schedules of f are explored, each in a bubble of its own, and what stands around Test is
// not.
//
// What f uses of the test around it lasts from one schedule to the next: f must not change it, nor use a channel or a
// timer that was made there. Under coir test the function that calls Test is run twice up to its first call.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if x, ok := any(t).(interface{ CoirExplore(func(*testing.T)) bool }); ok && x.CoirExplore(f) { // of its overlay
		return
	}
	synctest.Test(t, f)
}
