package main

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/internal/chromium"
	"github.com/coir-go/coir/snapshot"
)

// told has the explanation of each bug. T stands for a time, L for a line, N for a number.
var told = map[string]string{
	"locks": "certain: [deadlock] transfer[0] waits to lock bob, held by transfer[1], which waits to lock alice, held " +
		"by transfer[0]: a deadlock, for T; spawned at stuck/main.go:L, stuck/main.go:L; audit, main wait for them, " +
		"the oldest for T",
	"pipeline": "likely: [deadlock] parse waits to send to parsed (full, 4 of 4), and retry, which was the last to " +
		"receive from it, waits to send to again, and parse was the last to receive from it: likely a deadlock, for " +
		"T; spawned at stuck/main.go:L, stuck/main.go:L; main waits for them",
	"pool": "likely: [deadlock] query[N] waits to lock cache, held by refresh, which waits for a value of connections (2 of " +
		"2 lent), lent to 2 fibers, all of them stuck, one of which is query[N]: likely a deadlock, for T; spawned at " +
		"stuck/main.go:L, stuck/main.go:L; main, query[N] wait for them, the oldest for T",
	"gone": "likely: [receiver-gone] producer, spawned at stuck/main.go:L, waits to send to orders (full, 8 of 8) for " +
		"T; fiber N, which was the last to receive from it, has ended",
	"full": "likely: [channel-full] read, spawned at stuck/main.go:L, waits to send to lines (full, 64 of 64) for T; " +
		"write, which was the last to receive from it, waits for the event flushed",
	"handlers": "likely: [channel-full] handler=/order[N], handler=/order[N] wait to send to orders (full, 2 of 2), the " +
		"oldest for T; store, which was the last to receive from it, waits for the event stored",
	"native": "likely: [blocking-calls] query[0..2] (3 fibers), spawned at stuck/main.go:L, are blocked in a native wait " +
		"(such as for a native channel), the oldest for T",
	"hog": "likely: [never-yields] compress, spawned at stuck/main.go:L, computes for T without yielding",
	"cancel": "likely: [cancel-ignored] the nursery of serve was cancelled (the disk is full), and 1 fiber has not " +
		"ended: flush waits for the event drained",
	"ticket": "likely: [ticket-old] order, spawned at stuck/main.go:L, waits for the answer of ticket payment of " +
		"order 7 for T",
	"all": "likely: [deadlock] main waits for its children to end: worker[N], which waits to receive from jobs, and " +
		"main was the last to send to it: likely a deadlock, for T; spawned at stuck/main.go:L; worker[N], worker[N] " +
		"wait for them, the oldest for T",
}

// left is the number of fibers that are left in each program, with goroutines that wait.
var left = map[string]int{
	"locks": 5, "pool": 5, "pipeline": 4, "gone": 3, "full": 4, "handlers": 6, "native": 5, "hog": 3, "cancel": 4, "ticket": 3, "all": 4,
}

// settled takes snapshots until two in a row show the same waits of the given number of fibers, and every fiber waits,
// holds a worker or has a goroutine of its own.
func settled(t *testing.T, rt *coir.Runtime, fibers int) *snapshot.Snapshot {
	t.Helper()
	var last []uint64
	for begin := time.Now(); time.Since(begin) < time.Minute; runtime.Gosched() {
		s := rt.Snapshot(snapshot.Options{})
		var waits []uint64
		moves := len(s.Fibers) != fibers
		for _, w := range s.Workers { // a tick later it is known since when
			moves = moves || w.Fiber != 0 && w.Since.IsZero() && w.State != snapshot.WorkerStateBlocking
		}
		for _, f := range s.Fibers {
			waits = append(waits, f.ID, f.Waits)
			holds := f.Name == "compress" && f.Call == "running" || strings.HasPrefix(f.Name, "query") && f.Call == "native wait"
			moves = moves || f.State != snapshot.StateWaiting && f.State != snapshot.StateGoroutine &&
				f.State != snapshot.StateOutside &&
				!holds
		}
		if !moves && slices.Equal(waits, last) {
			return s
		}
		last = waits
	}
	t.Fatal("the program does not settle")
	return nil
}

// later changes a snapshot as if it had been taken d later and all waits had begun age earlier.
func later(s *snapshot.Snapshot, d, age time.Duration) {
	s.Taken = s.Taken.Add(d)
	for i := range s.Fibers {
		if f := &s.Fibers[i]; !f.Since.IsZero() {
			f.Since = f.Since.Add(-age)
		}
	}
	for i := range s.Objects {
		if o := &s.Objects[i]; !o.Oldest.IsZero() {
			o.Oldest = o.Oldest.Add(-age)
		}
	}
}

// steady returns the text without the parts that differ from run to run.
func steady(text string) string {
	for _, r := range []struct{ from, to string }{
		{`\b\d+(\.\d+)?(ms|s|m\d+s|m)\b`, "T"}, {`\.go:\d+`, ".go:L"}, {`fiber \d+,`, "fiber N,"}, {`worker\[\d\]`, "worker[N]"},
		{`order\[\d+\]`, "order[N]"},
		{`query\[\d\]`, "query[N]"},
	} {
		text = regexp.MustCompile(r.from).ReplaceAllString(text, r.to)
	}
	return text
}

// dump returns the dump of a program with a bug, some time after it got stuck.
func dump(t *testing.T, name string) *inspect.Dump {
	t.Helper()
	return dumpIn(t.Context(), t, name)
}

// dumpIn is dump with a context for the program.
func dumpIn(ctx context.Context, t *testing.T, name string) *inspect.Dump {
	t.Helper()
	rt := coir.NewRuntime()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, bugs[name]) }()
	earlier := settled(t, rt, left[name])
	after := settled(t, rt, left[name])
	cancel()
	<-done
	later(earlier, 0, time.Minute)
	later(after, time.Second, time.Minute)
	return &inspect.Dump{Snapshot: after, Explanations: snapshot.Explain(earlier, after)}
}

// A program that runs under a timeout is explained before the timeout ends. A program that sleeps is not reported.
func TestAHangUnderATimeoutIsExplained(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	const want = "main waits for its children to end: worker[N], which waits to receive from jobs, and main was the last " +
		"to send to it: likely a deadlock, for T, until a wait ends by itself in T; spawned at stuck/main.go:L; worker[N], " +
		"worker[N] wait for them, the oldest for T"
	d := dumpIn(ctx, t, "all")
	if len(d.Explanations) != 1 || d.Explanations[0].Certain || steady(d.Explanations[0].Text) != want {
		t.Errorf("told\n%v\nnot\n%s", d.Explanations, want)
	}
	for _, e := range dumpIn(ctx, t, "full").Explanations { // its heartbeat sleeps
		if e.Kind == snapshot.ProblemAllWaiting {
			t.Errorf("told of a program with a fiber that sleeps: %s", e.Text)
		}
	}
}

func TestEachBugIsExplained(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(bugs)) {
		t.Run(name, func(t *testing.T) {
			d := dump(t, name)
			var got []string
			for _, e := range d.Explanations {
				how := "likely: "
				if e.Certain {
					how = "certain: "
				}
				got = append(got, how+"["+string(e.Kind)+"] "+steady(e.Text))
			}
			if text := strings.Join(got, "\n"); text != told[name] {
				t.Errorf("told\n%s\nnot\n%s", text, told[name])
			}
			var text strings.Builder
			if err := d.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(words(text.String()), words(told[name])) {
				t.Errorf("the text does not say\n%s\nbut\n%s", told[name], text.String())
			}
		})
	}
}

// The page gives the same explanations. If COIR_PICTURES is a directory, the test writes a picture of each bug there.
func TestThePageExplainsEachBug(t *testing.T) {
	b := chromium.Open(t)
	for _, name := range slices.Sorted(maps.Keys(bugs)) {
		page, err := os.Create(filepath.Join(t.TempDir(), name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(dump(t, name).WritePage(page), page.Close()); err != nil {
			t.Fatal(err)
		}
		b.Visit("file://" + page.Name())
		if got := words(b.Text(`document.querySelector("#why").innerText`)); !strings.Contains(got, words(told[name])) {
			t.Errorf("the page does not say\n%s\nbut\n%s", told[name], got)
		}
		if dir := os.Getenv("COIR_PICTURES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, "stuck-"+name+".png"), cropped(t, b.Picture()), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	b.Quiet()
}

// cropped returns the picture without the rows at its end that are equal to the last one.
func cropped(t *testing.T, picture []byte) []byte {
	t.Helper()
	all, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	to := all.Bounds()
	empty := func(y int) bool {
		for x := to.Min.X; x < to.Max.X; x++ {
			if all.At(x, y) != all.At(x, to.Max.Y-1) {
				return false
			}
		}
		return true
	}
	end := to.Max.Y
	for end > to.Min.Y && empty(end-1) {
		end--
	}
	to.Max.Y = min(end+12, to.Max.Y)
	cut, ok := all.(interface {
		SubImage(r image.Rectangle) image.Image
	})
	if !ok {
		t.Fatalf("%T cannot be cut", all)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, cut.SubImage(to)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// words returns the words of a text, without the parts that differ from run to run and the colon after the certainty.
func words(text string) string {
	text = strings.Join(strings.Fields(steady(text)), " ")
	return strings.NewReplacer("certain: ", "certain ", "likely: ", "likely ").Replace(text)
}
