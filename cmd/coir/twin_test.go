package main

import "testing"

func TestWhatAGoroutineDid(t *testing.T) {
	for _, c := range [][3]string{
		{"a_test.go:7", "lock mutex#1", "a_test.go:7 did lock mutex#1"},
		{"TestHold", "waits for the answer", "TestHold waits for the answer"},
		{"handler POST /hold", "handler POST /hold", "handler POST /hold began"},
		{"handler POST /hold (2)", "handler POST /hold", "handler POST /hold (2) began"},
		{"server.go:9", "handler POST /hold", "server.go:9 began to handle POST /hold"},
		{"TestHold", "client GET /pay -> 127.0.0.1:33000", "TestHold sent GET /pay -> 127.0.0.1:33000"},
		{"TestHold", "client GET /pay <- 200 OK", "TestHold got 200 OK for GET /pay"},
		{"TestHold", "client GET /pay: read tcp: reset", "TestHold got an error for GET /pay"},
	} {
		if got := does(c[0], c[1]); got != c[2] {
			t.Errorf("%q, want %q", got, c[2])
		}
	}
}
