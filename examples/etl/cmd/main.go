// Command cmd reads names from its input, one on each line, looks each of them up, and prints one SQL statement for
// each batch. The lookups are slow, so eight run at a time. After an interrupt or SIGTERM it stops reading, and loads
// the lines that it has read.
package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/examples/etl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	r, err := run(ctx, os.Stdin, os.Stdout)
	fmt.Fprintf(os.Stderr, "%d read, %d loaded, %d rejected, %d lost\n", r.Read, r.Loaded, r.Rejected, r.Lost)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(stop context.Context, in io.Reader, out io.Writer) (etl.Report, error) {
	lines := bufio.NewScanner(in)
	return etl.Run(context.WithoutCancel(stop), etl.Config[string, string]{
		Extract: func(ctx context.Context) (string, error) {
			return coir.Blocking(ctx, func() (string, error) {
				if stop.Err() != nil || !lines.Scan() {
					return "", cmp.Or(lines.Err(), io.EOF)
				}
				return lines.Text(), nil
			})
		},
		Transform: func(ctx context.Context, name string) (string, error) {
			return coir.Blocking(ctx, func() (string, error) {
				ips, err := net.DefaultResolver.LookupHost(ctx, name)
				return fmt.Sprintf("(%q, %q)", name, strings.Join(ips, " ")), err
			})
		},
		Load: func(_ context.Context, rows []string) error {
			_, err := fmt.Fprintf(out, "INSERT INTO hosts VALUES %s;\n", strings.Join(rows, ", "))
			return err
		},
		Parallel: 8, Batch: 100, Linger: time.Second,
	})
}
