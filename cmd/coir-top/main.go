// Command coir-top shows in a terminal what a running program of package coir waits for.
//
//	coir-top [-interval 1s] [URL|FILE]
//
// The program must serve package inspect, by inspect.Serve or inspect.Handler. Without an argument, coir-top looks at
// http://localhost:7117/. A FILE is a dump that the page of a program has saved. With -once it prints the first screen
// as text and exits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

const usage = `coir-top shows what a running program of coir waits for, and follows it.

Usage:

	coir-top [-interval 1s] [URL|FILE]
	coir-top -once [URL|FILE]

The program must call inspect.Serve, or serve inspect.Handler. URL is its address, http://localhost:7117/ if there is no
argument; http:// may be left out, and ?of=1 selects the second runtime. FILE is a dump:

	curl -o FILE 'http://localhost:7117/dump?stacks=1'

	-interval 1s   how often to look, at least 100ms
	-once          print the first screen as text, and exit: with 1 if there is no answer

In the terminal, ? lists the keys. With NO_COLOR in the environment there are no colours.
`

const standard = "http://localhost:7117/"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run implements main, and returns the exit code: 0, 1 if there is nothing to show, or 2 if the arguments are wrong.
func run(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("coir-top", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	interval := flags.Duration("interval", time.Second, "")
	once := flags.Bool("once", false, "")
	wrong := func(err error) int {
		fmt.Fprintf(errs, "coir-top: %v\nRun 'coir-top -h' for more.\n", err)
		return 2
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err != nil:
		return wrong(err)
	case flags.NArg() > 1:
		return wrong(errors.New("it shows one program: write one address, or one file"))
	case *interval < 100*time.Millisecond:
		return wrong(errors.New("-interval must be at least 100ms"))
	}
	at := standard
	if flags.NArg() == 1 {
		at = flags.Arg(0)
	}
	from, err := open(at)
	if err != nil {
		return wrong(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := newModel(ctx, from, *interval)
	if *once {
		return printOnce(m, out, errs)
	}
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(f.Fd()) {
		return wrong(errors.New("the output is not a terminal: use -once"))
	}
	if _, err := tea.NewProgram(m).Run(); err != nil && !errors.Is(err, tea.ErrInterrupted) {
		fmt.Fprintf(errs, "coir-top: %v\n", err)
		return 1
	}
	return 0
}

// printOnce prints the first screen.
func printOnce(m *model, out, errs io.Writer) int {
	d, err := m.from.snapshot(m.ctx)
	if err != nil {
		fmt.Fprintf(errs, "coir-top: %v\n", err)
		return 1
	}
	if f, ok := out.(*os.File); ok {
		if w, h, err := term.GetSize(f.Fd()); err == nil && w > 0 && h > 0 {
			m.width, m.height = w, h
		}
	}
	m.once = true
	m.take(d, nil)
	fmt.Fprint(out, m.text())
	return 0
}

// text returns the drawn screen without styles.
func (m *model) text() string {
	var b strings.Builder
	for _, line := range m.draw() {
		b.WriteString(strings.TrimRight(ansi.Strip(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
