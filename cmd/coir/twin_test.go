package main

import (
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

func TestWhatAGoroutineDid(t *testing.T) {
	for _, c := range [][3]string{
		{"a_test.go:7", "lock mutex#1", "a_test.go:7 locked mutex#1"},
		{"TestHold", "waits for the answer", "TestHold waits for the answer"},
		{"handler POST /hold", "handler POST /hold", "handler POST /hold began"},
		{"handler POST /hold (2)", "handler POST /hold", "handler POST /hold (2) began"},
		{"server.go:9", "handler POST /hold", "server.go:9 began to handle POST /hold"},
		{"TestHold", "client GET /pay -> 127.0.0.1:33000", "TestHold sent GET /pay -> 127.0.0.1:33000"},
		{"TestHold", "client GET /pay <- 200 OK", "TestHold got 200 OK for GET /pay"},
		{"TestHold", "client GET /pay: read tcp: reset", "TestHold got an error for GET /pay"},
	} {
		if got := does(c[0], c[1], "locked mutex#1"); got != c[2] {
			t.Errorf("%q, want %q", got, c[2])
		}
	}
}

// What a goroutine did is told in the past tense. If it waited, the report does not say that the operation happened
// there.
func TestOperationsInThePastTense(t *testing.T) {
	r := &record{tested: &tested{}, actors: map[int]*actor{2: {id: 2, state: coir.Waiting}}, failure: &failure{}}
	for _, c := range []struct {
		step step
		want string
	}{
		{step{op: coir.OpLock, object: 7}, "locked mutex#7"},
		{step{op: coir.OpLock, object: 7, waited: true}, "waited to lock mutex#7"},
		{step{op: coir.OpLock, object: 7, g: 2, last: true}, "waited to lock mutex#7"},
		{step{op: coir.OpTryLock, object: 7}, "tried to lock mutex#7"},
		{step{op: coir.OpSend, object: 3}, "sent to chan#3"},
		{step{op: coir.OpRecv, object: 3, via: "io.(*pipe).read"}, "received from chan#3 in io"},
		{step{op: coir.OpSend, object: 3, chose: 1}, "sent to chan#3 in a select"},
		{step{op: coir.OpSelect, chose: 1, cases: []selectCase{{object: 3}}}, "received from chan#3 in a select"},
		{step{op: coir.OpSelect, g: 2, last: true, cases: []selectCase{{object: 3}, {object: 4, send: true}}},
			"waited in a select: recv chan#3, send chan#4"},
		{step{op: coir.OpSelect, chose: -1}, "took the default case of a select"},
		{step{op: coir.OpOnce, object: 5}, "called Do of once#5"},
		{step{op: coir.OpDone, object: 6}, "called Done of waitgroup#6"},
		{step{op: coir.OpNetWrite, object: 8, bytes: 5}, "wrote to conn#8, 5 bytes"},
		{step{op: coir.OpFail, via: "testing.(*common).Errorf"}, "called t.Errorf"},
		{step{op: coir.OpGo}, "started a goroutine"},
	} {
		if got := r.past(&c.step); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
