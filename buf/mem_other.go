//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package buf

import "errors"

// canMap says that mapMemory works on this system.
const canMap = false

func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapMemory([]byte) error { return errors.ErrUnsupported }
