// Package archtest tests the structure of the repository: which package may import which, that every citation of a rule
// names a rule, and that generated files (spec/MAP.md, api/coir.txt) are up to date.
//
// Such rules rot if they are only in a document. Here each is data and a short test over it, and a test that fails says
// what to do.
//
// The package has the readers; their tests check the rules; the command specmap writes spec/MAP.md.
package archtest
