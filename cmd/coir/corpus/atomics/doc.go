// Package atomics holds programs like those of package corpus whose bug is between two atomic operations, with nothing
// else of package sync or of channels between them. They are found with `coir test -atomics` alone.
package atomics
