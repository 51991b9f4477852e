// Package archtest tests the structure of the repository: which package may import which, that every citation of a rule
// names a rule, and that generated files (spec/MAP.md, api) are up to date.
//
// Such rules become outdated if they are only in a document. Here each is data with a short test, and a failing test
// says what to do.
//
// The package has the readers; their tests check the rules; the commands specmap, figures and importmap write
// spec/MAP.md, the figures in the documents and docs/imports.svg.
package archtest
