package coir_test

// A test that exceeds the time limit of go test prints the stacks of all goroutines. Tests here have a hundred thousand
// fibers, so that would be 190 MB. So before the limit the process ends itself, and prints each stack once with the
// number of goroutines that have it.

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if limit := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration); limit > 0 {
		time.AfterFunc(limit-min(limit/2, 20*time.Second), func() {
			fmt.Fprintf(os.Stderr, "the time limit of %v is nearly over; the goroutines:\n", limit)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			os.Exit(2)
		})
	}
	m.Run()
}

func TestTimeLimitOfManyFibers(t *testing.T) {
	const hang = "COIR_HANG"
	if os.Getenv(hang) != "" {
		_ = coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			for range 5_000 { // of which the stacks have some megabytes
				n.Go("hangs", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			}
			return nil
		})
	}
	cmd := itself(t.Context(), "-test.run=^"+t.Name()+"$", "-test.timeout=6s")
	cmd.Env = append(os.Environ(), hang+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || len(out) > 1<<18 || !strings.Contains(string(out), "the time limit of 6s is nearly over") ||
		!strings.Contains(string(out), "coir_test."+t.Name()) {
		t.Errorf("%v, and %d bytes:\n%.4000s", err, len(out), out)
	}
}
