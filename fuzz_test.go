package coir_test

// Channels are compared with the model, on histories from a fuzzer: see internal/history. The seeds in
// testdata/fuzz/FuzzChan are named after what they show, and ordinary test runs use them too.
//
//	go test -run FuzzChan -v .               prints what happens in each
//	go test -run '^$' -fuzz FuzzChan .       looks for more

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/history"
)

// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-11 (nobody waits for what is there)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-19 (waiters are served in order)
// Spec: CH-20 (a waiting operation beats a passing one)
// Spec: CH-22 (Try never waits and changes nothing)
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
// Spec: CH-24 (a cancelled wait tells the cause)
// Spec: CH-25 (one of data, close, cancel and timeout wins)
// Spec: CH-26 (a failed send keeps its value)
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-35 (close is graceful)
// Spec: CH-36 (a drained closed channel ends its receivers)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-38 (close and abort are idempotent)
// Spec: CH-40 (no value is lost silently)
// Spec: CH-55 (a value that was claimed is reported)
// Spec: SE-01 (a select completes one case)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-08 (SelectPriority takes the first ready case)
// Spec: SE-09 (TrySelect never waits)
// Spec: SE-16 (a select never matches itself)
// Spec: SE-17 (close wakes a receiving case, abort a sending one)
// Spec: SE-19 (a late completion stays with its sender)
func FuzzChan(f *testing.F) {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	f.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		story, err := history.Play(rt, data)
		if err != nil {
			t.Fatalf("%v\nafter\n%s", err, story)
		}
		if testing.Verbose() {
			t.Log(story)
		}
	})
}
