// Package atomics holds programs like those of package corpus. Their bugs are between two atomic operations, without
// other operations of package sync or on channels between these. Only `coir test -atomics` finds them.
package atomics
