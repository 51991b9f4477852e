package coir

import "embed"

// Source is the source of this package, for `coir test`. Only programs that use it contain it.
//
//go:embed *.go
var Source embed.FS
