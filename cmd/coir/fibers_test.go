package main

import "testing"

// An operation of an iterator that was inlined into a loop is at the line of the loop.
func TestPlaceOfALoop(t *testing.T) {
	const cache = "/go/pkg/mod/github.com/coir-go/coir@v0.1.0/"
	recv := "github.com/coir-go/coir.(*Chan[...]).Recv"
	r := &tested{path: "example.com/shop"}
	at, via := r.own([]place{
		{cache + "chan.go", 347, "github.com/coir-go/coir.(*Chan[...]).recv"},
		{cache + "chan.go", 285, recv},
		{cache + "chan.go", 603, "example.com/shop.serve.(*Chan[...]).All.func1"},
		{"/projects/shop/serve.go", 23, "example.com/shop.serve"},
	})
	if at.line != 23 || via != recv {
		t.Errorf("the place is %v, by %s", at, via)
	}
}
