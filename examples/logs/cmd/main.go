// Command cmd generates log files, 1 GiB in total with -size 1024, and counts the requests in them. It shows its
// progress. After an interrupt or SIGTERM it prints the counts so far.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coir-go/coir/examples/logs"
)

func main() {
	size := flag.Int("size", 8, "megabytes of all files")
	files := flag.Int("files", 8, "number of files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *size<<20, *files, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, size, files int, out io.Writer) error {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := logs.Config{
		Parallel: 8, Batch: 1000, Every: time.Second / 4,
		Progress: func(lines int) { fmt.Fprintf(out, "%d lines\n", lines) },
	}
	for i := range files {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := generate(ctx, path, size/files); err != nil {
			return err
		}
		c.Files = append(c.Files, func() (io.ReadCloser, error) { return os.Open(path) })
	}
	began := time.Now()
	r, err := logs.Run(ctx, c)
	fmt.Fprintf(out, "%d lines, %d bad, %d bytes sent, by status %v, in %v\n",
		r.Lines, r.Bad, r.Bytes, r.Status, time.Since(began))
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(out, "stopped early")
		return nil
	}
	return err
}

// generate writes a log file.
func generate(ctx context.Context, path string, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for n := 0; n < size && ctx.Err() == nil; {
		status := []int{200, 200, 200, 304, 404, 500}[rand.N(6)]
		k, _ := fmt.Fprintf(w, "host-%d.example.org %d %d\n", rand.N(1000), status, rand.N(100_000))
		n += k
	}
	return errors.Join(w.Flush(), f.Close())
}
