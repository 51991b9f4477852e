package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/events"
)

// A goroutine is named by the nearest line of the user's module: on the stack of its go statement, or of the go
// statements that led to it. If there is none, another module is better than the standard library.
func TestOrigins(t *testing.T) {
	const (
		get   = `"/go/src/net/http/client.go"	480	"net/http.Get"`
		dial  = `"/go/src/net/http/transport.go"	1994	"net/http.(*Transport).dialConn"`
		loop  = `"/go/src/net/http/transport.go"	1700	"net/http.(*Transport).dialConnFor"`
		user  = `"/mine/app/client_test.go"	31	"example.com/app.TestClient"`
		hub   = `"/mine/app/hub/hub.go"	88	"example.com/app/hub.(*Hub).Start"`
		dep   = `"/cache/dep@v1.2.0/pool.go"	7	"example.com/dep/v2.(*Pool[...]).Open"`
		depGo = `"/cache/dep@v1.2.0/pool.go"	9	"example.com/dep/v2.(*Pool[...]).fill"`
		sold  = `"/mine/app/vendor/x.org/y/y.go"	3	"x.org/y.Y"`
		group = `"/cache/sync@v0.1.0/errgroup.go"	78	"golang.org/x/sync/errgroup.(*Group).Go"`
		trim  = `"example.com/app/a.go"	4	"example.com/app.A"`
		vers  = `"example.com/app/sub@v1.0.0/b.go"	5	"example.com/app/sub.B"`
	)
	for _, c := range []struct {
		parent, child []string // stacks of go statements
		name, started string   // of the child
	}{
		{nil, []string{hub, user}, "hub.go:88", "started at hub.go:88"},
		{nil, []string{dial, get, user}, "http.Get at client_test.go:31 (transport.go:1994)", "started by http.Get at client_test.go:31"},
		{[]string{loop, get, user}, []string{dial, loop}, "http.Get at client_test.go:31 (transport.go:1994)",
			"started by http.Get at client_test.go:31"},
		{[]string{user}, []string{depGo, dep}, "dep.Pool.Open at client_test.go:31 (pool.go:9)", "started by dep.Pool.Open at client_test.go:31"},
		{nil, []string{depGo, dep, hub, user}, "dep.Pool.Open at hub.go:88 (pool.go:9)", "started by dep.Pool.Open at hub.go:88"},
		{nil, []string{dial, dep}, "http.Transport.dialConn at pool.go:7 (transport.go:1994)", "started by http.Transport.dialConn at pool.go:7"},
		{nil, []string{dial, loop}, "transport.go:1994", "started at transport.go:1994"},
		{nil, []string{group, hub}, "hub.go:88", "started at hub.go:88"},
		{nil, []string{sold, user}, "y.Y at client_test.go:31 (y.go:3)", "started by y.Y at client_test.go:31"},
		{nil, []string{trim}, "a.go:4", "started at a.go:4"},
		{nil, []string{vers, trim}, "sub.B at a.go:4 (b.go:5)", "started by sub.B at a.go:4"},
	} {
		text := fmt.Sprintf("at\t1\t%s\nat\t2\t%s\n", c.child[0], strings.Join(c.child, "\t"))
		parent := 0
		if c.parent != nil {
			parent = 3
			text += fmt.Sprintf("at\t3\t%s\nat\t4\t%s\n", c.parent[0], strings.Join(c.parent, "\t")) +
				"actor\t3\t2\t1\t2\t0\t\"\"\t0\t1\t0\t3\t0\t\"\"\t0\t\"\"\t\"[]\"\t\"\"\t4\n"
		}
		text += fmt.Sprintf("actor\t4\t%d\t3\t1\t9\t\"\"\t0\t1\t0\t1\t0\t\"\"\t0\t\"\"\t\"[]\"\t\"\"\t2\n", parent) +
			"summary\t\"pass\"\t1\t1\t0\tfalse\t\"\"\n"
		r := &result{record: record{tested: &tested{
			test: "TestX", goroot: "/go", path: "example.com/app", modulePath: "example.com/app", moduleDir: "/mine/app",
		}}}
		if r.read(text); r.broken != "" {
			t.Fatal(r.broken)
		}
		if name := r.names()[4]; name != c.name {
			t.Errorf("the name is %q, want %q", name, c.name)
		}
		if left := r.leftFrom(); len(left) != 1 || left[0].started != c.started {
			t.Errorf("left behind is %v, want %q", left, c.started)
		}
	}
}

func TestLeftText(t *testing.T) {
	for _, c := range []struct {
		all  []left
		want string
	}{
		{nil, "a goroutine is left behind"},
		{[]left{{"started at a.go:1", 1}}, "a goroutine started at a.go:1 is left behind"},
		{[]left{{"started at a.go:1", 1200}}, "1,200 goroutines started at a.go:1 are left behind"},
		{[]left{{"started at a.go:1", 5}, {"started at a.go:2", 4}, {"of time.AfterFunc", 3}, {"started at a.go:4", 2}, {"started at a.go:5", 1}},
			"15 goroutines are left behind (5 started at a.go:1, 4 started at a.go:2, 3 of time.AfterFunc, 3 more)"},
	} {
		if got := leftText(c.all); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Goroutines from the same line cause one alarm, and have the nearest line of the module as their name. If several
// tests of a package leave goroutines of the same go statement behind, the later tests refer to the first one.
func TestLeftBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	const dir = "./testdata/left"
	got := explored(t, "-p=1", "-schedules=20", dir)
	for test, want := range map[string][]string{
		"TestTwelve": {
			"12 goroutines started at left_test.go:17 are left behind in schedule 1 (seed 1), in the plain order\n",
			"left_test.go:17 (1..12) wait at left_test.go:18 (12 goroutines); the first waits to receive from c#1 (made at ",
			"replay: ",
		},
		"TestThree": {
			"3 goroutines started at left_test.go:17 are left behind in schedule 1 (seed 1), in the plain order: " +
				"see TestTwelve, and -v\n",
		},
		"TestOther": {
			"2 goroutines are left behind (1 started at left_test.go:17, 1 started at left_test.go:31) in schedule 1", "replay: ",
		},
		"TestLibrary": {
			"a goroutine started by sql.OpenDB at left_test.go:40 is left behind in schedule 1",
			"sql.OpenDB at left_test.go:40 (sql.go:",
		},
		"TestLibraryOfAChild": {"a goroutine started by sql.OpenDB at left_test.go:45 is left behind", ": see TestLibrary, and -v\n"},
	} {
		o := got[test]
		if o.Action != "fail" || o.Failure == nil || o.Failure.Kind != "leak" || o.Failure.Replay == "" {
			t.Errorf("%s: %s\n%s", test, o.Action, o.Output)
			continue
		}
		rest := o.Output
		for _, line := range want {
			_, after, ok := strings.Cut(rest, line)
			if !ok {
				t.Errorf("%s: there is no %q in\n%s", test, line, o.Output)
			}
			rest = after
		}
	}
	if o := got["TestThree"]; strings.Count(o.Output, "\n") != 3 { // the first says that it runs
		t.Errorf("more than a line:\n%s", o.Output)
	}
	if o := got["TestOther"]; o.Failure != nil && (len(o.Failure.Left) != 2 || o.Failure.Left[0] != events.Left{Started: "started at left_test.go:17", Count: 1}) {
		t.Errorf("left behind: %v", o.Failure.Left)
	}
	note := explored(t, "-v", "-leaks=false", "-schedules=20", "-run=^Test(Twelve|Library)$", dir)
	for test, want := range map[string]string{
		"TestTwelve":  "left behind: left_test.go:17 (1..12) wait at left_test.go:18 (12 goroutines); the first waits",
		"TestLibrary": "left behind: sql.OpenDB at left_test.go:40 (sql.go:",
	} {
		if o := note[test]; o.Action != "pass" || !strings.Contains(o.Output, want) {
			t.Errorf("%s: %s, and no %q in\n%s", test, o.Action, want, o.Output)
		}
	}
}
