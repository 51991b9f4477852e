//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package buf

import "errors"

// canMap reports whether mapMemory works on this system.
const canMap = false

func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapMemory([]byte) error { return errors.ErrUnsupported }
