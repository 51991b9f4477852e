package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/snapshot"
)

// encoded returns a dump in the form in which a program sends it.
func encoded(t testing.TB, d *inspect.Dump) []byte {
	t.Helper()
	b, err := json.Marshal(struct {
		Version int `json:"version"`
		*snapshot.Snapshot
		Explanations []snapshot.Explanation `json:"explanations"`
	}{1, d.Snapshot, d.Explanations})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// asked returns the answer from an address.
func asked(t *testing.T, at string) (*data, error) {
	t.Helper()
	p, err := newPage(at)
	if err != nil {
		t.Fatal(err)
	}
	return p.snapshot(t.Context())
}

// serving serves a handler, and returns its address.
func serving(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("dump.json", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("host:1", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{
		"dump.json":                            "dump.json",
		"host:1":                               "host:1", // a file takes precedence
		standard:                               "http://localhost:7117/",
		"localhost:6060":                       "http://localhost:6060/",
		":6060":                                "http://localhost:6060/",
		"localhost:6060/debug/coir":            "http://localhost:6060/debug/coir/",
		"https://shop.example/debug/coir/text": "https://shop.example/debug/coir/",
		"http://localhost:1/snapshot.json":     "http://localhost:1/",
		"http://localhost:1/?of=1":             "http://localhost:1/?of=1",
		"http://me:secret@localhost:1/":        "http://me:xxxxx@localhost:1/",
		"[::1]:80":                             "http://[::1]:80/",
	} {
		from, err := open(arg)
		if err != nil {
			t.Errorf("%s: %v", arg, err)
		} else if from.name() != want {
			t.Errorf("%s is taken for %s, want %s", arg, from.name(), want)
		}
	}
	for arg, want := range map[string]string{
		"none.json": "file none.json does not exist; write an address with its port", "localhost": "file localhost does not exist",
		"ftp://localhost/": "is not the address of a page", "http://": "is not the address of a page", "http://[::1": "is not an address",
		"\x1b[31m": `file \x1b[31m does not exist`,
	} {
		if _, err := open(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
}

// Each problem is described in plain words, together with what to do about it.
func TestProblems(t *testing.T) {
	const plain, page = "text/plain; charset=utf-8", "text/html"
	for _, c := range []struct {
		status     int
		kind, text string
		want       string
	}{
		{403, plain, "no\x1b[2J way\nand more", "URL/ refuses: 403 Forbidden: no\\x1b[2J way; use localhost"},
		{401, page, "<html>", "URL/ asks for a password: 401 Unauthorized; write http"},
		{404, plain, "404 page not found",
			"no page of coir at URL/: 404 Not Found: 404 page not found; write the path"},
		{404, plain, "inspect: unknown runtime\n", "unknown runtime; correct the address"},
		{503, plain, "inspect: too many slow readers: try again\n",
			"URL/ answers: too many slow readers: try again (503 Service Unavailable); look at the log"},
		{500, page, "<html>", "URL/ answers: 500 Internal Server Error; look at the log"},
		{200, page, "<!DOCTYPE html>", "what URL/ answers is not a snapshot of coir; does another program listen there?"},
		{200, plain, `{"version":"one"}`, "what URL/ answers is not a snapshot of coir; does another program listen there?"},
		{200, plain, `{}`, "URL/: not a dump: its version is missing; update coir-top"},
		{200, plain, `{"version":2}`,
			"URL/: the dump has version 2, and this program reads 1: use a newer coir; update coir-top"},
		{200, plain, `{"version":1,"fibers":[`, "the answer of URL/ broke off; has the program ended?"},
		{200, plain, "", "the answer of URL/ broke off; has the program ended?"},
	} {
		at := serving(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.text)
		})
		_, err := asked(t, at)
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(c.want, "URL", at)) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	at := serving(t, func(w http.ResponseWriter, _ *http.Request) { // the answer ends in the middle
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"version"`)
	})
	if _, err := asked(t, at); err == nil || !strings.Contains(err.Error(), "broke off; has the program ended?") {
		t.Error(err)
	}

	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	at = "http://" + l.Addr().String()
	_ = l.Close()
	if _, err := asked(t, at); err == nil || !strings.Contains(err.Error(),
		"nothing listens at "+at+"/ (connection refused); is the program running, and does it call inspect.Serve") {
		t.Error(err)
	}
	p, _ := newPage("http://a.example/")
	refuse := func(err error) {
		p.client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, err
		}}
	}
	refuse(&net.DNSError{IsNotFound: true})
	if _, err := p.snapshot(t.Context()); err == nil || err.Error() != "unknown host a.example; correct the address" {
		t.Error(err)
	}
	refuse(errors.New("no\x1b[31m route"))
	if _, err := p.snapshot(t.Context()); err == nil ||
		err.Error() != `no answer from http://a.example/: no\x1b[31m route; is this the address of inspect.Serve?` {
		t.Error(err)
	}
	refuse(&net.DNSError{IsTimeout: true})
	if _, err := p.snapshot(t.Context()); err == nil ||
		!strings.HasPrefix(err.Error(), "http://a.example/ does not answer within 30s; ") {
		t.Error(err)
	}
}

// The handler of package inspect refuses a name that it does not know.
func TestUnknownHost(t *testing.T) {
	s := httptest.NewServer(inspect.Handler())
	defer s.Close()
	p, err := newPage("http://shop.example/")
	if err != nil {
		t.Fatal(err)
	}
	p.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}}
	_, err = p.snapshot(t.Context())
	if err == nil ||
		!strings.HasPrefix(err.Error(), "http://shop.example/ refuses: the request is for a host that is not known here") {
		t.Error(err)
	}
}

// endless is an answer that does not end. It counts the bytes that are read.
type endless struct {
	head io.Reader
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	n, _ := e.head.Read(p)
	if n == 0 {
		n = copy(p, bytes.Repeat([]byte{'x'}, len(p)))
	}
	e.read += int64(n)
	return n, nil
}
func (e *endless) Close() error { return nil }

// RoundTrip returns an answer whose body is e.
func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Status: "200 OK", Header: http.Header{}, Body: e, Request: r}, nil
}

// An answer that does not end is read up to a bound.
func TestEndlessAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads as much as the bound")
	}
	p, err := newPage("http://localhost:1/")
	if err != nil {
		t.Fatal(err)
	}
	e := &endless{head: strings.NewReader(`{"version":1,"fibers":[{"name":"`)}
	p.client.Transport = e
	_, err = p.snapshot(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is too long") || e.read > mostBytes {
		t.Errorf("%v, after %d bytes", err, e.read)
	}
	e = &endless{head: strings.NewReader(`{"name":"`)}
	p.client.Transport = e
	_, err = p.fiber(t.Context(), 7)
	if err == nil || !strings.Contains(err.Error(), "is too long") || e.read > oneFiber {
		t.Errorf("%v, after %d bytes", err, e.read)
	}
	e = &endless{head: strings.NewReader("<html>")}
	p.client.Transport = e
	if _, err := p.snapshot(t.Context()); err == nil || e.read > 1<<20 {
		t.Errorf("%v, after %d bytes", err, e.read)
	}
}

func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "dump.json")
	dump := shop()
	dump.Snapshot.Fibers[1].Stack = "goroutine 7:\nmain.transfer()\n\t/shop/orders.go:62 +0x1\n"
	if err := os.WriteFile(name, encoded(t, dump), 0o666); err != nil {
		t.Fatal(err)
	}
	from, err := open(name)
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t.Context(), from, time.Second)
	_, next := m.Update(m.Init()())
	if next != nil {
		t.Error("a file is read again")
	}
	has(t, m.text(), "shop, process 4711", "taken at 2026-11-18 12:00:00", "certain:")
	m.press("space")
	has(t, m.text(), "this is a file: it does not change")
	m.press("s", "s", "s", "s", "down", "down") // by age: main, smtp, worker[0]
	if cmd := m.press("enter"); cmd != nil {
		t.Error("a stack is requested of a file")
	}
	has(t, m.text(), "worker[0] #2", "stack", "  main.transfer()", "    /shop/orders.go:62 +0x1")
	m.press("esc", "up", "enter")
	has(t, m.text(), "no stack: the dump was written without ?stacks=1")
	if err := os.WriteFile(name, []byte("no dump"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := from.snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "not a dump") ||
		!strings.Contains(err.Error(), "get a dump with: curl") {
		t.Error(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := from.snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "that you can read") {
		t.Error(err)
	}
}

// A stack is requested when the page of a fiber is opened, and with r.
func TestStacks(t *testing.T) {
	requests := 0
	at := serving(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/snapshot.json" && r.URL.Query().Get("of") == "1":
			_, _ = w.Write(encoded(t, shop()))
		case r.URL.Path == "/fiber" && r.URL.Query().Get("of") == "1" && r.URL.Query().Get("id") == "2":
			requests++
			fmt.Fprintf(w, `{"id":2,"name":"worker[0]","at":"shop/orders.go:6%d",
				"stack":"main.pay\u001b[31m()\n\t/shop/orders.go:6%d\n"}`, requests, requests)
		default:
			http.Error(w, "inspect: fiber 8 has ended", 404)
		}
	})
	from, err := open(at + "?of=1")
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t.Context(), from, time.Second)
	m.Update(m.Init()())
	m.press("s", "s", "s", "s") // by age
	m.press("down", "down")
	cmd := m.press("enter")
	has(t, m.text(), "worker[0] #2", "reading the stack")
	if again := m.press("r"); again != nil {
		t.Error("two requests at the same time")
	}
	m.Update(cmd())
	has(t, m.text(), "is at     shop/orders.go:61", "stack", `main.pay\x1b[31m()`, "    /shop/orders.go:61")
	m.Update(m.press("r")())
	has(t, m.text(), "/shop/orders.go:62")
	m.press("esc", "up")
	m.Update(m.press("enter")())
	has(t, m.text(), "smtp #8", "no stack: fiber 8 has ended")
	ended := shop()
	ended.Snapshot.Fibers = ended.Snapshot.Fibers[:2]
	m.take(newData(ended), nil)
	has(t, m.text(), "Fiber 8 has ended")
}

// If the program does not answer, coir-top says so and still shows the last snapshot. It continues when the program
// answers again.
func TestReconnects(t *testing.T) {
	h := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(encoded(t, shop())) }
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	s := &http.Server{Handler: http.HandlerFunc(h)}
	go func() { _ = s.Serve(l) }()
	from, err := open(addr)
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t.Context(), from, time.Millisecond)
	_, next := m.Update(m.Init()())
	has(t, m.text(), "live 12:00:00")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	step := func() { // the timer, and the request after it
		_, ask := m.Update(next())
		_, next = m.Update(ask())
	}
	step()
	has(t, m.text(), "NO ANSWER since 12:00:00", "no answer:", "certain:", "[1 fibers]", "main #1")
	fits(t, m)
	step()
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Skipf("another process has taken the port: %v", err)
	}
	s = &http.Server{Handler: http.HandlerFunc(h)}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	step()
	has(t, m.text(), "live 12:00:00")
	lacks(t, m.text(), "no answer")
}

// Before the first answer the screen also says what is wrong.
func TestNoFirstAnswer(t *testing.T) {
	from, _ := newPage("http://localhost:7117/")
	m := newModel(t.Context(), from, time.Second)
	has(t, m.text(), "waiting for the first answer of http://localhost:7117/")
	m.take(nil, &problem{"nothing listens at http://localhost:7117/ (connection refused)", "is the program running?"})
	fits(t, m)
	golden(t, "refused-80x24.txt", m.text())
	m.take(nil, errors.New("something\x1b[31m else"))
	has(t, m.text(), `Something\x1b[31m else.`)
	m.take(newData(shop()), nil)
	has(t, m.text(), "live 12:00:00")
}

func TestLater(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: time.Second, 100 * time.Millisecond: 900 * time.Millisecond, 700 * time.Millisecond: 700 * time.Millisecond,
		5 * time.Second: 5 * time.Second,
	} {
		if got := later(time.Second, took); got != want {
			t.Errorf("after a request of %v the next one comes after %v, want %v", took, got, want)
		}
	}
}
