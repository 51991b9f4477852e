package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// A signal ends the command early, and leaves nothing behind. The signal ends the context, which kills the processes
// that coir has started, and the processes that these have started. coir prints the results so far and removes the
// temporary directory. As in a shell, the exit code is 128 plus the signal number.
//
// On Linux the processes also end if coir itself is killed. The directory then stays until coir test runs again.

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (i *interrupted) Error() string {
	return fmt.Sprintf("interrupted by a signal (%v): the results are not complete", i.signal)
}

// code returns the exit code.
func (i *interrupted) code() int { return 128 + int(i.signal) }

// untilSignal returns a context that ends with the first signal to end the command. A second signal ends the
// command immediately.
func untilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			number, _ := s.(syscall.Signal)
			cancel(&interrupted{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// runCommand runs a command until it ends or ctx does. All processes that the command has started end with it.
func runCommand(c *exec.Cmd) error {
	contain(c)
	c.WaitDelay = time.Second // a process that the command has started may hold the pipe
	err := c.Run()
	if c.Process != nil {
		endGroup(c.Process.Pid)
	}
	return err
}

// ended reports whether a command exited, and was not killed by a signal. err is the error of runCommand.
func ended(err error) bool {
	var exit *exec.ExitError
	return err == nil || errors.As(err, &exit) && exit.Exited()
}

// tempPrefix begins the names of temporary directories.
const tempPrefix = "coir-test-"

// makeTemp makes a directory below base, or in the default directory for temporary files if base is empty, and returns
// a function that removes it. It also removes the directories of runs that were killed.
func makeTemp(base string) (dir string, remove func(), err error) {
	if base == "" {
		base = os.TempDir()
	}
	removeStale(base)
	if dir, err = os.MkdirTemp(base, tempPrefix); err != nil {
		return "", nil, err
	}
	unlock := lockDir(dir)
	return dir, func() {
		for range 100 { // a killed process may still be ending, and create a file
			if os.RemoveAll(dir) == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		unlock()
	}, nil
}
