// Package forms has tests in all forms that people write. Under coir test each must behave as it does under go test. If
// a test must not pass, the comment above it says so: Expect: fail, panic, skip, leak, or died, which means that the
// process ended before the test did.
package forms
