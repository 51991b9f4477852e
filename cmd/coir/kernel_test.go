package main

import (
	"bytes"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
)

// Goroutines that wait only for each other are in a deadlock, even if others wait in the kernel. If the waits in the
// kernel end, there is no deadlock. A schedule that waits for something outside is counted, and later schedules run.
func TestTheKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	t.Setenv("COIR_OUTSIDE", callsBack(t))
	got := explored(t, "-v", "-budget=2s", "-network=kernel", "./testdata/kernel")
	coirtest.Compare(t, got, coirtest.Expected(t, "testdata/kernel"))
	for test, line := range map[string]string{
		"TestBugLocksBehindServer":     "cycle:\n",
		"TestBugLocksBesideProcess":    "cycle:\n",
		"TestBugClientThatDoesNotCome": "waits in net accept, at kernel_test.go:",
		"TestBugPipe":                  "waits in os read, at kernel_test.go:",
	} {
		if o := got[test]; !strings.Contains(o.Output, line) {
			t.Errorf("%s: no line has %q\n%s", test, line, o.Output)
		}
	}
	some := []string{"TestProcessThatDoesNotAnswer", "TestUnlockedByAnother"}
	for _, test := range some {
		o := got[test]
		if o.Uncontrolled == 0 || o.Schedules <= o.Uncontrolled {
			t.Errorf("%s: %d schedules, %d not controlled\n%s", test, o.Schedules, o.Uncontrolled, o.Output)
		}
		if !strings.Contains(o.Output, "not controlled: os read at kernel_test.go:") {
			t.Errorf("%s: it is not said what is not controlled:\n%s", test, o.Output)
		}
	}
	for test, o := range got {
		if test != "" && !slices.Contains(some, test) && o.Action == "pass" && (o.Outside == 0 || !strings.Contains(o.Output, "came from outside")) {
			t.Errorf("%s passes, and nothing is said to come from outside\n%s", test, o.Output)
		}
	}
}

// Goroutines that wait for each other's locks are in a deadlock, even if a signal or a goroutine from before the test
// may end other waits.
func TestLocksBesideOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	coirtest.Compare(t, explored(t, "./testdata/beside"), coirtest.Expected(t, "testdata/beside"))
}

// callsBack starts a server that reads an address from each connection, and after a while connects to it. It returns
// the server's own address.
func callsBack(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var to string
			if _, err := fmt.Fscanln(c, &to); err == nil {
				time.Sleep(300 * time.Millisecond) // much longer than it takes to find a deadlock
				if back, err := net.Dial("tcp", to); err == nil {
					_ = back.Close()
				}
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

// The last line of a package names tests that are not controlled, without -v. With -strict they fail.
func TestStrict(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	line := regexp.MustCompile(`(?m)^ok  \t.*, 1 not controlled \(TestProcessThatDoesNotAnswer\)`)
	args := []string{"test", "-run=TestProcessThatDoesNotAnswer", "./testdata/kernel"}
	var out, errs bytes.Buffer
	if code := run(args, &out, &errs); code != 0 || !line.Match(out.Bytes()) {
		t.Errorf("exit code %d:\n%s%s", code, &out, &errs)
	}
	out.Reset()
	args = append(args, "-strict")
	if code := run(args, &out, &errs); code != 1 ||
		!strings.Contains(out.String(), "--- FAIL: TestProcessThatDoesNotAnswer") ||
		!strings.Contains(out.String(), "not controlled: os read at kernel_test.go:") {
		t.Errorf("exit code %d:\n%s%s", code, &out, &errs)
	}
	// A strategy that depends on its earlier schedules cannot continue in another process.
	for _, strategy := range []string{"exhaustive", "dpor"} {
		out.Reset()
		if code := run([]string{"test", "-strict", "-network=kernel", "-strategy=" + strategy, "-run=TestLeavesListener", "./testdata/kernel"}, &out, &errs); code != 1 ||
			!strings.Contains(out.String(), "not controlled: all schedules but the first") {
			t.Errorf("%s: exit code %d:\n%s%s", strategy, code, &out, &errs)
		}
	}
}
