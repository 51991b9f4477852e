//go:build !(386 || amd64 || arm64) || purego

package coro

// Waited returns NotWaited, because without assembly the last wait is unknown.
func Waited() Wait { return NotWaited }

// ForgetWait makes Waited return NotWaited until the running goroutine has waited again.
func ForgetWait() {}

// SetNotes does nothing.
func SetNotes(uintptr, *[256]Wait) {}

// NoteAt returns nil: package sim looks for notes only where there is assembly.
func NoteAt(uintptr) *uint8 { return nil }
