package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

const (
	everyLook = 10 * time.Second
	mostSets  = 10       // the most sets of files in a directory
	mostBytes = 32 << 20 // the most bytes of a file

	// mostStacks is the most fibers of a dump with stacks, because the program stops while stacks are printed.
	mostStacks = 1000
	mostDumped = 10_000 // the same for goroutines
)

// WithInterval sets how often [Watch] looks, in place of every ten seconds.
func WithInterval(d time.Duration) Option {
	return func(o *settings) { o.interval = d }
}

// WithLogger sets the logger of [Watch], in place of [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return func(o *settings) { o.logger = l }
}

// WithDir makes [Watch] write files to a directory when it logs something: a dump that [Read] reads, and the content of
// the recorders of [WithFlightRecorder] and [WithRecorder]. The dump has stacks if there are at most 1,000 fibers. The
// names of the files begin with coir- and the time, in UTC. Watch keeps the last ten sets of files in the directory,
// including sets of other processes, and removes older ones. It does not write a file that would have more than 32 MB.
func WithDir(dir string) Option {
	return func(o *settings) { o.dir = dir }
}

// WithFlightRecorder gives [Watch] a flight recorder, whose content Watch writes to the directory of [WithDir]. The
// program starts and stops the flight recorder.
func WithFlightRecorder(r *trace.FlightRecorder) Option {
	return func(o *settings) { o.flight = r }
}

// Watch logs what is wrong with the default runtime, or with the sources of [WithSource]: a deadlock, a fiber that
// never yields, a channel that stays full, and whatever else [snapshot.Explain] reports. It logs each problem once, as
// a warning, or as an error if it is certain. It logs a problem again if it has ended and comes back. The attributes
// are kind, certain, text, fibers and objects (names and numbers of the first 100), since, and files: see [WithDir].
//
// Watch returns nil when ctx ends, and an error if it cannot make the directory. It can be called in a goroutine, and
// in a fiber, which then waits. Its snapshots do not need the workers that it watches, and in a goroutine it needs no
// worker at all:
//
//	go inspect.Watch(ctx)
//
// Every ten seconds Watch takes two snapshots, each of which takes about a microsecond for each fiber. It keeps two, of
// at most 100,000 fibers with about 500 bytes each. So it logs a deadlock that began just before, and that client
// timeouts soon break; and a lock that has the same holder in two looks, although no client waits for so long. It does
// not log what comes and goes between two looks: if problems last for a few seconds only, look every second, by
// [WithInterval].
//
// If there is something to log, and there are at most 1,000 fibers and 10,000 goroutines, Watch takes another snapshot,
// with stacks, so that the text has the line where each fiber is. That stops the program for about 20 µs for each
// goroutine.
func Watch(ctx context.Context, opts ...Option) error {
	o := settings{interval: everyLook}
	for _, opt := range opts {
		opt(&o)
	}
	// A goroutine, which needs no worker, takes the snapshots while the caller waits for a cancel. If the fiber of the
	// caller ran them in coir.Blocking, it would be in a call that blocks, and Watch would log that.
	wait, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	var err error
	var panicked any
	go func() {
		defer close(ended)
		defer stop()
		defer func() { panicked = recover() }()
		err = newWatcher(&o).run(ctx)
	}()
	_ = coir.WaitCancel(wait) // it also returns if run returns early
	_, _ = coir.Blocking(ctx, func() (struct{}, error) {
		<-ended
		return struct{}{}, nil
	})
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// watcher is a Watch.
type watcher struct {
	*settings
	sources []watched
	explain func(earlier, later *snapshot.Snapshot) []snapshot.Explanation
}

// watched is one source.
type watched struct {
	Source
	kept
	told []snapshot.Explanation // what was wrong last time
}

func newWatcher(o *settings) *watcher { return &watcher{settings: o, explain: snapshot.Explain} }

func (w *watcher) run(ctx context.Context) error {
	if w.interval <= 0 {
		return fmt.Errorf("inspect: Watch with the interval %v: it must be positive", w.interval)
	}
	if w.dir != "" {
		if err := os.MkdirAll(w.dir, 0o700); err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
	}
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	defer w.end()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		w.begin() // not before: a program may call coir.Configure after it has called Watch
		for i := range w.sources {
			w.look(ctx, &w.sources[i])
		}
	}
}

// begin finds the sources, once.
func (w *watcher) begin() {
	if len(w.sources) > 0 {
		return
	}
	of := w.of
	if len(of) == 0 {
		of = []Source{coir.Default()}
	}
	for _, of := range of {
		w.sources = append(w.sources, watched{Source: of})
	}
}

// end forgets what was seen of the sources.
func (w *watcher) end() {
	for i := range w.sources {
		w.sources[i].leave()
	}
}

// look takes a snapshot of a source, and logs what is wrong now and was not wrong last time.
func (w *watcher) look(ctx context.Context, of *watched) {
	if of.prepare(ctx, of.Source, brief) != nil {
		return // ctx has ended
	}
	later := (&collect{most: mostShown, room: &of.now}).from(of.Source, false)
	why := firstOf(of.explain(later, w.explain), mostExplained)
	news := unlike(why, of.told)
	of.told = why // without lines, as those of the next look
	if len(news) > 0 && later.Process.Live <= mostStacks && runtime.NumGoroutine() <= mostDumped {
		withLines := of.explain((&collect{most: mostShown, room: &room{seen: of.now.seen}}).from(of.Source, true),
			w.explain)
		why = slices.Clone(why)
		reword(why, withLines)
		reword(news, withLines)
	}
	of.keep(later)
	if len(news) == 0 {
		return
	}
	var files []string
	var failed error
	if w.dir != "" {
		files, failed = w.write(of, later.Process.Live, why, string(news[0].Kind))
	}
	for _, e := range news {
		w.log(ctx, later, &e, files, failed)
	}
}

// reword gives explanations the texts of those of a later snapshot: of the same kind, and with the most fibers and
// objects in common.
func reword(why, later []snapshot.Explanation) {
	for i := range why {
		one, most := &why[i], 0
		for _, e := range later {
			if e.Kind != one.Kind {
				continue
			}
			if n := 2*common(one.Objects, e.Objects) + common(one.Fibers, e.Fibers); n > most {
				one.Text, most = e.Text, n
			}
		}
	}
}

// common returns how many numbers of a are in b.
func common(a, b []uint64) (n int) {
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}

// log logs an explanation of a snapshot.
func (w *watcher) log(ctx context.Context, s *snapshot.Snapshot, e *snapshot.Explanation, files []string,
	failed error) {
	attrs := []slog.Attr{
		slog.String("kind", cut(string(e.Kind), nameBytes)), slog.Bool("certain", e.Certain),
		slog.String("text", cut(e.Text, problemBytes)), slog.Any("fibers", fiberNames(s, firstOf(e.Fibers, mostListed))),
		slog.Any("objects", objectNames(s, firstOf(e.Objects, mostListed))),
	}
	if !e.Since.IsZero() {
		attrs = append(attrs, slog.Time("since", e.Since))
	}
	if len(files) > 0 {
		attrs = append(attrs, slog.Any("files", files))
	}
	if failed != nil {
		attrs = append(attrs, slog.String("error", failed.Error()))
	}
	level := slog.LevelWarn
	if e.Certain {
		level = slog.LevelError
	}
	l := w.logger
	if l == nil {
		l = slog.Default()
	}
	l.LogAttrs(ctx, level, "inspect: "+cut(string(e.Kind), nameBytes), attrs...)
}

// fiberNames returns the names and numbers of fibers, each once.
func fiberNames(s *snapshot.Snapshot, ids []uint64) []string {
	names := map[uint64]string{}
	for i := range s.Fibers {
		if f := &s.Fibers[i]; slices.Contains(ids, f.ID) {
			names[f.ID] = numberedName(f.Name, f.ID)
		}
	}
	return each(ids, func(id uint64) string { return cmp.Or(names[id], number(id)) })
}

// objectNames returns the kinds, names and numbers of objects, each once.
func objectNames(s *snapshot.Snapshot, ids []uint64) []string {
	names := map[uint64]string{}
	for i := range s.Objects {
		o := &s.Objects[i]
		names[o.ID] = strings.TrimSpace(o.Kind+" "+o.Name) + " " + number(o.ID)
	}
	return each(ids, func(id uint64) string { return cmp.Or(names[id], number(id)) })
}

// each returns the texts of numbers, each once.
func each(ids []uint64, text func(uint64) string) []string {
	all := make([]string, 0, len(ids))
	for _, id := range ids {
		if one := cut(text(id), nameBytes); !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// unlike returns the explanations not reported last time. An explanation was reported if one of the same kind had a
// fiber or an object in common with it; if the kind is about one object, such as a full channel, it must be the object.
// For the kinds in passing it is enough that the texts differ only in numbers. An explanation that has become certain
// is new.
func unlike(why, told []snapshot.Explanation) (news []snapshot.Explanation) {
	type marks struct {
		fibers, objects map[uint64]bool // true: of a certain explanation
		texts           map[string]bool
	}
	known := map[snapshot.Problem]*marks{}
	for _, e := range told {
		m := known[e.Kind]
		if m == nil {
			m = &marks{map[uint64]bool{}, map[uint64]bool{}, map[string]bool{}}
			known[e.Kind] = m
		}
		for _, id := range e.Fibers {
			m.fibers[id] = m.fibers[id] || e.Certain
		}
		for _, id := range e.Objects {
			m.objects[id] = m.objects[id] || e.Certain
		}
		text := withoutNumbers(e.Text)
		m.texts[text] = m.texts[text] || e.Certain
	}
	for _, e := range why {
		m := known[e.Kind]
		ofFibers := !slices.Contains(ofObject, e.Kind) || len(e.Objects) == 0
		if m == nil || !(ofFibers && knows(m.fibers, e.Certain, e.Fibers...)) && !knows(m.objects, e.Certain, e.Objects...) &&
			!(slices.Contains(passing, e.Kind) && knows(m.texts, e.Certain, withoutNumbers(e.Text))) {
			news = append(news, e)
		}
	}
	return news
}

// passing lists the kinds that concern other fibers and objects each time, although the cause is the same.
var passing = []snapshot.Problem{snapshot.ProblemStarved, snapshot.ProblemBlockingCalls, snapshot.ProblemTicketOld}

// ofObject lists the kinds that are about one object: a fiber may have a part in several such problems.
var ofObject = []snapshot.Problem{
	snapshot.ProblemChannelFull, snapshot.ProblemExhausted, snapshot.ProblemLockHeld, snapshot.ProblemTrouble,
}

// knows reports whether one of the keys is in a map of marks. If certain is set, only marks of certain explanations
// count.
func knows[K comparable](marks map[K]bool, certain bool, keys ...K) bool {
	return slices.ContainsFunc(keys, func(k K) bool {
		was, ok := marks[k]
		return ok && (was || !certain)
	})
}

func withoutNumbers(text string) string { return digits.ReplaceAllString(text, "0") }

var digits = regexp.MustCompile(`[0-9]+`)

// write writes a set of files about a source with the given number of live fibers. It returns the names of the complete
// files, and an error that says why others are missing.
func (w *watcher) write(of *watched, live int64, why []snapshot.Explanation, kind string) (files []string, err error) {
	name := setName(time.Now(), kind)
	add := func(ext string, write func(io.Writer) error) {
		file := filepath.Join(w.dir, name+ext)
		if failed := writeFile(file, write); failed != nil {
			err = errors.Join(err, failed)
			return
		}
		files = append(files, file)
	}
	stacks := live <= mostStacks
	add(".json", func(to io.Writer) error {
		_, err := encode(to, of.Source, mostShown, stacks, 1, &room{seen: of.now.seen},
			func(*snapshot.Snapshot) []snapshot.Explanation { return why })
		return err
	})
	if w.flight != nil {
		add(".trace", func(to io.Writer) error {
			_, err := w.flight.WriteTo(to)
			return err
		})
	}
	if w.recorder != nil {
		add(".events.json", func(to io.Writer) error { return w.recorder.WriteTrace(to, 0) })
	}
	return files, errors.Join(err, removeOld(w.dir))
}

// setName returns the name of a set of files, without an extension. The names sort by time.
func setName(at time.Time, kind string) string {
	if !validKind.MatchString(kind) {
		kind = "other"
	}
	return at.UTC().Format("coir-20060102-150405.000000-") + kind + "-" + strconv.Itoa(os.Getpid())
}

var (
	validKind = regexp.MustCompile(`^[a-z][a-z-]{0,30}$`)
	validFile = regexp.MustCompile(`^(coir-\d{8}-\d{6}\.\d{6}-[a-z][a-z-]{0,30}-\d+)\.(json|trace|events\.json)(\.part)?$`)
)

// writeFile writes a file. The file has another name until it is complete.
func writeFile(name string, write func(io.Writer) error) error {
	part := name + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	err = write(&capped{f, mostBytes})
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		_ = os.Remove(part)
		return fmt.Errorf("inspect: %s is not written: %w", filepath.Base(name), err)
	}
	return nil
}

// capped is a writer that fails before it has written more than left bytes.
type capped struct {
	io.Writer
	left int
}

var errTooLarge = errors.New("it would have more than 32 MB")

func (c *capped) Write(b []byte) (int, error) {
	if len(b) > c.left {
		return 0, errTooLarge
	}
	c.left -= len(b)
	return c.Writer.Write(b)
}

// removeOld removes the oldest sets of files in a directory, so that at most mostSets are left.
func removeOld(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	var sets []string
	files := map[string][]string{}
	for _, e := range entries {
		if m := validFile.FindStringSubmatch(e.Name()); m != nil && e.Type().IsRegular() {
			if len(files[m[1]]) == 0 {
				sets = append(sets, m[1])
			}
			files[m[1]] = append(files[m[1]], e.Name())
		}
	}
	slices.Sort(sets)
	for _, set := range sets[:max(0, len(sets)-mostSets)] {
		for _, name := range files[set] {
			if failed := os.Remove(filepath.Join(dir, name)); failed != nil && !errors.Is(failed, os.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("inspect: %w", failed))
			}
		}
	}
	return err
}
