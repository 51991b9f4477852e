package bubble

import (
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// Outside, Here is 0. In a bubble it is the same number for all goroutines at any fake time, and another bubble has
// another number.
func TestHere(t *testing.T) {
	if !Possible {
		t.Fatal("a test binary is not taken for one")
	}
	seen := map[ID]bool{}
	for range 3 {
		if id := Here(); id != 0 || Outside(0) {
			t.Fatalf("outside: %v", id)
		}
		synctest.Test(t, func(t *testing.T) {
			id := Here()
			if id == 0 || seen[id] || Outside(id) || !Outside(0) {
				t.Fatalf("%v, seen %v", id, seen)
			}
			seen[id] = true
			time.Sleep(200 * 365 * 24 * time.Hour) // past the present, and past what a monotonic reading can express
			if again := Here(); again != id {
				t.Fatalf("%v, later %v", id, again)
			}
			child := make(chan ID)
			go func() { child <- Here() }()
			if c := <-child; c != id {
				t.Fatalf("%v, in a goroutine of it %v", id, c)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for dump, want := range map[string]ID{
		"goroutine 17 [running, synctest bubble 42]:\nmain.main()":                           42,
		"goroutine 17 [running, locked to thread, synctest bubble 7]:\n":                     7,
		"goroutine 17 [running, synctest bubble 7 labels:{\"a\": \"synctest bubble 8\"}]:\n": 7,
		"goroutine 17 [running]:\nmain.synctest bubble 3":                                    0,
		"": 0,
		"goroutine 17 [running labels:{\"fiber\": \"synctest bubble 3\"}]:\n":                    0, // Go 1.26
		"goroutine 17 [running, synctest bubble 4 labels:{\"fiber\": \"synctest bubble 3\"}]:\n": 4,
		"goroutine 17 [running] {fiber: \"synctest bubble 3\"}:\n":                               0, // Go 1.27
		"goroutine 17 [running, synctest bubble 4] {fiber: \"synctest bubble 3\"}:\n":            4,
	} {
		var buf [128]byte
		if id := parse(&buf, copy(buf[:], dump)); id != want {
			t.Errorf("%q: %d", dump, id)
		}
	}
}

func TestIsTest(t *testing.T) {
	path := func(p string) func() (*debug.BuildInfo, bool) {
		return func() (*debug.BuildInfo, bool) { return &debug.BuildInfo{Path: p}, true }
	}
	none := func() (*debug.BuildInfo, bool) { return nil, false }
	for _, c := range []struct {
		args []string
		info func() (*debug.BuildInfo, bool)
		want bool
	}{
		{[]string{"server"}, path("example.com/server"), false},
		{[]string{"/tmp/x"}, path("example.com/server.test"), true},
		{[]string{"x", "-test.v=true"}, path("example.com/server"), true},
		{[]string{"server"}, none, true},
		{[]string{"server"}, path(""), true},
		{nil, path("command-line-arguments"), false},
	} {
		if got := isTest(c.args, c.info); got != c.want {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}

func TestString(t *testing.T) {
	if s := ID(3).String(); s != "in synctest bubble 3" {
		t.Error(s)
	}
	if s := ID(0).String(); s != "outside of all synctest bubbles" {
		t.Error(s)
	}
}

func BenchmarkHere(b *testing.B) {
	for b.Loop() {
		Here()
	}
}
