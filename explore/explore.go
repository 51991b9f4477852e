// Package explore marks the part of a test whose schedules coir test explores, and repeats failures that it found.
//
// coir test explores every test as it is, and needs no mark. A mark is for a test with a setup that should not be part
// of each schedule: a file, a server, a large table, anything that takes a second. Prepare it before calling [Test],
// and pass the rest of the test to Test:
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
// once. coir test explores the schedules of f, each in a bubble of its own, and not the code around Test.
//
// Variables of the function around f live from one schedule to the next: f must not change them, nor use a channel or a
// timer that was made there. coir test runs the function that calls Test twice up to that first call.
func Test(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if x, ok := any(t).(interface{ CoirExplore(func(*testing.T)) bool }); ok && x.CoirExplore(f) { // of its overlay
		return
	}
	synctest.Test(t, f)
}

// Replay runs f as a test. Under coir test it is run in the schedule of the token alone, which coir test has printed
// for a failure of f, and in some that begin as that one does: the program may have changed since. Under go test f runs
// once. coir test -emit writes tests that call Replay.
func Replay(t *testing.T, token string, f func(t *testing.T)) {
	t.Helper()
	if x, ok := any(t).(interface {
		CoirReplay(token string, f func(*testing.T)) bool
	}); ok && x.CoirReplay(token, f) {
		return
	}
	f(t)
}

// Sometimes says that cond must be true under this name in some schedule: that a queue was full, that a retry was
// needed. If it never is, coir test fails the test, because it does not test what it should; a longer -budget may help.
// Call it where it is always reached. Under go test, which runs one schedule, Sometimes does nothing.
func Sometimes(t *testing.T, cond bool, name string) {
	if x, ok := any(t).(interface{ CoirSometimes(cond bool, name string) }); ok {
		x.CoirSometimes(cond, name)
	}
}

// Fault reports whether something should go wrong here: a disk that is full, a service that does not answer. Under coir
// test with -faults test the schedule decides, a few times at most. Otherwise Fault returns false. A report names the
// line of the call.
func Fault(t *testing.T) bool {
	x, ok := any(t).(interface{ CoirFault() bool })
	return ok && x.CoirFault()
}
