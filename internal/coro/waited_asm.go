//go:build (386 || amd64 || arm64) && !purego

package coro

import "unsafe"

// The runtime notes in its record of a goroutine why the goroutine waits, before each wait, and leaves the note there
// afterwards. The note is a byte. Which byte of the record it is, and what the numbers in it mean, differs from one Go
// release to another: package sim finds both, and calls SetNotes.

// Waited returns the last wait of the running goroutine since ForgetWait, or since it was resumed by Transfer. It
// returns NotWaited before SetNotes has been called.
//
//go:norace
func Waited() Wait {
	if notes.at == 0 {
		return NotWaited
	}
	return notes.waits[*NoteAt(notes.at)]
}

// ForgetWait makes Waited return NotWaited until the running goroutine has waited again. The runtime uses the note only
// while the goroutine waits.
//
//go:norace
func ForgetWait() {
	if notes.at != 0 {
		*NoteAt(notes.at) = 0
	}
}

// SetNotes says where the note is in a record, as an offset that is not 0, and what its values mean. It is called once.
//
//go:norace
func SetNotes(at uintptr, waits *[256]Wait) {
	notes.waits = *waits
	notes.at = at
}

var notes struct {
	at    uintptr // 0: not known
	waits [256]Wait
}

// NoteAt returns the address of a byte of the runtime's record of the running goroutine.
//
//go:norace
func NoteAt(off uintptr) *uint8 { return (*uint8)(unsafe.Pointer(gAt(off))) }
