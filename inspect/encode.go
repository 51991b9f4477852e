package inspect

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coir-go/coir/snapshot"
)

// version is the version of the JSON. It changes if a reader of the old form would misread the new one. It does not
// change if something is added.
const version = 1

// Dump is the content of snapshot.json and of a dump file.
type Dump struct {
	Snapshot     *snapshot.Snapshot
	Explanations []snapshot.Explanation // what was wrong at that time
}

// wire is a Dump as JSON. The encoder writes the fibers first, because it gets them while the snapshot is taken.
type wire struct {
	Version  int `json:"version"`  // the version of this form: 1
	Runtimes int `json:"runtimes"` // the number of runtimes that the handler shows; of=0, of=1 and so on select one
	snapshot.Snapshot
	Explanations []explanation `json:"explanations"`        // what is wrong
	NoProblem    string        `json:"noProblem,omitempty"` // if nothing is: the result of snapshot.NoProblem
}

// explanation is a snapshot.Explanation as JSON.
type explanation struct {
	Kind    snapshot.Problem `json:"kind"`
	Certain bool             `json:"certain"` // false: the explanation is likely
	Text    string           `json:"text"`
	Fibers  []uint64         `json:"fibers,omitempty"`  // the fibers concerned, the first 100
	Omitted int              `json:"omitted,omitempty"` // the number of other fibers concerned
	Objects []uint64         `json:"objects,omitempty"` // the objects concerned
	Since   time.Time        `json:"since,omitzero"`
	SaysAge bool             `json:"saysAge,omitempty"` // the text has the time since then, or the age of the oldest wait
}

// Read reads the JSON that a handler has served as snapshot.json or dump.
func Read(r io.Reader) (*Dump, error) {
	var w wire
	if err := json.NewDecoder(r).Decode(&w); err != nil {
		return nil, fmt.Errorf("inspect: not a dump: %w", err)
	}
	switch {
	case w.Version == 0:
		return nil, errors.New("inspect: not a dump: its version is missing")
	case w.Version > version:
		return nil, fmt.Errorf("inspect: the dump has version %d, and this program reads %d: use a newer coir",
			w.Version, version)
	}
	d := &Dump{Snapshot: &w.Snapshot}
	for _, e := range w.Explanations {
		d.Explanations = append(d.Explanations, snapshot.Explanation{
			Kind: e.Kind, Certain: e.Certain, Text: e.Text, Fibers: e.Fibers, Objects: e.Objects, Since: e.Since,
			SaysAge: e.SaysAge,
		})
	}
	return d, nil
}

// encode takes a snapshot and writes it as JSON. It returns the snapshot with the first of its fibers, which it keeps
// in the room.
func encode(w io.Writer, source Source, most int, stacks bool, runtimes int, in *room,
	explain func(*snapshot.Snapshot) []snapshot.Explanation) (*snapshot.Snapshot, error) {
	buffered := bufio.NewWriterSize(w, 32<<10)
	out := writer{to: buffered}
	out.text(fmt.Sprintf(`{"version":%d,"runtimes":%d,"fibers":[`, version, runtimes))
	n := 0
	var past room // for fibers that are written but not kept
	c := collect{most: most, each: func(f *snapshot.Fiber) bool {
		to := in
		if n >= mostShown {
			to = &past
			past.reset()
		}
		one := to.add(f)
		if !stacks {
			one.Stack = ""
		}
		if n > 0 {
			out.text(",\n")
		}
		out.fiber(one)
		one.Stack = ""
		n++
		return out.err == nil
	}}
	s := c.from(source, stacks)
	in.seen.look(s)
	out.text("]")
	in.sort()
	seen := *s
	seen.Fibers, seen.Omitted = in.fibers, s.Omitted+n-len(in.fibers)
	why := explain(&seen)
	out.rest(s)
	out.explanations(why, &seen)
	out.text("}\n")
	if out.err == nil {
		out.err = buffered.Flush()
	}
	return &seen, out.err
}

// writeDump writes a dump as JSON.
func writeDump(w io.Writer, d *Dump) error {
	out := writer{to: w}
	out.text(fmt.Sprintf(`{"version":%d,"runtimes":1,"fibers":[`, version))
	for i := range d.Snapshot.Fibers {
		if i > 0 {
			out.text(",\n")
		}
		one := trimmed(&d.Snapshot.Fibers[i])
		out.fiber(&one)
	}
	out.text("]")
	s := *d.Snapshot
	trimRest(&s)
	out.rest(&s)
	out.explanations(d.Explanations, &s)
	out.text("}\n")
	return out.err
}

// writer writes JSON, until the first error.
type writer struct {
	to  io.Writer
	buf []byte
	err error
}

func (w *writer) fiber(f *snapshot.Fiber) {
	if w.err == nil {
		w.buf = appendFiber(w.buf[:0], f)
		_, w.err = w.to.Write(w.buf)
	}
}

func (w *writer) text(s string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.to, s)
	}
}

func (w *writer) value(v any) {
	if w.err != nil {
		return
	}
	b, err := json.Marshal(v) // it escapes < and >, so that no text ends a script element
	if err != nil {
		w.err = err
		return
	}
	_, w.err = w.to.Write(b)
}

func (w *writer) field(name string, v any) {
	w.text(",\n\"" + name + "\":")
	w.value(v)
}

// rest writes a snapshot without its fibers.
func (w *writer) rest(s *snapshot.Snapshot) {
	w.field("taken", s.Taken)
	w.field("took", s.Took)
	w.field("process", s.Process)
	list(w, "nurseries", s.Nurseries)
	list(w, "objects", s.Objects)
	list(w, "workers", s.Workers)
	if len(s.Outside) > 0 {
		list(w, "outside", s.Outside)
	}
	if s.Omitted > 0 {
		w.field("omitted", s.Omitted)
	}
}

// explanations writes what is wrong with a snapshot.
func (w *writer) explanations(all []snapshot.Explanation, s *snapshot.Snapshot) {
	var shown []explanation
	for _, e := range firstOf(all, mostExplained) {
		shown = append(shown, explanation{
			Kind: snapshot.Problem(cut(string(e.Kind), nameBytes)), Certain: e.Certain, Text: cut(e.Text, problemBytes),
			Fibers: firstOf(e.Fibers, mostListed), Omitted: max(0, len(e.Fibers)-mostListed),
			Objects: firstOf(e.Objects, mostListed), Since: e.Since, SaysAge: e.SaysAge,
		})
	}
	list(w, "explanations", shown)
	if len(shown) == 0 {
		w.field("noProblem", snapshot.NoProblem(s))
	}
}

// list writes a list, one element on a line.
func list[T any](w *writer, name string, all []T) {
	w.text(",\n\"" + name + "\":[")
	for i := range all {
		if i > 0 {
			w.text(",\n")
		}
		w.value(&all[i])
	}
	w.text("]")
}
