// Package cputime returns the processor time that this process has used.
//
// Wall time does not measure a program that mostly sleeps, and the clock of one thread does not measure a Go program.
// So this is the operating system's count for the whole process, user and system together.
package cputime

import "time"

// Used returns the processor time used by the process since it started.
func Used() time.Duration { return used() }
