// Package vet finds mistakes in the source of programs that use coir: buffers that are used after they were given away,
// cancel functions that are not called, fibers that wait outside of coir, and loops that drop the error of an iterator.
// The command coir-vet runs it under go vet:
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
// The analyzers report only mistakes that are certain, so they miss many. A checked region finds all mistakes with
// buffers, when they happen: see package buf. The log of stalls and package sim find waits outside of coir.
//
// To turn an analyzer off, use its name:
//
//	go vet -vettool=$(which coir-vet) -coirwait=false ./...
//
// Other tools can run the analyzers too, because they are written for golang.org/x/tools/go/analysis.
package vet

import "golang.org/x/tools/go/analysis"

// Analyzers returns all analyzers of this package.
func Analyzers() []*analysis.Analyzer { return []*analysis.Analyzer{Buffers, Cancels, Waits, Ranges} }
