package search

import "embed"

// Source is the source of this package, for `coir test`. No program has it that does not use it.
//
//go:embed *.go
var Source embed.FS
