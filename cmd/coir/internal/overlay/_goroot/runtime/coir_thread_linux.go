package runtime

import "unsafe"

// coirSleeps reports whether a thread sleeps in the kernel until an event wakes it. It returns false for a thread that
// waits for a processor or a disk, because such a thread continues soon.
func coirSleeps(tid uint64) bool {
	var name [48]byte
	n := copy(name[:], "/proc/self/task/")
	var digits [20]byte
	n += copy(name[n:], itoa(digits[:], tid))
	copy(name[n:], "/stat\x00")
	fd := open(&name[0], 0, 0)
	if fd < 0 {
		return true
	}
	var text [128]byte
	size := read(fd, noescape(unsafe.Pointer(&text[0])), int32(len(text)))
	closefd(fd)
	for i := int(size) - 3; i > 0; i-- { // the state is after the thread's name, which is in parentheses
		if text[i] == ')' {
			return text[i+2] == 'S'
		}
	}
	return true
}
