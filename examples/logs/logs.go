// Package logs counts the requests in log files. All files are read at the same time, and their lines are parsed
// several batches at a time. While it runs it reports its progress.
//
// Memory is bounded by the batches on their way, whatever the size of the files. When the context ends, Run returns
// what it has counted so far.
package logs

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
)

// Config has the files, and how they are read.
type Config struct {
	Files    []func() (io.ReadCloser, error) // open a file; a line has a host, a status and the bytes that were sent
	Parallel int                             // batches that are parsed at a time
	Batch    int                             // lines in a batch
	Progress func(lines int)                 // called while Run runs
	Every    time.Duration                   // how often
}

// Report has the counts.
type Report struct {
	Lines  int
	Bad    int // lines that make no sense
	Bytes  int
	Status map[int]int // requests by status
}

// Run counts the requests in the files. If a file cannot be read, it returns the counts so far, and the error.
func Run(ctx context.Context, c Config) (Report, error) {
	batches := make([]stream.Stream[[]string], len(c.Files))
	for i, f := range c.Files {
		batches[i] = stream.Batch(lines(f), c.Batch, 0)
	}
	parsed := stream.ParallelUnordered(stream.Merge(batches...), c.Parallel, parse)
	total := Report{Status: make(map[int]int)}
	var counted atomic.Int64
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("progress", func(ctx context.Context) error {
			return stream.ForEach(ctx, stream.Ticks(c.Every), func(context.Context, int) error {
				c.Progress(int(counted.Load()))
				return nil
			})
		})
		defer n.Cancel(nil)
		return stream.ForEach(ctx, parsed, func(_ context.Context, r Report) error {
			total.add(r)
			counted.Store(int64(total.Lines))
			return nil
		})
	})
	return total, err
}

// lines returns the lines of a file, which is open while they are read.
func lines(open func() (io.ReadCloser, error)) stream.Stream[string] {
	return stream.Using(func(context.Context) (io.ReadCloser, error) { return open() },
		func(r io.ReadCloser) stream.Stream[string] { return stream.Lines(r) })
}

// parse counts what is in a batch.
func parse(_ context.Context, lines []string) (Report, error) {
	r := Report{Lines: len(lines), Status: make(map[int]int)}
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, " ")
		first, second, _ := strings.Cut(rest, " ")
		status, err := strconv.Atoi(first)
		sent, err2 := strconv.Atoi(second)
		if err != nil || err2 != nil {
			r.Bad++
			continue
		}
		r.Status[status]++
		r.Bytes += sent
	}
	return r, nil
}

// add adds what was counted in a batch.
func (r *Report) add(b Report) {
	r.Lines += b.Lines
	r.Bad += b.Bad
	r.Bytes += b.Bytes
	for status, n := range b.Status {
		r.Status[status] += n
	}
}
