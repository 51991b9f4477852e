package snapshot

import (
	"strings"
	"testing"
	"time"
)

func TestBlocked(t *testing.T) {
	for _, test := range []struct {
		state State
		head  string
		want  string
	}{
		{StateBlocking, "goroutine 7 [chan receive, 3 minutes]:", "chan receive"},
		{StateBlocking, "goroutine 7 [select (no cases)]:", "select (no cases)"},
		{StateBlocking, `goroutine 7 [IO wait] {"fiber":"a[0]"}:`, "IO wait"},
		{StateOutside, "goroutine 7 [sync.Mutex.Lock]:", "sync.Mutex.Lock"},
		{StateRunning, "goroutine 7 [running]:", ""},
		{StateBlocking, "goroutine 7 [runnable, locked to thread]:", ""},
		{StateWaiting, "goroutine 7 [coroutine]:", ""},
		{StateReady, "goroutine 7 [chan receive]:", ""},
		{StateBlocking, "", "syscall"},
		{StateWaiting, "", ""},
	} {
		f := Fiber{State: test.state, Call: "syscall"} // of another moment
		if test.head != "" {
			f.Stack = test.head + "\nmain.work(...)\n\t/src/app/main.go:8 +0x1c"
		}
		if got := f.Blocked(); got != test.want {
			t.Errorf("%s, %q waits for %q, not %q", test.state, test.head, got, test.want)
		}
	}
}

// An explanation says what a call waits for, if the stack is known.
func TestExplanationsSayWhatACallWaitsFor(t *testing.T) {
	f := Fiber{ID: 1, Name: "upload", Nursery: 100, State: StateBlocking, Since: ago(3100 * time.Millisecond),
		At: "/src/app/main.go:8", Stack: "goroutine 7 [chan receive]:\nmain.work(...)\n\t/src/app/main.go:8 +0x1c"}
	earlier, later := pairOf(t, Snapshot{
		Fibers: []Fiber{f}, Nurseries: []Nursery{{ID: 100, Ended: true, Cause: "stop"}},
		Workers: []Worker{{ID: 1, State: WorkerStateHeld, Fiber: 1, Since: f.Since}},
	})
	want := []string{
		"cancel-ignored: nursery 100 was cancelled (stop), and 1 fiber has not ended: upload is in a call that blocks " +
			"(chan receive at app/main.go:8)",
		"blocking-calls: upload is blocked in chan receive for 3.1s; upload is at app/main.go:8",
	}
	if got := lines(Explain(earlier, later)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("told\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
