// Package mutants checks that the tests of package remote find mistakes in its protocol. Each mutant is a change to the
// real code, applied with go's -overlay flag. Build its test with the tag coirmutants.
package mutants
