// Package mixed has small programs that mix fibers, goroutines, native locks and channels, and coir channels. Each has
// one bug. The programs are for coir test, which explores fibers and goroutines in one schedule.
//
// The programs are tests, built only with the tag corpus. TestBug<Name> has the bug: in some order of events it fails
// in the way that the line Expect above it names. TestFixed<Name> is the corrected program, which passes in every
// order. A program that deadlocks hangs when it is run without coir test: give go test a timeout.
//
// TestMixedPrograms of cmd/coir runs them.
package mixed
