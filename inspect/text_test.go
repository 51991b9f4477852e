package inspect

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/snapshot"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n")); !bytes.Equal(got, want) {
		t.Errorf("%s is not as it should be; if the change is meant, run the test with -update:\n%s", path, got)
	}
}

func TestTextOfASnapshot(t *testing.T) {
	var b bytes.Buffer
	if err := writeText(&b, deadlock(), whyDeadlock(), true); err != nil {
		t.Fatal(err)
	}
	golden(t, "deadlock.txt", b.Bytes())
}

func TestAges(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ns", 1234: "1.2µs", 1234567: "1.2ms", 999 * time.Millisecond: "999ms", 9990 * time.Millisecond: "9.9s",
		59999 * time.Millisecond: "59s", time.Minute: "1m", 3599 * time.Second: "59m59s", time.Hour: "1h",
		25*time.Hour - 1: "1d", 49 * time.Hour: "2d1h", -time.Minute: "-1m",
	} {
		if got := age(d); got != want {
			t.Errorf("the age %v is %s, want %s", d, got, want)
		}
	}
}

// The text has few lines, however many fibers and objects there are, and counts the rest.
func TestTextIsBounded(t *testing.T) {
	s := many(20_000)
	for i := range s.Fibers {
		s.Fibers[i].Name = fmt.Sprint("fiber", i) // all different
	}
	why := make([]snapshot.Explanation, 1000)
	var b bytes.Buffer
	if err := writeText(&b, s, why, true); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "\n"); n > treeLines+objectLines+mostExplained+20 {
		t.Errorf("the text has %d lines", n)
	}
	shown := strings.Count(text, "from main.go") + strings.Count(text, "from many/main.go")
	for _, want := range []string{
		fmt.Sprintf("and %s more, which the page", count(20_000-shown, "fiber")), "and 900 more", "and 100 objects more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text[len(text)-2000:])
		}
	}
}

// A fiber that an explanation names has a line of its own, and a group does not seem to be as old as its oldest fiber.
func TestTextOfNamedFibers(t *testing.T) {
	s, why := payments()
	var b bytes.Buffer
	if err := writeText(&b, s, why, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"    pay[10] #15: waits for the answer of ticket payments, for 2m48s\n",
		"    19 x pay[...]: wait for the answer of ticket payments, the oldest #24 for 2s, the youngest for 100ms\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text has no\n%s\nbut is\n%s", want, b.String())
		}
	}
}

func TestTextOfABlockingCall(t *testing.T) {
	s, why := payments()
	upload := &s.Fibers[2]
	upload.At, upload.Stack = "/src/shop/main.go:8", "goroutine 7 [chan receive]:\nmain.upload()\n\t/src/shop/main.go:8"
	var b bytes.Buffer
	if err := writeText(&b, s, why, true); err != nil {
		t.Fatal(err)
	}
	if want := "upload #3: blocking in chan receive, for 1m, at shop/main.go:8\n"; !strings.Contains(b.String(), want) {
		t.Errorf("the text has no\n%s\nbut is\n%s", want, b.String())
	}
}

// The text says once how long a problem lasts.
func TestTextSaysOnceHowLongAProblemLasts(t *testing.T) {
	s := deadlock()
	for _, e := range []snapshot.Explanation{
		{Text: "a waits to lock mu for 12s; b runs", SaysAge: true},
		{Text: "1 fiber has not ended: flush waits for the event drained"},
	} {
		e.Since = s.Taken.Add(-12 * time.Second)
		var b bytes.Buffer
		if err := writeText(&b, s, []snapshot.Explanation{e}, true); err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(b.String(), e.Text+"\n")
		if got := strings.HasPrefix(strings.TrimSpace(after), "for 12s"); got == e.SaysAge {
			t.Errorf("after %q comes\n%s", e.Text, after)
		}
	}
}

// Goroutines that are not fibers are a part of their own, and are no fibers in any count.
func TestTextOfGoroutines(t *testing.T) {
	s := deadlock()
	for n := range uint64(3) {
		s.Fibers = append(s.Fibers, snapshot.Fiber{
			ID: snapshot.FirstGoroutine + 34 + n, Name: fmt.Sprintf("handler=/pay[%d]", 34+n), State: snapshot.StateGoroutine,
			Since: s.Taken.Add(-time.Duration(n+1) * time.Second), Wait: []snapshot.Wait{{Text: "to send to orders"}},
		})
	}
	s.Objects[0].Holders = []uint64{snapshot.FirstGoroutine + 34, snapshot.FirstGoroutine + 50}
	var with, without bytes.Buffer
	if err := writeText(&with, s, nil, true); err != nil {
		t.Fatal(err)
	}
	s.Fibers = s.Fibers[:len(s.Fibers)-3]
	if err := writeText(&without, s, nil, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n3 goroutines wait for objects of coir\n",
		"\nOther goroutines that wait\n  3 x handler=/pay[...]: wait to send to orders, the oldest goroutine[36] for 3s",
		"held by handler=/pay[34], goroutine[50]",
	} {
		if !strings.Contains(with.String(), want) {
			t.Errorf("the text has no\n%s\nbut is\n%s", want, with.String())
		}
	}
	s.Outside = []snapshot.Fiber{{
		ID: snapshot.FirstGoroutine + 50, Name: "goroutine[50]", State: snapshot.StateOutside, At: "/src/shop/main.go:8",
		Spawned: "/src/shop/main.go:3", Stack: "goroutine 50 [chan receive]:\nmain.main()\n\t/src/shop/main.go:8 +0x1d\n",
	}}
	var outside bytes.Buffer
	if err := writeText(&outside, s, nil, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nOther goroutines that hold objects, and wait for none\n  goroutine[50]: outside in chan receive, at shop/main.go:8; " +
			"from shop/main.go:3\n",
		"held by goroutine[34], goroutine[50] (at shop/main.go:8)",
	} {
		if !strings.Contains(outside.String(), want) {
			t.Errorf("the text has no\n%s\nbut is\n%s", want, outside.String())
		}
	}
	head := func(b *bytes.Buffer) string { return strings.Split(b.String(), "\n")[2] }
	if head(&with) != head(&without) {
		t.Errorf("%s\n%s", head(&with), head(&without))
	}
}

// The words for a pool are those of a pool: its values are lent, and it has permits that nobody sees.
func TestPoolsHaveTheirOwnWords(t *testing.T) {
	s := deadlock()
	s.Fibers[1].Wait = []snapshot.Wait{{Kind: snapshot.WaitRecv, Object: 99, Text: "for a value of conns"}}
	s.Objects = []snapshot.Object{{ID: 99, Kind: "pool", Name: "conns", Len: 2, Cap: 2, Receivers: 1, Sent: 11, Received: 9,
		Holders: []uint64{2, 3}, Oldest: ago(12 * time.Second)}}
	var b bytes.Buffer
	if err := writeText(&b, s, nil, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"worker[0] #2: waits for a value of conns, lent to worker[0] #2, worker[1] #3, for 12s",
		"pool conns #99: 2 of 2 lent to worker[0] #2 (at shop/orders.go:62), worker[1] #3 (at shop/orders.go:71), 1 waits for a value, the oldest for 12s\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text has no\n%s\nbut is\n%s", want, b.String())
		}
	}
}

// Objects without names are one line, and so are the fibers that wait for them. One that a problem is about has a line
// of its own, and the text of a problem is not cut.
func TestTextOfObjectsWithoutNames(t *testing.T) {
	s, why := unnamed()
	var b strings.Builder
	if err := writeText(&b, s, why, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"[all-waiting] " + why[0].Text + "\n",
		"  312 promises without a name: 312 wait, the oldest for 5m12s\n",
		"  promise #1006: 1 waits, the oldest for 6s\n",
		"312 x handler: wait for the promise #1000 or others without a name, the oldest #313 for 5m12s, the youngest for 0ns\n",
		"handler #7: waits for the promise #1006, for 6s\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text has no %q:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "\n"); n > 20 {
		t.Errorf("the text has %d lines", n)
	}
}

// unnamed returns a snapshot with promises that have no names, and a problem with one of them.
func unnamed() (*snapshot.Snapshot, []snapshot.Explanation) {
	s := &snapshot.Snapshot{Taken: noon, Process: snapshot.Process{Program: "shop", Live: 313}}
	for id := range uint64(313) {
		s.Fibers = append(s.Fibers, snapshot.Fiber{ID: id + 1, Name: "handler", Nursery: 1, State: snapshot.StateWaiting,
			Since: ago(time.Duration(id) * time.Second), Waits: 1, Wait: []snapshot.Wait{
				{Kind: snapshot.WaitUse, Object: 1000 + id, Text: fmt.Sprintf("for the promise #%d", 1000+id)}}})
		s.Objects = append(s.Objects, snapshot.Object{ID: 1000 + id, Kind: "promise", Waiters: 1,
			Oldest: ago(time.Duration(id) * time.Second)})
	}
	long := strings.Repeat("handler waits for something else; ", 100) + "the end"
	why := []snapshot.Explanation{{Kind: snapshot.ProblemAllWaiting, Text: long, Fibers: []uint64{7}, Objects: []uint64{1006}}}
	return s, why
}
