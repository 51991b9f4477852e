// Package forms has tests in all forms that people write. Under coir test each must do what it does under go test; the
// comment above a test says what, if it must not pass: Expect: fail, panic, skip, leak, or died, which is a process
// that ended before the test did.
package forms
