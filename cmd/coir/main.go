// Command coir finds concurrency bugs in the tests of a Go program, and replays them.
//
//	coir test [flags] [packages]
//
// It builds the tests with a changed Go runtime that runs one goroutine at a time, in an order that coir decides. Then
// it runs each test many times, each time in another order, on a virtual clock. See `coir help test`.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = `coir finds concurrency bugs in the tests of a Go program, and replays them.

Usage:

	coir test [flags] [packages]   explore the schedules of tests
	coir help test                 the flags

`

// run is main with an exit code: 0 if all tests passed, 1 if a test failed, 2 if coir could not run.
func run(args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 2
	}
	switch args[0] {
	case "test":
		return test(args[1:], out, errs)
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && args[1] == "test" {
			fmt.Fprint(out, testUsage)
			return 0
		}
		fmt.Fprint(out, usage)
		return 0
	}
	fmt.Fprintf(errs, "coir: there is no command %q\n\n%s", args[0], usage)
	return 2
}
