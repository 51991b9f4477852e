package buf

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A checked region also records where each ownership started and ended, and what its memory must contain afterwards.
// Each slot has its own lock, so that the race detector sees no order between users of different buffers.
//
// Rejected: memory that is protected when an ownership ends. It would find the use of a stale slice at once, but a
// fault ends the program without naming the places, needs whole pages, and hides the memory from the race detector.

// book is the bookkeeping of a pool in a checked region.
type book struct {
	pool *Pool
	seed maphash.Seed
	of   []entry
}

// entry is the bookkeeping of a slot.
type entry struct {
	mu   sync.Mutex
	live []*life // current ownerships, or the ownership prepared for the next Get
	mem  *memory // memory of the current owners
}

// life is one ownership of a buffer: from Get, Share or a receive until the release or hand-over.
type life struct {
	mem     *memory
	made    atomic.Pointer[string] // where Get or Share was called; nil if a case of a select got the buffer
	handed  string                 // where the buffer was handed over to this owner
	end     atomic.Pointer[ending]
	passing atomic.Bool // HandOver is delivering it
}

// ending says how and where an ownership ended.
type ending struct{ how, at string }

// memory is the bytes of a buffer, for a first owner and those with which it is shared.
type memory struct {
	bytes    []byte
	prev     *memory // the memory of earlier owners of the slot, which must not be used
	story    string  // describes the ownership that ended, for reports
	sharedAt string  // where it was first shared, while it is shared
	sum      uint64  // checksum of the bytes at that time
}

const (
	poison = 0xDB
	kept   = 4 // number of memories of ended ownerships kept for each slot
)

func newBook(p *Pool, count int) *book {
	return &book{pool: p, seed: maphash.MakeSeed(), of: make([]entry, count)}
}

// fresh returns the owner for the next ownership of a free slot.
func (k *book) fresh(i uint32) *owner {
	e := &k.of[i]
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mem = &memory{bytes: make([]byte, k.pool.size), prev: e.mem}
	l := &life{mem: e.mem}
	e.live = []*life{l}
	return &owner{pool: k.pool, life: l}
}

// retire ends a slot that will not be lent again.
func (k *book) retire(i uint32) {
	e := &k.of[i]
	e.mu.Lock()
	e.live = nil
	e.mu.Unlock()
}

// made records where a buffer was obtained.
func (b Buf) made() Buf {
	if b.in.life != nil {
		at := here()
		b.in.life.made.Store(&at)
	}
	return b
}

// share records another owner of b, which is valid.
func (k *book) share(b Buf) *life {
	at := here()
	e := &k.of[b.slot]
	e.mu.Lock()
	m := b.in.life.mem
	if m.sharedAt == "" {
		m.sharedAt, m.sum = at, maphash.Bytes(k.seed, m.bytes)
	}
	l := &life{mem: m}
	l.made.Store(&at)
	e.live = append(e.live, l)
	found := k.written(m)
	e.mu.Unlock()
	k.report(found)
	return l
}

// written returns a text if shared memory was written to. The caller holds the lock of the entry.
func (k *book) written(m *memory) string {
	if m.sharedAt == "" || maphash.Bytes(k.seed, m.bytes) == m.sum {
		return ""
	}
	m.sum = maphash.Bytes(k.seed, m.bytes) // report it only once
	return "a buffer of " + k.pool.title() + " that is shared since " + m.sharedAt +
		" was written, which is seen at " + here()
}

// beforeEnd checks a buffer that its owner is about to release.
func (k *book) beforeEnd(b Buf) {
	if !b.valid() {
		return // the caller reports the misuse
	}
	e := &k.of[b.slot]
	e.mu.Lock()
	found := k.written(b.in.life.mem)
	e.mu.Unlock()
	k.report(found)
}

// ended records the release of b. If b was the last owner, its memory must not be used any more.
func (k *book) ended(b Buf, last bool) {
	e, l, at := &k.of[b.slot], b.in.life, here()
	e.mu.Lock()
	story := l.story() + ", released at " + at
	l.end.Store(&ending{"released", at})
	e.live = slices.DeleteFunc(e.live, func(x *life) bool { return x == l })
	if len(e.live) <= 1 {
		l.mem.sharedAt = "" // the remaining owner may write
	}
	found := ""
	if last {
		l.mem.retire(story)
		found = k.scanSlot(e)
	}
	e.mu.Unlock()
	k.report(found)
}

// retire fills the memory of an owner that has ended.
func (m *memory) retire(story string) {
	m.story = story
	for i := range m.bytes {
		m.bytes[i] = poison
	}
}

// scanSlot returns a text if the memory of an ended ownership was written to, and forgets the oldest memories. The
// caller holds the lock of the entry.
func (k *book) scanSlot(e *entry) (found string) {
	n := 0
	for m := e.mem; m != nil; m = m.prev {
		if m.story == "" {
			continue // still has an owner
		}
		if i := slices.IndexFunc(m.bytes, func(c byte) bool { return c != poison }); i >= 0 {
			found = fmt.Sprintf("byte %d of a buffer of %s was written by a slice that was kept after the buffer's end: %s",
				i, k.pool.title(), m.story)
			m.retire(m.story) // report it only once
		}
		if n++; n == kept {
			m.prev = nil
		}
	}
	return found
}

// handOver implements HandOver for a checked region. If b has no other owner, the bytes move to new memory.
func (k *book) handOver(b Buf, deliver func(Buf) error) error {
	k.beforeEnd(b)
	s := b.state()
	next, o := s.end(b.gen)
	if o != done {
		b.misused("HandOver", o)
	}
	e, old, at := &k.of[b.slot], b.in.life, here()
	now := &life{mem: old.mem, handed: at}
	now.made.Store(old.made.Load())
	e.mu.Lock()
	moves := b.alone()
	if moves {
		now.mem = &memory{bytes: slices.Clone(old.mem.bytes), prev: old.mem}
		old.mem.retire(old.story() + ", handed over at " + at)
		e.mem = now.mem
	}
	e.replace(old, now)
	found := k.scanSlot(e)
	e.mu.Unlock()
	old.end.Store(&ending{"handed over", at})
	k.report(found)

	to := b
	to.in, to.gen = &owner{pool: k.pool, own: b.in.own, life: now}, next
	now.passing.Store(true)
	err := deliver(to)
	now.passing.Store(false)
	if err == nil {
		k.pool.moved.Add(1)
		return nil
	}
	if o := s.restore(next, b.gen); o != done {
		to.misused("HandOver", o)
	}
	e.mu.Lock()
	if moves {
		copy(old.mem.bytes, now.mem.bytes)
		old.mem.story, e.mem = "", old.mem
	}
	e.replace(now, old)
	e.mu.Unlock()
	now.end.Store(&ending{"taken back by its sender", at})
	k.pool.cancelled.Add(1)
	return err
}

func (e *entry) replace(was, is *life) {
	if i := slices.Index(e.live, was); i >= 0 {
		e.live[i] = is
	}
}

// scan returns an error for each slot whose ended memory was written to.
func (k *book) scan() (found []error) {
	for i := range k.of {
		e := &k.of[i]
		e.mu.Lock()
		if text := k.scanSlot(e); text != "" {
			found = append(found, &misuse{"buf: " + text})
		}
		e.mu.Unlock()
	}
	return found
}

// lives returns the stories of the buffers that have an owner.
func (k *book) lives() (stories []string) {
	for i := range k.of {
		e := &k.of[i]
		e.mu.Lock()
		for _, l := range e.live {
			stories = append(stories, l.story())
		}
		e.mu.Unlock()
	}
	return stories
}

// story describes how the ownership started.
func (l *life) story() string {
	s := "got by a select"
	if made := l.made.Load(); made != nil {
		s = "made at " + *made
	}
	if l.handed != "" {
		s += ", handed over at " + l.handed
	}
	return s
}

// misuse is an incorrect use of a buffer, as a panic value or as an error of Close.
type misuse struct{ text string }

func (m *misuse) Error() string { return m.text }

func (p *Pool) misuse(text string) *misuse {
	p.misused.Add(1)
	return &misuse{"buf: " + text}
}

// report panics with text, if it is not empty.
func (k *book) report(text string) {
	if text != "" {
		panic(k.pool.misuse(text))
	}
}

// misused panics for a method of b, which is not valid or is in use.
//
//go:noinline
func (b Buf) misused(what string, o outcome) {
	if b.in == nil {
		panic(&misuse{"buf: " + what + " of a zero Buf, which is not a buffer"})
	}
	p := b.in.pool
	of := what + " of a buffer of " + p.title()
	switch l := b.in.life; {
	case l == nil && o == busy:
		panic(p.misuse(of + " while another operation uses it; buf.WithChecks tells where it was made"))
	case l == nil:
		panic(p.misuse(of + " that was released or handed over; buf.WithChecks tells where"))
	case o == busy:
		panic(p.misuse(what + " at " + here() + " of a buffer of " + p.title() + ", " + l.story() +
			", while another operation uses it"))
	default:
		end := l.end.Load()
		if end == nil { // another call is ending it
			end = &ending{"released or handed over", "the same time"}
		}
		panic(p.misuse(what + " at " + here() + " of a buffer of " + p.title() + " that was " + end.how + " at " + end.at +
			"; " + l.story()))
	}
}

// misusedShared panics for a method that would write to a buffer that is shared or read-only.
func (b Buf) misusedShared(what string) {
	if b.alone() {
		panic(b.in.pool.misuse(what + " of a buffer of " + b.in.pool.title() + ", whose region is read-only: copy it"))
	}
	text := what + " of a buffer of " + b.in.pool.title() + " that is shared: it must not be written; Clone it"
	if l := b.in.life; l != nil {
		text = what + " at " + here() + " of a buffer of " + b.in.pool.title() + " that is shared since " + l.mem.sharedAt +
			": it must not be written; Clone it"
	}
	panic(b.in.pool.misuse(text))
}

// here returns the place of the first caller outside of this package and of coir.
func here() string {
	var pcs [16]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for more := n > 0; more; {
			var f runtime.Frame
			if f, more = frames.Next(); !own(f.Function) {
				return place(f.File, f.Line)
			}
		}
		if n < len(pcs) {
			return "an unknown place"
		}
	}
}

const module = "github.com/coir-go/coir"

// own reports whether the function belongs to this package, to coir, or to the runtime.
func own(function string) bool {
	rest, ok := strings.CutPrefix(function, module)
	if !ok {
		return strings.HasPrefix(function, "runtime.")
	}
	return strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "/buf.") || strings.HasPrefix(rest, "/internal/")
}

// place returns the file with its directory, and the line.
func place(file string, line int) string {
	if i := strings.LastIndexByte(file, '/'); i >= 0 {
		file = file[strings.LastIndexByte(file[:i], '/')+1:]
	}
	return file + ":" + strconv.Itoa(line)
}
