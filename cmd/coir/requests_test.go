package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
)

// A report distinguishes the requests on a connection that a client keeps: each step, and each holder of a lock, has
// the name of the request that was served at that time.
func TestRequestsOfOneConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	if !coirtest.InMemory() {
		t.Skip("sockets are not in memory on this platform")
	}
	module(t, map[string]string{"m_test.go": `package m

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

func get(url string) {
	if resp, err := http.Get(url); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func TestKept(*testing.T) {
	var mu, other sync.Mutex
	prices := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	mux := http.NewServeMux()
	mux.HandleFunc("/first", func(http.ResponseWriter, *http.Request) {
		other.Lock()
		other.Unlock()
	})
	mux.HandleFunc("/take", func(http.ResponseWriter, *http.Request) {
		get(prices.URL + "/price")
		mu.Lock()
	})
	mux.HandleFunc("/wait", func(http.ResponseWriter, *http.Request) { mu.Lock() })
	s := httptest.NewServer(mux)
	get(s.URL + "/none")
	get(s.URL + "/first")
	get(s.URL + "/take")
	get(s.URL + "/wait")
}
`})
	o := explored(t, "-schedules=1", ".")["TestKept"]
	if o.Failure == nil || o.Failure.Kind != "deadlock" {
		t.Fatal(o.Output)
	}
	want := regexp.MustCompile(`(?m)^    handler GET /wait waits to lock mu, held by handler GET /take, which has ended, `)
	if !want.MatchString(o.Output) {
		t.Errorf("the holder is not the request that locked:\n%s", o.Output)
	}
	if strings.Contains(o.Output, "GET /take (") {
		t.Errorf("a request has a number:\n%s", o.Output)
	}
	if !regexp.MustCompile(`\.\.\. and \d+ goroutines and 1 request without a column\n`).MatchString(o.Output) {
		t.Errorf("the first request is counted as a goroutine:\n%s", o.Output)
	}
	columns := tableOf(o.Output)
	for request, steps := range map[string][]string{
		"handler GET /take": {
			"read conn#", "handler GET /take", "client GET /price ->", "dial listener#", "client GET /price <-", "lock mu",
		},
		"handler GET /wait": {"read conn#", "handler GET /wait", "lock mu"},
	} {
		for _, step := range steps {
			if !slices.ContainsFunc(columns[request], func(s string) bool { return strings.HasPrefix(s, step) }) {
				t.Errorf("the column %q has no step %q: %q\n%s", request, step, columns[request], o.Output)
			}
		}
		for other := range columns {
			if other != request && slices.Contains(columns[other], request) {
				t.Errorf("the column %q has the request %q\n%s", other, request, o.Output)
			}
		}
	}
}

// tableOf returns the steps of each column of the table of a report.
func tableOf(output string) map[string][]string {
	columns := map[string][]string{}
	var names []string
	for line := range strings.Lines(output) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "step":
			names = cells
		case len(cells) != len(names):
		case cells[0] == "" && len(columns) == 0: // the head continues
			for i := range names {
				names[i] = strings.TrimSpace(names[i] + " " + cells[i])
			}
		case cells[0] == "": // the line above continues
			for i, name := range names[1 : len(names)-1] {
				if n := len(columns[name]); n > 0 && cells[i+1] != "" {
					columns[name][n-1] += " " + cells[i+1]
				}
			}
		default:
			for i, name := range names[1 : len(names)-1] {
				if cells[i+1] != "" {
					columns[name] = append(columns[name], cells[i+1])
				}
			}
		}
	}
	return columns
}

// If the beginning of the trace is missing, the name of the request that a connection served first is not known. A
// connection that serves one request is one actor.
func TestRequestsOfACutTrace(t *testing.T) {
	const conn, other = 5, 6
	steps := func(first int) []step {
		return []step{
			{n: first, g: conn, op: coir.OpLock},
			{n: first + 1, g: conn, op: coir.OpNetWrite},
			{n: first + 2, g: conn, op: coir.OpNetRead},
			{n: first + 3, g: conn, op: coir.OpNetRead},
			{n: first + 4, g: conn, op: coir.OpUnlock, note: "handler GET /last"},
			{n: first + 5, g: other, op: coir.OpNetRead, note: "handler GET /only"},
		}
	}
	for first, want := range map[int][]int{1: {conn, conn, other}, 1000: {7, conn, other}} {
		r := &record{tested: new(tested), known: steps(first), actors: map[int]*actor{
			conn: {id: conn, role: "handler GET /last"}, other: {id: other, role: "handler GET /only"},
		}}
		r.splitConnections()
		got := []int{r.by(conn, first+1), r.by(conn, first+2), r.by(other, first+5)}
		if !slices.Equal(got, want) {
			t.Errorf("the steps from %d on are of %v, want %v", first, got, want)
		}
		if a := r.actors[want[0]]; first > 1 && (a.role != "handler of an earlier request" || a.goroutine() != conn) {
			t.Errorf("the earlier request is %+v", a)
		}
	}
}
