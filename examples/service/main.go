// Service is a service with a bounded queue, workers that are restarted when they fail, a configuration that changes at
// run time, a time limit on each operation, and a graceful stop.
//
// docs/guide/service.md explains it. This program sends the service a few requests; one of them makes a worker panic.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	s := New(Settings{
		Workers: 2, Queue: 8, Admission: time.Second, Patience: 50 * time.Millisecond,
		Connect: func(context.Context) (Backend, error) { return greet, nil },
		Every:   time.Minute, Report: func(waiting int) { fmt.Fprintln(out, waiting, "requests wait") },
	})
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		f := n.Go("service", s.Run)
		for _, config := range []string{"Hello", "Good evening"} {
			s.Configure(config)
			for _, job := range []string{"Ada", "", "nobody", "Grace"} {
				text, err := s.Do(ctx, job)
				fmt.Fprintf(out, "%q: %s %v\n", job, text, err)
			}
		}
		return shutDown(ctx, s, f, time.Minute)
	})
}

// greet has a bug: it panics if there is no name. For the name "nobody" it does not answer in time.
func greet(ctx context.Context, config, job string) (string, error) {
	if job == "nobody" {
		if err := coir.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
	}
	return config + ", " + job[:1] + job[1:], nil
}

var errSlow = errors.New("the service has not stopped in time")

// shutDown stops the service that f runs. If that takes longer than grace, shutDown returns an error, which cancels the
// nursery.
func shutDown(ctx context.Context, s *Service, f *coir.Fiber, grace time.Duration) error {
	s.Stop()
	which, err := coir.Select(ctx, f.DoneCase(nil), coir.After(grace))
	if which == 1 {
		return errSlow
	}
	return err
}
