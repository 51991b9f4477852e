// Package cputime tells how much processor time this process has used.
//
// Wall time says nothing about a program that mostly sleeps, and the clock of
// one thread says nothing about a Go program. The operating system's account
// of the whole process, user and system together, is what the owner of the
// machine pays for.
package cputime

import "time"

// Used returns the processor time used by the process since it started.
func Used() time.Duration { return used() }
