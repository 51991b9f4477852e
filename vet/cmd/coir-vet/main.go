// Command coir-vet finds mistakes in programs that use coir. It runs under go vet:
//
//	go install github.com/coir-go/coir/vet/cmd/coir-vet@latest
//	go vet -vettool=$(which coir-vet) ./...
//
// Package [github.com/coir-go/coir/vet] says what it finds. coir-vet help prints that too.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/coir-go/coir/vet"
)

func main() { unitchecker.Main(vet.Analyzers()...) }
