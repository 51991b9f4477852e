// Package forms has tests in all the forms that people write them in. Under coir test each must do what it does under
// go test; what that is, if it is not to pass, stands above the test: Expect: fail, panic, skip, leak, or died, which
// is a process that ended before the test did.
package forms
