package coir

import "embed"

// Source contains the source files of this package, for `coir test`. The linker omits it from programs that do not use
// it.
//
//go:embed *.go
var Source embed.FS
