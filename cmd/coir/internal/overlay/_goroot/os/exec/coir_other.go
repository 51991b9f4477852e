//go:build !linux

package exec

import "os"

// coirPipe makes a pipe whose ends can be passed to another process.
func coirPipe() (r, w *os.File, err error) { return os.Pipe() }
