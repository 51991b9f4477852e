package inspect

import (
	"compress/gzip"
	"io"
	"testing"

	"github.com/coir-go/coir/snapshot"
)

// BenchmarkDocument measures what a request adds to the cost of a snapshot of 10,000 fibers.
func BenchmarkDocument(b *testing.B) {
	source := &fake{s: many(10_000)}
	to, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	var in room
	b.ReportAllocs()
	for b.Loop() {
		to.Reset(io.Discard)
		in.reset()
		if _, err := encode(to, source, mostShown, false, 1, &in,
			func(*snapshot.Snapshot) []snapshot.Explanation { return nil }); err != nil {
			b.Fatal(err)
		}
		if err := to.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkText measures the text of 10,000 fibers.
func BenchmarkText(b *testing.B) {
	s := many(10_000)
	for b.Loop() {
		if err := writeText(io.Discard, s, nil, true); err != nil {
			b.Fatal(err)
		}
	}
}
