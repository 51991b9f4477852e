//go:build (386 || amd64 || arm64) && !purego

package coro

import "unsafe"

// Before each wait, the runtime notes in its record of a goroutine why the goroutine waits, and leaves the note there
// afterwards. The note is a byte. Its offset in the record, and the meaning of its values, differ from one Go release
// to another. Package sim finds both, and calls SetNotes.

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

// SetNotes sets the offset of the note in a record, which is not 0, and the meaning of its values. It is called once.
//
//go:norace
func SetNotes(at uintptr, waits *[256]Wait) {
	notes.waits = *waits
	notes.at = at
}

var notes struct {
	at    uintptr // 0 if unknown
	waits [256]Wait
}

// NoteAt returns the address of a byte of the runtime's record of the running goroutine.
//
//go:norace
func NoteAt(off uintptr) *uint8 { return (*uint8)(unsafe.Pointer(gAt(off))) }
