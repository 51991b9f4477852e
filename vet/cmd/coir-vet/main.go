// Command coir-vet finds mistakes in programs that use coir. It runs under go vet:
//
//	go install github.com/coir-go/coir/vet/cmd/coir-vet@latest
//	go vet -vettool=$(which coir-vet) ./...
//
// For the mistakes that it finds see package [github.com/coir-go/coir/vet], or run coir-vet help.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/coir-go/coir/vet"
)

func main() { unitchecker.Main(vet.Analyzers()...) }
