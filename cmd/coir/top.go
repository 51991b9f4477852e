package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

const topUsage = `coir top shows in the terminal what a running program waits for, and keeps the display up to date.

Usage:

	coir top [-interval 1s] [URL|FILE]

It starts the command coir-top, which is a module of its own, so that coir needs nothing but the standard library:

	go install github.com/coir-go/coir/cmd/coir-top@latest

The arguments are those of coir-top; see 'coir-top -h'.
`

// top runs the command coir top. It returns the exit code of coir-top, or 1 if coir-top cannot be run.
func top(args []string, out, errs io.Writer) int {
	name, err := findTop()
	if err != nil {
		fmt.Fprint(errs, "coir top: coir-top is not installed; run go install github.com/coir-go/coir/cmd/coir-top@latest\n")
		return 1
	}
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // coir-top handles the signal
	c := exec.Command(name, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, out, errs
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode() // coir-top has printed why
	case err != nil:
		fmt.Fprintf(errs, "coir top: %v\n", err)
		return 1
	}
	return 0
}

// findTop returns the path of coir-top. It searches PATH, and then the directory of coir.
func findTop() (string, error) {
	if name, err := exec.LookPath("coir-top"); err == nil {
		return name, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(filepath.Dir(self), "coir-top"))
}
