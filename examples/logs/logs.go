// Package logs counts the requests in log files. It reads all files at the same time, parses several batches of lines
// at a time, and reports its progress.
//
// Memory holds only the batches in progress, so it is bounded whatever the size of the files. When the context ends,
// Run returns the counts so far.
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

// Config has the files, and the parameters for reading them.
type Config struct {
	Files    []func() (io.ReadCloser, error) // each opens a file; a line has a host, a status and a number of bytes
	Parallel int                             // how many batches are parsed at a time
	Batch    int                             // lines in a batch
	Progress func(lines int)                 // called from time to time while Run runs
	Every    time.Duration                   // time between calls of Progress
}

// Report has the counts.
type Report struct {
	Lines  int
	Bad    int // lines that cannot be parsed
	Bytes  int
	Status map[int]int // number of requests by status
}

// Run counts the requests in the files. If a file cannot be read, Run returns the counts so far and the error.
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

// lines returns the lines of a file. The file is open while its lines are read.
func lines(open func() (io.ReadCloser, error)) stream.Stream[string] {
	return stream.Using(func(context.Context) (io.ReadCloser, error) { return open() },
		func(r io.ReadCloser) stream.Stream[string] { return stream.Lines(r) })
}

// parse counts the requests in a batch.
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

// add adds the counts of a batch.
func (r *Report) add(b Report) {
	r.Lines += b.Lines
	r.Bad += b.Bad
	r.Bytes += b.Bytes
	for status, n := range b.Status {
		r.Status[status] += n
	}
}
