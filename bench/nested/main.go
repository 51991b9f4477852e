// Command nested runs one program on several libraries: a pool with 16 places, and 100 tasks that each start 100
// children in the same pool and wait for them.
//
// This happens when a task that runs under a limit calls a function that uses the same limit. As soon as 16 tasks run,
// each place is held by a task that waits for children, and each child needs a place. A library whose tasks keep their
// place while they wait cannot continue: it hangs or fails. In coir a waiting fiber gives up its place.
//
// A hang cannot be observed from inside, so each library runs in a separate process, started from this binary, with a
// time limit. One line is printed for each library:
//
//	errgroup hang (killed after 5s)
//	other panic: what it said
//	coir ends in 12ms
//
// If nothing in a process can run any more, the Go runtime ends it before the limit. That is a hang too, and the line
// says how it was found.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
)

const (
	places   = 16
	tasks    = 100
	children = 100
)

var (
	limit = flag.Duration("limit", 5*time.Second, "time limit of one library")
	only  = flag.String("only", "", "run only these libraries, separated by commas")
	child = flag.String("child", "", "for the command's own use: the library that this process runs")
)

func main() {
	flag.Parse()
	if *child != "" {
		began := time.Now()
		ran := timing.Choose(*child, libraries, nameOf)[0].program()
		if ran != tasks*children {
			fmt.Printf("wrong: %d of %d children ran", ran, tasks*children)
			os.Exit(1)
		}
		fmt.Printf("ends in %v", time.Since(began).Round(time.Millisecond/10))
		return
	}
	for _, l := range timing.Choose(*only, libraries, nameOf) {
		fmt.Println(l.name, outcome(l.name))
	}
}

func nameOf(l *library) string { return l.name }

// outcome runs the program on one library in a separate process, and describes the result in a few words.
func outcome(name string) string {
	self, err := os.Executable()
	if err != nil {
		return "not run: " + err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "-child", name)
	cmd.Stdout = &out
	cmd.Stderr = &errs
	err = cmd.Run()
	if err == nil || out.Len() > 0 {
		return out.String()
	}
	if ctx.Err() != nil {
		return fmt.Sprintf("hang (killed after %v)", *limit)
	}
	for line := range strings.Lines(errs.String()) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "fatal error: all goroutines are asleep"):
			return "hang (all goroutines are asleep)"
		case strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
			return line
		}
	}
	return "failed: " + err.Error()
}
