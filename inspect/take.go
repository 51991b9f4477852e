package inspect

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// A snapshot is not written to the network while it is taken: a slow reader would make it take long, and its parts
// would be from different times. Instead it is encoded into a document, fiber by fiber, and compressed to about a
// twentieth. All requests of the next moment share the document. So the memory does not depend on the number of
// readers:
//
//   - At most one snapshot is taken at a time.
//   - A document is made only while fewer than mostHeld documents are being read. Otherwise a request shares the newest
//     document of its kind, and is refused if there is none. So there are at most mostHeld documents and the newest of
//     each kind.
//
// TestSlowReadersHoldFewSnapshots checks both.

const (
	fresh     = 250 * time.Millisecond // the time for which requests share a document
	apart     = 100 * time.Millisecond // the time between the first two snapshots; the first one is only for Explain
	brief     = 50 * time.Millisecond  // the time between two snapshots that show only what a glance can show: see prepare
	settled   = 500 * time.Millisecond // the age at which a snapshot is compared with newer ones, except for the first
	stale     = 2 * time.Second        // the age at which a snapshot is too old to show what is new: see prepare
	idle      = 10 * time.Second       // the time without requests after which nothing is kept
	mostHeld  = 4                      // the most documents that are being read
	mostShown = 100_000                // the most fibers of a document, and of a snapshot that is kept
	mostDump  = 1_000_000              // the most fibers of a dump
)

var errBusy = errors.New("inspect: too many slow readers: try again")

// document is an encoded snapshot. It does not change.
type document struct {
	packed  []byte // compressed by gzip
	made    time.Time
	readers int // guarded by cache.mu
}

// key is a kind of document.
type key struct {
	of                 int
	text, dump, stacks bool

	trace bool          // the events of a recorder
	last  time.Duration // the time that the trace covers
}

// cache makes documents, and shares them among requests.
type cache struct {
	busy    chan struct{} // has an element while a snapshot is taken
	explain func(earlier, later *snapshot.Snapshot) []snapshot.Explanation

	recorder *Recorder // nil: none

	// Guarded by busy.
	of   []Source     // the sources; empty until the first snapshot, if it is the default runtime
	kept []kept       // for each source
	pack *gzip.Writer // used again, because a new one takes a megabyte

	mu    sync.Mutex
	last  map[key]*document // the newest of each kind
	held  int               // the number of documents with readers
	sleep *time.Timer       // calls forget
}

func (t *cache) sources() int { return len(t.kept) }

// get returns a document, which the caller must release.
func (t *cache) get(ctx context.Context, k key) (*document, error) {
	if d := t.share(k); d != nil {
		return d, nil
	}
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.leave()
	if d := t.share(k); d != nil { // another request has made it in the meantime
		return d, nil
	}
	t.mu.Lock()
	full := t.held >= mostHeld
	t.mu.Unlock()
	if full {
		return nil, errBusy
	}
	d, err := t.take(ctx, k)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.trace { // there may be any number of kinds of traces
		maps.DeleteFunc(t.last, func(k key, d *document) bool { return k.trace && d.readers == 0 })
	}
	t.last[k] = d
	t.hold(d)
	return d, nil
}

// enter waits until no other snapshot is taken, and then lets the caller take one.
func (t *cache) enter(ctx context.Context) error {
	select {
	case t.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if len(t.of) == 0 {
		t.of = []Source{coir.Default()} // not before: a program may call coir.Configure after it has made its handler
	}
	return nil
}

// leave lets the next caller of enter continue.
func (t *cache) leave() {
	<-t.busy
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used()
}

// used starts the time idle again. The caller has locked t.mu.
func (t *cache) used() {
	if t.sleep == nil {
		t.sleep = time.AfterFunc(idle, t.forget)
	} else {
		t.sleep.Reset(idle)
	}
}

// forget drops the snapshots and documents. Documents with readers stay, because requests may share them; the last
// reader starts the time again.
func (t *cache) forget() {
	select {
	case t.busy <- struct{}{}:
		for i := range t.kept {
			t.kept[i].leave()
		}
		clear(t.kept)
		t.pack = nil
		<-t.busy
	default:
		return // leave will start the timer again
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.last, func(_ key, d *document) bool { return d.readers == 0 })
}

// share returns the newest document, if it is fresh, or if no other document may be made.
func (t *cache) share(k key) *document {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.last[k]
	if d == nil || time.Since(d.made) >= fresh && t.held < mostHeld {
		return nil
	}
	t.hold(d)
	return d
}

// hold adds a reader. The caller has locked t.mu.
func (t *cache) hold(d *document) {
	if d.readers++; d.readers == 1 {
		t.held++
	}
}

// release removes a reader.
func (t *cache) release(d *document) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.readers--; d.readers == 0 {
		t.held--
	}
	t.used()
}

// take takes a snapshot and encodes it.
func (t *cache) take(ctx context.Context, k key) (*document, error) {
	if k.trace {
		return t.packed(func(to io.Writer) error { return t.recorder.WriteTrace(to, k.last) })
	}
	source, of := t.of[k.of], &t.kept[k.of]
	if err := of.prepare(ctx, source, apart); err != nil {
		return nil, err
	}
	explain := func(later *snapshot.Snapshot) []snapshot.Explanation { return of.explain(later, t.explain) }
	var later *snapshot.Snapshot
	d, err := t.packed(func(to io.Writer) (err error) {
		if k.text {
			later = (&collect{most: mostShown, room: &of.now}).from(source, k.stacks)
			return writeText(to, later, explain(later), true)
		}
		most := mostShown
		if k.dump {
			most = mostDump
		}
		later, err = encode(to, source, most, k.stacks, t.sources(), &of.now, explain)
		return err
	})
	if err == nil {
		of.keep(later)
	}
	return d, err
}

// packed returns a document with the output of write.
func (t *cache) packed(write func(to io.Writer) error) (*document, error) {
	var packed bytes.Buffer
	if t.pack == nil {
		t.pack, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // there is no error, because the level is valid
	}
	t.pack.Reset(&packed)
	if err := errors.Join(write(t.pack), t.pack.Close()); err != nil {
		return nil, err
	}
	return &document{packed: bytes.Clone(packed.Bytes()), made: time.Now()}, nil
}

// fiber returns a fiber with its stack, or nil if there is none with that number.
func (t *cache) fiber(ctx context.Context, of int, id uint64) (found *snapshot.Fiber, err error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.leave()
	c := collect{most: mostDump, each: func(f *snapshot.Fiber) bool {
		if f.ID == id {
			one := trimmed(f)
			found = &one
		}
		return found == nil
	}}
	c.from(t.of[of], true)
	return found, nil
}

// kept has the snapshot of a source with which the next one is compared. That is not always the previous snapshot: if
// requests follow each other in milliseconds, nothing would have lasted long enough to be reported. The memory of
// fibers is used again: a page sends a request once a second, and garbage of that size would start the collector each
// time, which scans the stacks of all fibers.
type kept struct {
	last *snapshot.Snapshot // the next snapshots are compared with it; its fibers are in before
	next *snapshot.Snapshot // takes the place of last when it is old enough, or nil; its fibers are in after

	before, after room
	now           room // for the snapshot that is being taken

	kept time.Time // when the newest of the two was kept
	of   Source    // if it is not nil, the rooms have its sightings
}

// enter gives the rooms the sightings of a source, until leave is called.
func (k *kept) enter(source Source) {
	if k.of == nil {
		s := sightingsOf(source)
		k.of, k.before.seen, k.after.seen, k.now.seen = source, s, s, s
	}
}

func (k *kept) leave() {
	if k.of != nil {
		k.now.seen.release(k.of)
		k.of, k.before.seen, k.after.seen, k.now.seen = nil, nil, nil, nil
	}
}

// prepare makes room for a snapshot. A problem is explained by two snapshots that both show it. If those that are kept
// are stale, prepare first takes another one: otherwise a deadlock that is younger than they are would not be reported.
// Then it waits, if there was none at all for the given time. In a brief time a fiber in a call, or that computes, does
// not look stuck, and Explain reports neither.
func (k *kept) prepare(ctx context.Context, source Source, first time.Duration) error {
	k.enter(source)
	k.begin()
	if k.last != nil && time.Since(k.kept) < stale {
		return nil
	}
	pause := first
	if k.last != nil {
		pause = brief
	}
	s := (&collect{most: mostShown, room: &k.now}).from(source, false)
	k.keep(s)
	wait := time.NewTimer(pause)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	k.begin()
	return nil
}

// explain explains a snapshot by the snapshots that are kept. If last is stale, next shows what began after last was
// taken. It may be too young to show that a fiber holds its worker.
func (k *kept) explain(later *snapshot.Snapshot,
	explain func(earlier, later *snapshot.Snapshot) []snapshot.Explanation) []snapshot.Explanation {
	why := explain(k.last, later)
	if k.next == nil || later.Taken.Sub(k.last.Taken) < stale {
		return why
	}
	since := slices.DeleteFunc(unlike(explain(k.next, later), why), func(e snapshot.Explanation) bool {
		return slices.Contains(holdsWorker, e.Kind)
	})
	why = append(why, since...)
	rank := func(e snapshot.Explanation) int {
		if e.Certain {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(why, func(a, b snapshot.Explanation) int { return rank(a) - rank(b) })
	return why
}

var holdsWorker = []snapshot.Problem{
	snapshot.ProblemNeverYields, snapshot.ProblemStarved, snapshot.ProblemBlockingCalls,
}

// begin makes room for a snapshot.
func (k *kept) begin() {
	if k.next != nil && time.Since(k.next.Taken) >= settled {
		k.last, k.next = k.next, nil
		k.before, k.after, k.now = k.after, k.now, k.before
	}
	k.now.reset()
}

// keep keeps a snapshot if it is needed. The fibers of the snapshot are in now.
func (k *kept) keep(s *snapshot.Snapshot) {
	switch {
	case k.last == nil:
		k.last = s
		k.before, k.now = k.now, k.before
	case k.next == nil:
		k.next = s
		k.after, k.now = k.now, k.after
	default:
		return
	}
	k.kept = time.Now()
}

// room holds copies of fibers.
type room struct {
	fibers []snapshot.Fiber
	waits  []snapshot.Wait // the waits of the fibers
	places []fiberAt       // see sort

	seen *sightings // of the source of the fibers, or nil
}

// fiberAt is the index of a fiber in a room.
type fiberAt struct {
	id uint64
	at int
}

// reset makes the room empty. Nothing may use what it held.
func (r *room) reset() {
	clear(r.fibers)
	clear(r.waits)
	r.fibers, r.waits = r.fibers[:0], r.waits[:0]
}

// sort sorts the fibers by their numbers, in place. Otherwise [snapshot.Explain] would sort a copy, which becomes
// garbage.
func (r *room) sort() {
	r.places = r.places[:0]
	for i := range r.fibers {
		r.places = append(r.places, fiberAt{r.fibers[i].ID, i})
	}
	slices.SortFunc(r.places, func(a, b fiberAt) int { return cmp.Compare(a.id, b.id) })
	for first := range r.places { // follow the cycle of fibers in which each takes the place of the next
		one, to := r.fibers[first], first
		for r.places[to].at != to {
			from := r.places[to].at
			r.places[to].at = to
			if from == first {
				r.fibers[to] = one
				break
			}
			r.fibers[to] = r.fibers[from]
			to = from
		}
	}
}

// add adds a copy of a fiber, with its texts cut.
func (r *room) add(f *snapshot.Fiber) *snapshot.Fiber {
	from := len(r.waits)
	r.waits = append(r.waits, f.Wait...)
	one := *f
	if one.Wait = nil; len(f.Wait) > 0 {
		one.Wait = r.waits[from:len(r.waits):len(r.waits)]
	}
	trim(&one)
	r.fibers = append(r.fibers, one)
	return &r.fibers[len(r.fibers)-1]
}

// collect takes a snapshot.
type collect struct {
	most int                        // the most fibers
	each func(*snapshot.Fiber) bool // is called for each fiber; if it is nil, the fibers go to room
	room *room

	n, more int // the fibers up to most, and the others
}

func (c *collect) from(source Source, stacks bool) *snapshot.Snapshot {
	add := func(f *snapshot.Fiber) bool {
		if c.n == c.most {
			c.more++
			return true
		}
		c.n++
		if c.each != nil {
			return c.each(f)
		}
		c.room.add(f)
		return true
	}
	s := source.Snapshot(snapshot.Options{Fibers: c.most, Stacks: stacks, Each: add})
	if s == nil {
		s = new(snapshot.Snapshot)
	}
	for i := range s.Fibers {
		if !add(&s.Fibers[i]) {
			break
		}
	}
	all := *s
	if all.Fibers = nil; c.room != nil {
		c.room.sort()
		all.Fibers = c.room.fibers
	}
	all.Omitted = s.Omitted + c.more
	trimRest(&all)
	if c.room != nil {
		c.room.seen.look(&all)
	}
	return &all
}
