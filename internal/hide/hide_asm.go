//go:build (386 || amd64 || arm64) && !purego

package hide

import "unsafe"

// Pointer returns p.
//
//go:noescape
func Pointer(p unsafe.Pointer) unsafe.Pointer
