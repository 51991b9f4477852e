package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The first build of a kind (with -race, with -atomics, for a platform) compiles the standard library, which takes
// about a minute. A message on standard error explains the delay.

// On a terminal, a message appears if a build that compiles the standard library takes longer than slowTerminal.
// Elsewhere, and for everything else that the go command does, it appears after slowOther.
const slowTerminal, slowOther = time.Second, 5 * time.Second

const firstBuild = "building the standard library for coir test (once per Go version, and for each flag such as -race)"

// showBuild prints a message to errs if the build of a package's tests takes long. The caller calls finish when the go
// command has ended. complete says that it was not interrupted, ok that it built the tests.
func (t *tool) showBuild(o *options, p *pkg, errs io.Writer) (finish func(complete, ok bool)) {
	mark := t.mark(o)
	_, err := os.Stat(mark)
	what, after := "building the tests of "+p.ImportPath, slowOther
	if err != nil {
		if what = firstBuild; isTerminal(errs) {
			after = slowTerminal
		}
	}
	stop := show(errs, isTerminal(errs), what, after)
	return func(complete, ok bool) {
		stop(complete)
		if ok && err != nil {
			_ = os.WriteFile(mark, nil, 0o666)
		}
	}
}

// mark returns the name of the file that exists if the standard library has been built before with the same flags. The
// go command may have removed it from its cache since; only the message depends on this.
func (t *tool) mark(o *options) string {
	h := fnv.New64a()
	for _, e := range t.env {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO") {
			fmt.Fprintln(h, e)
		}
	}
	for _, f := range o.build {
		if name, _, _ := strings.Cut(f, "="); name != "-tags" && name != "-mod" && name != "-modfile" {
			fmt.Fprintln(h, f)
		}
	}
	fmt.Fprintln(h, o.atomicPoints())
	return filepath.Join(filepath.Dir(t.overlay), fmt.Sprintf("built-%x", h.Sum64()))
}

// show prints what after the given time, unless stop is called earlier. stop prints how long it took, if it was
// complete and not interrupted. A terminal also shows the seconds while it lasts.
func show(errs io.Writer, terminal bool, what string, after time.Duration) (stop func(complete bool)) {
	began := time.Now()
	done := make(chan bool, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-done:
			return
		case <-timer.C:
		}
		seconds := func() string { return fmt.Sprintf("%.0f s", time.Since(began).Seconds()) }
		if !terminal {
			fmt.Fprintf(errs, "coir test: %s\n", what)
			if complete := <-done; complete {
				fmt.Fprintf(errs, "coir test: that took %s\n", seconds())
			}
			return
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			fmt.Fprintf(errs, "\r\x1b[Kcoir test: %s: %s", what, seconds())
			select {
			case complete := <-done:
				if complete {
					fmt.Fprintf(errs, "\r\x1b[Kcoir test: %s: took %s", what, seconds())
				}
				fmt.Fprintln(errs)
				return
			case <-tick.C:
			}
		}
	})
	return func(complete bool) {
		done <- complete
		wait.Wait()
	}
}
