package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/coir-go/coir/inspect"
)

const inspectUsage = `coir inspect shows what a running program waits for, or what it waited for when it wrote a dump.

Usage:

	coir inspect [-o page.html] URL
	coir inspect [-o page.html] file

It prints text. With -o it writes a page for the browser instead, which needs no server.

URL is the address of a program that serves package inspect, such as http://localhost:7117; http:// may be left out.
A file is a dump from such a program:

	curl -o file 'http://localhost:7117/dump?stacks=1'

'coir top URL' follows the program in the terminal.
`

const (
	dumpPatience = 30 * time.Second // for a whole answer
	dumpMost     = 128 << 20        // bytes of an answer: some hundred thousand fibers; save a larger dump in a file
)

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
		err = errors.New("name one dump file or one address, such as http://localhost:7117")
	default:
		err = showDump(file, *page, out)
	}
	if err != nil {
		fmt.Fprintf(errs, "coir inspect: %v\nRun 'coir help inspect' for more.\n", err)
		return 2
	}
	return 0
}

// showDump writes the dump from a file or an address to out as text. If page is not empty, it writes a page to the file
// with this name instead.
func showDump(name, page string, out io.Writer) error {
	from, err := openDump(name)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // opened for reading
	dump, err := inspect.Read(from)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
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

// openDump opens a file, or fetches a dump from the address of a program. A name that has a port, and is not a file, is
// an address.
func openDump(name string) (io.ReadCloser, error) {
	if strings.Contains(name, "://") {
		return fetchDump(name)
	}
	from, err := os.Open(name)
	if err == nil {
		return from, nil
	}
	host, _, _ := strings.Cut(name, "/")
	if host, port, e := net.SplitHostPort(host); e != nil || port == "" {
		return nil, err
	} else if host == "" {
		name = "localhost" + name
	}
	return fetchDump("http://" + name)
}

// fetchDump asks the program at an address for a dump with stacks. The address may be that of the page, or one
// below it, because users copy it from a browser or from curl.
func fetchDump(address string) (io.ReadCloser, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	switch path.Base(at.Path) {
	case "text", "snapshot.json", "dump":
		at.Path = path.Dir(at.Path)
	}
	at = at.JoinPath("dump")
	query := at.Query()
	query.Set("stacks", "1")
	at.RawQuery, at.Fragment = query.Encode(), ""
	client := http.Client{Timeout: dumpPatience}
	answer, err := client.Get(at.String())
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: %s: no program serves package inspect there", at.Redacted(), answer.Status)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, dumpMost), answer.Body}, nil
}
