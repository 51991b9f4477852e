package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/trace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// logged is a place for log records.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// record is a log record of a Watch.
type record struct {
	Level, Msg, Kind, Text, Error string
	Certain                       bool
	Fibers, Objects               []string
	Files                         []string
	Since                         time.Time
}

// take returns the records, and forgets them.
func (l *logged) take(t *testing.T) (all []record) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	l.text.Reset()
	return all
}

// An explanation is logged only if it was not reported last time.
func TestWhatIsNewIsLogged(t *testing.T) {
	full := func(text string, fibers ...uint64) snapshot.Explanation {
		return snapshot.Explanation{Kind: snapshot.ProblemChannelFull, Text: text, Fibers: fibers, Objects: []uint64{7}}
	}
	calls := func(fiber uint64) snapshot.Explanation {
		return snapshot.Explanation{Kind: snapshot.ProblemBlockingCalls, Fibers: []uint64{fiber},
			Text: fmt.Sprintf("%d fibers hold their workers, for %ds", fiber, fiber)}
	}
	cycle := snapshot.Explanation{Kind: snapshot.ProblemDeadlock, Text: "a cycle", Fibers: []uint64{1, 2}}
	certain := cycle
	certain.Certain = true
	looks := []struct {
		why  []snapshot.Explanation
		want string
	}{
		{nil, ""},
		{[]snapshot.Explanation{full("orders is full", 1)}, "channel-full"},
		{[]snapshot.Explanation{full("orders is full", 2, 3)}, ""}, // the same channel
		{[]snapshot.Explanation{full("it is still full", 3), cycle}, "deadlock"},
		{[]snapshot.Explanation{certain, full("it is still full", 3)}, "deadlock"}, // it is certain now
		{[]snapshot.Explanation{cycle}, ""},
		{nil, ""},
		{[]snapshot.Explanation{{Kind: snapshot.ProblemChannelFull, Fibers: []uint64{1, 2}, Objects: []uint64{9}}}, "channel-full"},
		{[]snapshot.Explanation{full("1 receives from the other full channel", 1)}, "channel-full"},
		{nil, ""},
		{[]snapshot.Explanation{certain, full("again", 3)}, "deadlock channel-full"},
		{[]snapshot.Explanation{calls(10)}, "blocking-calls"},
		{[]snapshot.Explanation{calls(11)}, ""}, // the text differs in numbers only
		{[]snapshot.Explanation{calls(12), full("7 is full", 4)}, "channel-full"},
		{[]snapshot.Explanation{{Kind: snapshot.ProblemChannelFull, Text: "8 is full", Objects: []uint64{8}}}, "channel-full"},
		{[]snapshot.Explanation{calls(12), {Kind: snapshot.ProblemStarved, Text: "5 fibers", Fibers: []uint64{12}}}, "blocking-calls starved"},
	}
	var l logged
	source := watched{Source: &fake{s: deadlock()}}
	w := newWatcher(&settings{logger: l.logger()})
	for i, look := range looks {
		w.explain = func(_, _ *snapshot.Snapshot) []snapshot.Explanation { return look.why }
		w.look(t.Context(), &source)
		var got []string
		for _, r := range l.take(t) {
			got = append(got, r.Kind)
		}
		if strings.Join(got, " ") != look.want {
			t.Errorf("look %d logs %v, want %s", i, got, look.want)
		}
	}
}

// A problem gets the text with lines that is about it, although another problem has a fiber in common with it.
func TestTextsOfTheSameProblem(t *testing.T) {
	full := func(text string, object uint64, fibers ...uint64) snapshot.Explanation {
		return snapshot.Explanation{Kind: snapshot.ProblemChannelFull, Text: text, Fibers: fibers, Objects: []uint64{object}}
	}
	why := []snapshot.Explanation{full("priced", 3, 1, 2), full("stored", 4, 2, 5), full("gone", 6, 7)}
	reword(why, []snapshot.Explanation{full("stored, at main.go:9", 4, 2, 5), full("priced, at main.go:7", 3, 1, 2)})
	if why[0].Text != "priced, at main.go:7" || why[1].Text != "stored, at main.go:9" || why[2].Text != "gone" {
		t.Errorf("the texts are %+v", why)
	}
}

// The log names fibers and objects, each once.
func TestWatchNamesFibers(t *testing.T) {
	var l logged
	source := watched{Source: &fake{s: deadlock()}}
	w := newWatcher(&settings{logger: l.logger()})
	w.explain = func(_, _ *snapshot.Snapshot) []snapshot.Explanation {
		return []snapshot.Explanation{{
			Kind: snapshot.ProblemDeadlock, Fibers: []uint64{2, 3, 2, 9999, snapshot.FirstGoroutine + 5}, Objects: []uint64{11, 9998},
		}}
	}
	for range 4 {
		w.look(t.Context(), &source)
	}
	all := l.take(t)
	if len(all) != 1 {
		t.Fatalf("%d records", len(all))
	}
	if want := []string{"worker[0] #2", "worker[1] #3", "#9999", "goroutine[5]"}; !slices.Equal(all[0].Fibers, want) {
		t.Errorf("fibers are %q, not %q", all[0].Fibers, want)
	}
	if got := all[0].Objects; len(got) != 2 || !strings.HasSuffix(got[0], " #11") || got[1] != "#9998" {
		t.Errorf("objects are %q", got)
	}
}

// A long stack is cut after a whole line.
func TestStacksAreCutAfterLines(t *testing.T) {
	f := snapshot.Fiber{Stack: strings.Repeat("main.work()\n\t/src/main.go:7 +0x1\n", stackBytes/20)}
	trim(&f)
	if !strings.HasSuffix(f.Stack, "\n…") || strings.Contains(f.Stack, "+0x…") || len(f.Stack) > stackBytes+len("…") {
		t.Errorf("the stack ends with %q", f.Stack[len(f.Stack)-20:])
	}
	f.Stack = strings.Repeat("x", stackBytes+1)
	if trim(&f); f.Stack != "…" {
		t.Errorf("one long line becomes %d bytes", len(f.Stack))
	}
}

// Names and texts may contain anything, and there may be many.
func TestWatchIsBounded(t *testing.T) {
	var l logged
	source := watched{Source: &fake{s: deadlock()}}
	w := newWatcher(&settings{logger: l.logger(), dir: t.TempDir()})
	w.explain = func(_, _ *snapshot.Snapshot) (why []snapshot.Explanation) {
		for i := range 1000 {
			why = append(why, snapshot.Explanation{
				Kind: snapshot.Problem(strings.Repeat("../", 1000) + fmt.Sprint(rune('a'+i))), Text: strings.Repeat("\x1b\xff", 1000),
				Fibers: make([]uint64, 200), Objects: make([]uint64, 200),
			})
		}
		return why
	}
	for range 3 {
		w.look(t.Context(), &source)
	}
	all := l.take(t)
	if len(all) == 0 || len(all) > mostExplained {
		t.Fatalf("%d records", len(all))
	}
	for _, r := range all {
		if len(r.Kind) > nameBytes+10 || len(r.Text) > 4*problemBytes || len(r.Fibers) > mostListed ||
			len(r.Objects) > mostListed {
			t.Fatalf("a record is too long: %.1000v", r)
		}
		if len(r.Files) != 1 || filepath.Dir(r.Files[0]) != w.dir || !strings.Contains(r.Files[0], "-other-") {
			t.Fatalf("the files are %q", r.Files)
		}
	}
}

// Watch writes a set of files each time it logs something, and keeps the last ten sets. It does not touch other files.
func TestWatchWritesFiles(t *testing.T) {
	tracing.Lock()
	defer tracing.Unlock()
	flight := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: time.Second})
	if err := flight.Start(); err != nil {
		t.Fatal(err)
	}
	defer flight.Stop()
	rt, r := recorded(t, 100)
	if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		return n.Go("worker", func(ctx context.Context) error { return coir.Yield(ctx) }).Wait(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	others := []string{"coir.json", "coir-20261118.json", "coir-20261118-120000.000000-deadlock-1.txt", "notes.trace"}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left := "coir-20001118-120000.000000-deadlock-1.trace.part" // of a process that was killed
	for _, name := range append([]string{left}, others...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var l logged
	source := watched{Source: &fake{s: deadlock(), stack: func(uint64) string { return "main.work()" }}}
	w := newWatcher(&settings{logger: l.logger(), dir: dir, flight: flight, recorder: r})
	var last record
	for i := range 2 * mostSets {
		w.explain = func(_, _ *snapshot.Snapshot) []snapshot.Explanation {
			return []snapshot.Explanation{
				{Kind: snapshot.ProblemDeadlock, Text: "a cycle", Fibers: []uint64{uint64(i)}, Certain: true},
				{Kind: snapshot.ProblemAllWaiting, Text: "all wait", Fibers: []uint64{uint64(i)}},
			}
		}
		source.told = nil
		for range 3 { // the first has no earlier snapshot; the third finds nothing new
			w.look(t.Context(), &source)
		}
		all := l.take(t)
		if len(all) != 2 || len(all[0].Files) != 3 || !slices.Equal(all[0].Files, all[1].Files) || all[0].Error != "" {
			t.Fatalf("the log has %+v", all)
		}
		last = all[0]
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3*mostSets+len(others) {
		t.Errorf("the directory has %v", entries)
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	read := func(file string) []byte {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
		return text
	}
	d, err := Read(bytes.NewReader(read(last.Files[0])))
	if err != nil || len(d.Snapshot.Fibers) != 112 || d.Snapshot.Fibers[1].Stack != "main.work()" ||
		len(d.Explanations) != 2 {
		t.Errorf("the dump has %+v: %v", d, err)
	}
	if text := parsed(t, read(last.Files[1])); !strings.Contains(text, "Sync ") {
		t.Errorf("the execution trace has %.300s", text)
	}
	if s, err := readTrace(read(last.Files[2])); err != nil || !s.has("worker #", active) {
		t.Errorf("the events have %+v: %v", s, err)
	}
}

// If a file cannot be written, the log says so, and no part of the file is left.
func TestFilesThatCannotBeWritten(t *testing.T) {
	var l logged
	dir := t.TempDir()
	source := watched{Source: &fake{s: deadlock()}}
	w := newWatcher(&settings{logger: l.logger(), dir: dir, flight: trace.NewFlightRecorder(trace.FlightRecorderConfig{})})
	w.explain = func(_, _ *snapshot.Snapshot) []snapshot.Explanation {
		return []snapshot.Explanation{{Kind: snapshot.ProblemDeadlock, Fibers: []uint64{1}}}
	}
	w.look(t.Context(), &source)
	w.look(t.Context(), &source)
	all := l.take(t)
	if len(all) != 1 || len(all[0].Files) != 1 || !strings.Contains(all[0].Error, ".trace is not written: ") {
		t.Errorf("with a flight recorder that does not run the log has %+v", all)
	}
	large := filepath.Join(dir, "large")
	err := writeFile(large, func(to io.Writer) (err error) {
		for n := 0; err == nil && n < 2*mostBytes; n += 1 << 20 {
			_, err = to.Write(make([]byte, 1<<20))
		}
		return err
	})
	if !errors.Is(err, errTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	if err := Watch(t.Context(), WithDir(filepath.Join(all[0].Files[0], "below"))); err == nil ||
		!strings.HasPrefix(err.Error(), "inspect: ") {
		t.Errorf("Watch in a directory that cannot be made returns %v", err)
	}
	if err := Watch(t.Context(), WithInterval(-1)); err == nil || !strings.HasPrefix(err.Error(), "inspect: ") {
		t.Errorf("Watch with a negative interval returns %v", err)
	}
}

// In a fiber, Watch ends with the fiber's context, and does not take a worker from other fibers.
func TestWatchInAFiber(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rt := coir.NewRuntime(coir.WithWorkers(1))
	watched := errors.New("not watched")
	_ = rt.Run(ctx, func(_ context.Context, n *coir.Nursery) error { // it returns the cause of the cancel
		n.Go("watch", func(ctx context.Context) error {
			watched = Watch(ctx, WithSource(rt))
			return watched
		})
		n.Go("work", func(context.Context) error {
			cancel()
			return nil
		})
		return nil
	})
	if watched != nil {
		t.Error(watched)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
