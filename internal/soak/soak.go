// Package soak says whether tests run at their full size, which takes many minutes. make soak runs them so.
package soak

import "os"

// On reports whether the variable COIR_SOAK is set, to any text.
func On() bool { return os.Getenv("COIR_SOAK") != "" }
