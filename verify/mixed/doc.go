// Package mixed holds small programs that mix fibers, goroutines, native locks and channels, and coir channels, with
// one bug each. They are for coir test, which explores fibers and goroutines in one schedule.
//
// The programs are tests, built only with the tag corpus. TestBug<Name> has the bug: in some order of events it goes
// wrong, as the line Expect above it says. TestFixed<Name> is the same program corrected, which passes in every order.
// A program that deadlocks hangs when it is run without coir test: give go test a timeout.
//
// TestMixedPrograms of cmd/coir runs them.
package mixed
