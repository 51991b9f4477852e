// Command cmd runs the shell commands that it reads, one on each line, as jobs of package jobs. Commands that begin
// with "!" are urgent. At the end of the input, or after SIGTERM or an interrupt, it waits for the jobs that it has
// accepted. A second signal kills it.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/examples/jobs"
)

func main() {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(stop, cancel) // after this a second signal kills the process
	if err := run(stop, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(stop context.Context, in io.Reader, out io.Writer) error {
	q := jobs.New(jobs.Config{
		Connect: func(context.Context) (func(context.Context, string) (string, error), error) { return shell, nil },
		Workers: 4, Waiting: 16, Attempts: 3, Backoff: 100 * time.Millisecond, Every: 10 * time.Millisecond, Burst: 10,
		Restarts: 10,
	})
	defer context.AfterFunc(stop, q.Stop)()
	input := make(chan error, 1)
	go func() { // not a fiber: Run must not wait for it, because it may be waiting for a line
		input <- submit(q, in, out)
		q.Stop()
	}()
	if err := q.Run(context.WithoutCancel(stop)); err != nil {
		return err
	}
	select {
	case err := <-input:
		return err
	default:
		return nil // the queue was stopped
	}
}

// submit submits each line until the queue is stopped.
func submit(q *jobs.Queue, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		p, line := jobs.Normal, lines.Text()
		if urgent, ok := strings.CutPrefix(line, "!"); ok {
			p, line = jobs.Urgent, urgent
		}
		t, err := q.Submit(context.Background(), p, line)
		if errors.Is(err, jobs.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		t.OnDone(func(text string, err error) {
			if err != nil {
				text = err.Error() + "\n"
			}
			fmt.Fprintf(out, "%s: %s", line, text)
		})
	}
	return lines.Err()
}

// shell performs a job: it runs the command.
func shell(ctx context.Context, command string) (string, error) {
	return coir.Blocking(ctx, func() (string, error) {
		text, err := exec.CommandContext(ctx, "sh", "-c", command).CombinedOutput()
		return string(text), err
	})
}
