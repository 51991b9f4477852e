// Package corpus holds small programs with one concurrency bug each, to measure tools that look for such bugs.
//
// A program is one test file, built only with the tag corpus. It has two tests. TestBug<Name> runs the program with
// the bug: in some order of events it deadlocks, leaves a goroutine behind, panics, fails or races, and in others it
// passes. TestFixed<Name> runs the same program corrected: it passes in every order of events, ends every goroutine
// it started and has no data race.
//
// A comment at the head of the file says what the program does and which order of events fails. Two lines end it:
//
//	// Class: <class>
//	// Expect: <deadlock|leak|panic|fail|race>
//
// The class is one of these, and the first word of the file's name:
//
//	doublelock  a goroutine takes a lock that it holds already
//	abba        two or more locks, or a lock and a channel, taken in different orders
//	channel     send after close, second close, a send without a receiver, a range that never ends
//	select      a select whose timeout, default or other ready case is not considered
//	waitgroup   Add, Done and Wait in the wrong place or number
//	context     cancellation that is ignored, or that takes the receiver away
//	lost        a signal or a completion that comes before a goroutine waits for it
//	order       a use before the initialisation, or after the end
//	atomicity   a check and an action that should be one step and are two
//	leak        a goroutine that never ends
//
// The expected result is what a correct report says about the bug:
//
//	deadlock  the test never returns: it and every goroutine it waits for are blocked
//	leak      the test returns and a goroutine stays behind for ever
//	panic     a goroutine panics
//	fail      the test reports an error
//	race      the race detector reports a data race, and nothing else goes wrong
//
// The programs use the standard library alone, keep no state between tests, and depend on nothing but the order of
// events and the clock. A program that deadlocks hangs when it is run without such a tool: give go test a timeout.
package corpus
