package vet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/coir-go/coir/vet"
)

// Comments in the programs in testdata say what is wrong in them. Each program also has correct code.

func TestBuffers(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), vet.Buffers, "./buffers")
}

func TestCancels(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), vet.Cancels, "./cancels")
}

func TestRanges(t *testing.T) { analysistest.Run(t, analysistest.TestData(), vet.Ranges, "./ranges") }

func TestWaits(t *testing.T) { analysistest.Run(t, analysistest.TestData(), vet.Waits, "./waits") }
