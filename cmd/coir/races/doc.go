// Package races has tests with data races of many sorts, and some without, for `coir test -race`. They are built with
// the tag corpus.
package races
