// Package logs is examples/logs with goroutines, channels and errgroup.
//
// Memory is bounded by the batches on their way, whatever the size of the files. When the context ends, Run returns
// what it has counted so far.
package logs

import (
	"bufio"
	"context"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Config lists the files, and how to read them.
type Config struct {
	Files    []func() (io.ReadCloser, error) // open a file; a line has a host, a status and the bytes that were sent
	Parallel int                             // batches that are parsed at a time
	Batch    int                             // lines in a batch
	Progress func(lines int)                 // called while Run runs
	Every    time.Duration                   // how often
}

// Report holds the counts.
type Report struct {
	Lines  int
	Bad    int // malformed lines
	Bytes  int
	Status map[int]int // requests by status
}

// Run counts the requests in the files. If a file cannot be read, it returns the counts so far, and the error.
func Run(ctx context.Context, c Config) (Report, error) {
	batches, parsed := make(chan []string), make(chan Report)
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		defer close(batches)
		readers, ctx := errgroup.WithContext(ctx)
		for _, f := range c.Files {
			readers.Go(func() error { return read(ctx, f, c.Batch, batches) })
		}
		return readers.Wait()
	})
	all.Go(func() error {
		defer close(parsed)
		workers, ctx := errgroup.WithContext(ctx)
		for range c.Parallel {
			workers.Go(func() error {
				for batch := range batches {
					select {
					case parsed <- parse(batch):
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			})
		}
		return workers.Wait()
	})
	var lines atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticks := time.NewTicker(c.Every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				c.Progress(int(lines.Load()))
			case <-stop:
				return
			}
		}
	}()
	total := Report{Status: make(map[int]int)}
	for r := range parsed {
		total.add(r)
		lines.Store(int64(total.Lines))
	}
	err := all.Wait()
	close(stop)
	<-stopped
	return total, err
}

// read sends the lines of a file.
func read(ctx context.Context, f func() (io.ReadCloser, error), size int, batches chan<- []string) error {
	r, err := f()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), 1<<20)
	batch := make([]string, 0, size)
	send := func() error {
		if err := ctx.Err(); err != nil {
			return err // a select that can also send may take either case
		}
		select {
		case batches <- batch:
			batch = make([]string, 0, size)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for in.Scan() {
		if batch = append(batch, in.Text()); len(batch) == size {
			if err := send(); err != nil {
				return err
			}
		}
	}
	if len(batch) > 0 {
		if err := send(); err != nil {
			return err
		}
	}
	return in.Err()
}

// parse counts the lines of a batch.
func parse(lines []string) Report {
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
	return r
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
