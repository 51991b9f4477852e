// Package explore marks the part of a test whose schedules coir test explores, and replays failures that coir test
// found.
//
// coir test explores every test without changes to it, and needs no marks. A mark is useful for a test whose setup
// should not be repeated in each schedule: a file, a server, a large table, anything that takes a second. Do the setup
// before calling [Test], and pass the rest of the test to Test:
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

// Test runs f as a test on a virtual clock. Under go test it calls [synctest.Test], which runs f once. coir test
// explores the schedules of f, each in a separate bubble, but not those of the code around Test.
//
// All schedules share the variables of the function around f. So f must not change them, and must not use channels or
// timers that were created outside of f. coir test runs the function that calls Test twice up to the first call of
// Test.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if x, ok := any(t).(interface{ CoirExplore(func(*testing.T)) bool }); ok && x.CoirExplore(f) { // added by its overlay
		return
	}
	synctest.Test(t, f)
}

// Replay runs f as a test. Under coir test, f runs in the schedule of the token, which coir test has printed for a
// failure of f, and in some schedules that begin in the same way, because the program may have changed since. Under go
// test, f runs once. coir test -emit writes tests that call Replay.
func Replay(t *testing.T, token string, f func(t *testing.T)) {
	t.Helper()
	if x, ok := any(t).(interface {
		CoirReplay(token string, f func(*testing.T)) bool
	}); ok && x.CoirReplay(token, f) {
		return
	}
	f(t)
}

// Sometimes states that cond, which name identifies, must be true in at least one schedule: for example, that a queue
// was full, or that a retry was needed. If cond is never true, coir test fails the test, because the test does not
// reach the case that it should test; a longer -budget may help. Call Sometimes at a place that every schedule reaches.
// Under go test, which runs only one schedule, Sometimes does nothing.
func Sometimes(t *testing.T, cond bool, name string) {
	if x, ok := any(t).(interface{ CoirSometimes(cond bool, name string) }); ok {
		x.CoirSometimes(cond, name)
	}
}

// Fault reports whether the test should simulate a fault here, such as a full disk or a service that does not answer.
// Under coir test with -faults test, the schedule decides; it chooses at most a few faults. Otherwise Fault returns
// false. A report names the line of the call.
func Fault(t *testing.T) bool {
	x, ok := any(t).(interface{ CoirFault() bool })
	return ok && x.CoirFault()
}
