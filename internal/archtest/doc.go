// Package archtest tests the house rather than what happens in it: which package may import which, that every
// citation of a rule names a rule, and that what is generated (spec/MAP.md, api/coir.txt) is what would be generated now.
//
// Such rules rot when they live in a document alone. Here each is data and a short test over it, and a test that
// fails says what to do about it.
//
// The package holds the readers; the tests beside them judge; the command specmap writes spec/MAP.md.
package archtest
