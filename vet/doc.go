// Package vet finds mistakes in programs that use coir, in their source: buffers that are used after they were given
// away, cancel functions that are not called, fibers that wait outside of coir, and loops that drop the error of an
// iterator. The command coir-vet runs it under go vet:
//
//	go install github.com/coir-go/coir/vet/cmd/coir-vet@latest
//	go vet -vettool=$(which coir-vet) ./...
//
// The analyzers are:
//
//	coirbuf     a buffer that is used after it was released or sent
//	coircancel  a cancel function of coir.WithTimeout and the like that is not called
//	coirwait    a fiber that waits outside of coir, as by time.Sleep
//	coirrange   a loop that takes the values of All and not the error, as for v := range c.All(ctx)
//
// It reports only what it is sure of, so most mistakes of these kinds it does not see. For buffers a checked region
// finds all of them, when they happen: see package buf. Waits outside of coir are found by the log of stalls, and by
// package sim.
//
// An analyzer is left out by its name, as in
//
//	go vet -vettool=$(which coir-vet) -coirwait=false ./...
//
// The analyzers are for drivers of golang.org/x/tools/go/analysis, so that other tools can run them too.
package vet

import "golang.org/x/tools/go/analysis"

// Analyzers returns all analyzers of this package.
func Analyzers() []*analysis.Analyzer { return []*analysis.Analyzer{Buffers, Cancels, Waits, Ranges} }
