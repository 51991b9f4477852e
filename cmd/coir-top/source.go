package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

// source provides snapshots. It is a running program or a file.
type source interface {
	name() string
	live() bool // whether its snapshots can change
	snapshot(ctx context.Context) (*data, error)
	fiber(ctx context.Context, id uint64) (*snapshot.Fiber, error) // with its stack, if available
}

// problem is an error that the screen shows.
type problem struct {
	what string // what happened
	do   string // what to do
}

func (p *problem) Error() string { return p.what + "; " + p.do }

const (
	patience  = 30 * time.Second // the time limit for a complete answer
	mostBytes = 128 << 20        // the most bytes of an answer; a program sends at most 100,000 fibers, which need fewer
	mostFile  = 1 << 30          // the same for a file
	oneFiber  = 1 << 20          // the same for an answer with one fiber
	update    = "update coir-top: go install github.com/coir-go/coir/cmd/coir-top@latest"
)

var errTooLong = errors.New("response too long")

// bounded is a reader that fails after left bytes.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// open returns the source that an argument names.
func open(arg string) (source, error) {
	if strings.Contains(arg, "://") {
		return newPage(arg)
	}
	if info, err := os.Stat(arg); err == nil && !info.IsDir() {
		return file(arg), nil
	}
	host, _, _ := strings.Cut(arg, "/")
	if _, port, err := net.SplitHostPort(host); err == nil && port != "" {
		if strings.HasPrefix(arg, ":") {
			arg = "localhost" + arg
		}
		return newPage("http://" + arg)
	}
	return nil, fmt.Errorf("file %s does not exist; write an address with its port: localhost:7117", clean(arg, nameRunes))
}

// page is the handler of package inspect in a running program.
type page struct {
	at     *url.URL // ends with a slash
	client *http.Client
}

func newPage(at string) (*page, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address: %w", clean(at, nameRunes), errors.Unwrap(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s is not the address of a page: write http://localhost:7117/", clean(at, nameRunes))
	}
	switch path.Base(u.Path) { // the user has copied it from the browser or from curl
	case "text", "snapshot.json", "dump", "fiber":
		u.Path = path.Dir(u.Path)
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	u.RawPath, u.Fragment = "", ""
	return &page{at: u, client: &http.Client{Timeout: patience}}, nil
}

func (p *page) name() string { return clean(p.at.Redacted(), nameRunes) }
func (p *page) live() bool   { return true }

func (p *page) snapshot(ctx context.Context) (*data, error) {
	body, err := p.get(ctx, "snapshot.json", mostBytes)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // read to its end, or given up
	dump, err := inspect.Read(body)
	if err != nil {
		return nil, p.unreadable(err)
	}
	return newData(dump), nil
}

func (p *page) fiber(ctx context.Context, id uint64) (*snapshot.Fiber, error) {
	body, err := p.get(ctx, "fiber?id="+strconv.FormatUint(id, 10), oneFiber)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // read to its end, or given up
	var f snapshot.Fiber
	if err := json.NewDecoder(body).Decode(&f); err != nil {
		return nil, p.unreadable(err)
	}
	cleanFiber(&f)
	return &f, nil
}

// get requests a resource below the page. The caller must close the body.
func (p *page) get(ctx context.Context, what string, most int64) (io.ReadCloser, error) {
	name, query, _ := strings.Cut(what, "?")
	u := *p.at
	u.Path += name
	if u.RawQuery != "" && query != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += query
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, p.unreachable(err)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return nil, p.unreachable(err)
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close() //nolint:errcheck // the rest is not needed
		return nil, p.refused(answer)
	}
	return struct {
		io.Reader
		io.Closer
	}{&bounded{answer.Body, most}, answer.Body}, nil
}

// unreachable returns a problem that explains why there is no answer.
func (p *page) unreachable(err error) *problem {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &problem{"nothing listens at " + p.name() + " (connection refused)",
			"is the program running, and does it call inspect.Serve(ctx, \"" + clean(p.at.Host, nameRunes) + "\")?"}
	case errors.As(err, &dns) && dns.IsNotFound:
		return &problem{"unknown host " + clean(p.at.Hostname(), nameRunes), "correct the address"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &problem{p.name() + " does not answer within " + age(p.client.Timeout),
			"is the machine reachable, and does the program get a processor?"}
	}
	var in *url.Error // its text repeats the address
	if errors.As(err, &in) {
		err = in.Err
	}
	return &problem{"no answer from " + p.name() + ": " + clean(err.Error(), textRunes),
		"is this the address of inspect.Serve?"}
}

// refused returns a problem that explains an answer with a status other than 200.
func (p *page) refused(answer *http.Response) *problem {
	reason := ""
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		head := make([]byte, 4*textRunes)
		n, _ := io.ReadFull(answer.Body, head)
		reason, _, _ = strings.Cut(string(head[:n]), "\n")
	}
	said, ofCoir := strings.CutPrefix(clean(reason, textRunes), "inspect: ")
	status := clean(answer.Status, nameRunes)
	if ofCoir {
		status = said + " (" + status + ")"
	} else if said != "" {
		status += ": " + said
	}
	switch {
	case answer.StatusCode == http.StatusNotFound && ofCoir: // no such fiber, or no such runtime
		return &problem{said, "correct the address"}
	case answer.StatusCode == http.StatusForbidden:
		return &problem{p.name() + " refuses: " + status,
			"use localhost, if need be by ssh -L 7117:localhost:7117 HOST, or allow the name with inspect.WithHost"}
	case answer.StatusCode == http.StatusUnauthorized:
		return &problem{p.name() + " asks for a password: " + status, "write http://name:password@host/"}
	case answer.StatusCode == http.StatusNotFound:
		return &problem{"no page of coir at " + p.name() + ": " + status,
			"write the path at which inspect.Handler is mounted, such as http://localhost:8080/debug/coir/"}
	}
	return &problem{p.name() + " answers: " + status, "look at the log of the program"}
}

// unreadable returns a problem that explains why an answer cannot be shown.
func (p *page) unreadable(err error) *problem {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var network net.Error
	switch {
	case errors.Is(err, errTooLong):
		return &problem{"the answer of " + p.name() + " is too long", "is this the address of inspect.Serve?"}
	case errors.As(err, &syntax), errors.As(err, &kind):
		return &problem{"what " + p.name() + " answers is not a snapshot of coir",
			"does another program listen there? Write the address of inspect.Serve, or the path of inspect.Handler"}
	case errors.As(err, &network) && network.Timeout():
		return p.unreachable(err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.As(err, &network):
		return &problem{"the answer of " + p.name() + " broke off", "has the program ended?"}
	}
	return &problem{p.name() + ": " + clean(strings.TrimPrefix(err.Error(), "inspect: "), textRunes), update}
}

// file is a dump.
type file string

func (f file) name() string { return clean(filepath.Base(string(f)), nameRunes) }
func (f file) live() bool   { return false }

func (f file) snapshot(context.Context) (*data, error) {
	from, err := os.Open(string(f))
	if err != nil {
		return nil, &problem{clean(err.Error(), textRunes), "write the name of a file that you can read"}
	}
	defer from.Close() //nolint:errcheck // opened for reading
	dump, err := inspect.Read(&bounded{from, mostFile})
	if err != nil {
		why := clean(strings.TrimPrefix(err.Error(), "inspect: "), textRunes)
		return nil, &problem{clean(string(f), textRunes) + ": " + why,
			"get a dump with: curl -o dump.json 'http://localhost:7117/dump?stacks=1'"}
	}
	return newData(dump), nil
}

// fiber returns nil, because the snapshot already contains all data of the file.
func (f file) fiber(context.Context, uint64) (*snapshot.Fiber, error) { return nil, nil }
