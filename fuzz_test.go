package coir_test

// Channels against the model, on histories that a fuzzer makes up: see internal/history. The seeds in testdata/fuzz/FuzzChan
// are named after what they show, and are played with the ordinary tests.
//
//	go test -run FuzzChan -v .               tells what happens in each
//	go test -run '^$' -fuzz FuzzChan .       looks for more

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/history"
)

// Spec: CH-01, CH-11, CH-17, CH-18, CH-19, CH-20, CH-22, CH-23, CH-24, CH-25, CH-26, CH-28, CH-35, CH-36, CH-37, CH-38, CH-40, CH-55,
// SE-01, SE-03, SE-05, SE-08, SE-09, SE-16, SE-17, SE-19
func FuzzChan(f *testing.F) {
	rt := coir.NewRuntime(coir.Workers(1))
	f.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		story, err := history.Play(rt, data)
		if err != nil {
			t.Fatalf("%v\nafter\n%s", err, story)
		}
		if testing.Verbose() {
			t.Log(story)
		}
	})
}
