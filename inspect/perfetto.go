package inspect

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// This file writes events as Chrome trace JSON, which Perfetto reads.
//
// Each fiber is a thread of the trace. Its slices follow each other: "active", from its start or from the end of a wait
// until the next wait, and then for example "waits to send to orders". A fiber that starts another fiber, or ends its
// wait, has a short slice at that moment, and an arrow leads from it to the slice of the other fiber.
// TestThePageOfATrace loads a trace into a viewer.
//
// Rejected: asynchronous tracks. In this format an arrow begins and ends at slices of threads.
//
// The ring has every event since its oldest one. So the first event of a fiber tells what the fiber did before it: it
// waited if the event is the end of a wait, had not started if the event is its start, and was active otherwise.

// WriteTrace writes the events of the given last time as Chrome trace JSON, or all events if last is 0. Open the file
// at ui.perfetto.dev. It shows the fibers that did something since the oldest event that the recorder has. A fiber that
// has waited all the time is not in it. WriteTrace copies the events, and writes some hundred bytes for each.
func (r *Recorder) WriteTrace(w io.Writer, last time.Duration) error {
	all, now := r.events()
	t := newTracer(all, now, last)
	t.out = bufio.NewWriterSize(w, 32<<10)
	t.write(r.began)
	return t.out.Flush() // it returns the first error
}

// tracer writes events as JSON.
type tracer struct {
	all    []*event // ordered by time
	from   int64    // the time at which the trace begins; earlier events only tell what the fibers do at that time
	now    int64    // the time at which it ends
	tracks map[uint64]*track
	order  []*track
	begun  bool

	out *bufio.Writer
	buf []byte
}

// track is a fiber as a thread.
type track struct {
	thread int
	name   string // with the number of the fiber
	own    bool   // it has events of its own, because the runtime of the fiber is recorded
	named  bool   // the name has been written
	slice  string // the name of its slice; "" if it has not started or has ended
	open   bool   // the beginning of the slice has been written
}

const active = "active"

func newTracer(all []event, now int64, last time.Duration) *tracer {
	t := &tracer{now: now, tracks: map[uint64]*track{}}
	for i := range all {
		t.all = append(t.all, &all[i])
		t.now = max(t.now, all[i].at) // events may be added while they are copied
	}
	slices.SortFunc(t.all, func(a, b *event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
	})
	if t.from = t.now; len(t.all) > 0 {
		t.from = t.all[0].at
	}
	if last > 0 {
		t.from = max(t.from, t.now-int64(last))
	}
	for _, e := range t.all {
		if x := t.track(e.fiber, e.name()); !x.own {
			x.own = true
			switch e.what {
			case parked, ended:
				x.slice = active
			case readied:
				x.slice = "waits"
			case started:
			}
		}
		if e.by != 0 {
			t.track(e.by, e.text())
		}
	}
	return t
}

// track returns the track of a fiber.
func (t *tracer) track(fiber uint64, name string) *track {
	x := t.tracks[fiber]
	if x == nil {
		x = &track{thread: len(t.order) + 1, name: withNumber(name, fiber)}
		t.tracks[fiber] = x
		t.order = append(t.order, x)
	}
	return x
}

func (t *tracer) write(began time.Time) {
	from := began.Add(time.Duration(t.from)).UTC().Format(time.RFC3339Nano)
	t.buf = append(t.buf, `{"displayTimeUnit":"ns","otherData":{"from":`...)
	t.buf = append(appendText(t.buf, from), "},\n\"traceEvents\":[\n"...)
	t.metadata("process_name", 0, filepath.Base(os.Args[0]))
	for _, e := range t.all {
		t.event(e)
	}
	t.begin()
	for _, x := range t.order {
		t.end(x, t.now, false)
	}
	t.buf = append(t.buf, "\n]}\n"...)
	t.flush()
}

// event writes an event. If the event is earlier than the trace, event only updates the track.
func (t *tracer) event(e *event) {
	shown := e.at >= t.from
	if shown {
		t.begin()
	}
	x := t.tracks[e.fiber]
	t.end(x, e.at, e.failed)
	switch e.what {
	case started, readied:
		x.slice = active
	case parked:
		x.slice = "waits " + e.text()
	case ended:
		x.slice = ""
	}
	if !shown {
		return
	}
	if e.by == 0 {
		t.open(x, e.at)
		return
	}
	does := "starts "
	if e.what == readied {
		does = "ends the wait of "
	}
	by := t.tracks[e.by]
	t.slice('B', by, e.at, does+x.name)
	t.arrow('s', by, e)
	t.slice('E', by, e.at, "")
	t.open(x, e.at)
	t.arrow('f', x, e)
}

// begin opens the slices at the beginning of the trace, once.
func (t *tracer) begin() {
	if !t.begun {
		t.begun = true
		for _, x := range t.order {
			t.open(x, t.from)
		}
	}
}

// open begins the slice of a track.
func (t *tracer) open(x *track, at int64) {
	if x.slice != "" && !x.open {
		t.slice('B', x, at, x.slice)
		x.open = true
	}
}

// end ends the slice of a track, if its beginning was written.
func (t *tracer) end(x *track, at int64, failed bool) {
	if !x.open {
		return
	}
	t.slice('E', x, at, "")
	if x.open = false; failed {
		t.buf = append(t.buf[:len(t.buf)-1], `,"args":{"failed":true}}`...)
	}
}

// slice writes the beginning (B) or the end (E) of a slice.
func (t *tracer) slice(phase byte, x *track, at int64, name string) {
	t.entry(phase, x, at)
	t.buf = appendSome(t.buf, `,"name":`, name)
	t.buf = append(t.buf, '}')
}

// arrow writes the beginning (s) or the end (f) of an arrow, at the newest slice of the track.
func (t *tracer) arrow(phase byte, x *track, e *event) {
	t.entry(phase, x, e.at)
	t.buf = append(t.buf, `,"name":"wake","cat":"coir","id":`...)
	t.buf = strconv.AppendUint(t.buf, e.number, 10)
	if phase == 'f' {
		t.buf = append(t.buf, `,"bp":"e"`...)
	}
	t.buf = append(t.buf, '}')
}

// entry writes the first fields of an event.
func (t *tracer) entry(phase byte, x *track, at int64) {
	if !x.named {
		x.named = true
		t.next()
		t.metadata("thread_name", x.thread, x.name)
	}
	t.next()
	t.buf = append(t.buf, `{"ph":"`...)
	t.buf = append(t.buf, phase)
	t.buf = append(t.buf, `","pid":1,"tid":`...)
	t.buf = strconv.AppendInt(t.buf, int64(x.thread), 10)
	t.buf = append(t.buf, `,"ts":`...)
	at -= t.from
	t.buf = strconv.AppendInt(t.buf, at/1000, 10) // microseconds
	t.buf = append(t.buf, '.', byte('0'+at%1000/100), byte('0'+at%100/10), byte('0'+at%10))
}

func (t *tracer) metadata(what string, thread int, name string) {
	t.buf = append(append(t.buf, `{"ph":"M","pid":1,"tid":`...), strconv.Itoa(thread)...)
	t.buf = appendText(append(t.buf, `,"name":`...), what)
	t.buf = append(appendText(append(t.buf, `,"args":{"name":`...), name), "}}"...)
}

// next begins another event.
func (t *tracer) next() {
	t.buf = append(t.buf, ",\n"...)
	t.flush()
}

func (t *tracer) flush() {
	_, _ = t.out.Write(t.buf) // WriteTrace returns the error
	t.buf = t.buf[:0]
}

// withNumber returns the name of a fiber with its number.
func withNumber(name string, fiber uint64) string { return name + " #" + strconv.FormatUint(fiber, 10) }
