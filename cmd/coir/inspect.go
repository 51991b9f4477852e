package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/coir-go/coir/inspect"
)

const inspectUsage = `coir inspect shows a dump that a running program has written.

Usage:

	coir inspect [-o page.html] file

It prints what the program waited for as text. With -o it writes a page for the browser instead, which needs no server.
A program that serves package inspect writes a dump:

	curl -o file 'http://localhost:7117/dump?stacks=1'

'coir top file' shows it in the terminal.
`

// inspectDump runs the command coir inspect.
func inspectDump(args []string, out, errs io.Writer) int {
	f := flag.NewFlagSet("coir inspect", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	page := f.String("o", "", "")
	err := f.Parse(args)
	file := f.Arg(0)
	if err == nil && file != "" {
		err = f.Parse(f.Args()[1:]) // flags after the file
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, inspectUsage)
		return 0
	case err != nil:
	case file == "" || f.NArg() > 0:
		err = errors.New("it needs one file: a dump that the page of a program has saved")
	default:
		err = showDump(file, *page, out)
	}
	if err != nil {
		fmt.Fprintf(errs, "coir inspect: %v\nRun 'coir help inspect' for more.\n", err)
		return 2
	}
	return 0
}

// showDump writes a dump as text, or as a page if that has a name.
func showDump(file, page string, out io.Writer) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // opened for reading
	dump, err := inspect.Read(from)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if page == "" {
		return dump.WriteText(out)
	}
	to, err := os.Create(page)
	if err != nil {
		return err
	}
	if err := dump.WritePage(to); err != nil {
		_ = to.Close()
		return err
	}
	return to.Close()
}
