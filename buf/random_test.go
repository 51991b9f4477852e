package buf_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/internal/soak"
)

// handle is a Buf that a random program has, with its state in the model.
type handle struct {
	b     buf.Buf
	owner *ownership
}

// ownership is one ownership in the model.
type ownership struct {
	block   *contents
	ended   bool
	handles int // how many the program has
}

// contents is a buffer in use in the model.
type contents struct {
	id     uint64
	owners int
}

// stamp fills the buffer with the number of the contents.
func stamp(b buf.Buf, id uint64) {
	p := b.Slice(0, b.Cap()).Bytes()
	for i := 0; i+8 <= len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], id)
	}
}

// stamped reports whether all of the buffer has the number.
func stamped(b buf.Buf, id uint64) bool {
	p := b.Slice(0, b.Cap()).Bytes()
	for i := 0; i+8 <= len(p); i += 8 {
		if binary.LittleEndian.Uint64(p[i:]) != id {
			return false
		}
	}
	return true
}

// A random program keeps stale handles, and uses them like valid ones. A model knows which are valid: each use of a
// valid handle succeeds, and each use of a stale one panics. So a stale handle never reaches the buffer of another
// owner, and each buffer has the contents that its owner has written.
//
// Spec: BU-01 (a buffer has one owner)
// Spec: BU-02 (a failed send keeps its buffer)
// Spec: BU-05 (use after release is found)
func TestRandomMisuse(t *testing.T) {
	steps := 1_000_000
	switch {
	case soak.On():
		steps = 10_000_000
	case checkedBuild || testing.Short():
		steps = 100_000
	}
	const size, count, keep = 64, 16, 200
	p := newPool(t, size, count)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	fail := func(format string, args ...any) {
		t.Helper()
		t.Logf("seed %d", seed)
		t.Fatalf(format, args...)
	}
	c := buf.NewChan(4)
	var inside []*ownership // owners of the buffers in the channel
	var all []handle
	var next uint64
	var lent, misused int
	add := func(b buf.Buf, o *ownership) {
		o.handles++
		if len(all) < keep {
			all = append(all, handle{b, o})
			return
		}
		for { // forget a handle that is stale or not the only one, so that no buffer leaks
			i := rng.IntN(len(all))
			if old := all[i].owner; old.ended || old.handles > 1 {
				old.handles--
				all[i] = handle{b, o}
				return
			}
		}
	}
	end := func(o *ownership) {
		o.ended = true
		if o.block.owners--; o.block.owners == 0 {
			lent--
		}
	}
	for range steps {
		if len(all) == 0 || rng.IntN(8) == 0 {
			b, err := p.TryGet()
			if (err == nil) != (lent < count) {
				fail("%v, %d of %d are lent", err, lent, count)
			}
			if err == nil {
				next++
				lent++
				stamp(b, next)
				add(b, &ownership{block: &contents{id: next, owners: 1}})
			}
			continue
		}
		h := all[rng.IntN(len(all))]
		o, b := h.owner, h.b
		ok := false // whether the use did not panic
		text := ""
		try := func(f func()) { text = panicOf(f); ok = text == "" }
		switch rng.IntN(9) {
		case 0:
			try(func() { b.Release() })
			if ok && !o.ended {
				end(o)
				continue
			}
		case 1: // a send, which fails if the channel is full
			var err error
			try(func() { err = c.TrySend(b) })
			if ok && !o.ended {
				if (err == nil) != (len(inside) < 4) {
					fail("%v, %d in the channel", err, len(inside))
				}
				if err == nil {
					inside = append(inside, &ownership{block: o.block})
					o.ended = true
				}
				continue
			}
		case 2:
			r, err := c.TryRecv()
			if (err == nil) != (len(inside) > 0) {
				fail("%v, %d in the channel", err, len(inside))
			}
			if err == nil {
				add(r, inside[0])
				inside = inside[1:]
			}
			continue
		case 3: // a hand-over that fails and keeps its Buf
			var kept buf.Buf
			try(func() { _ = buf.HandOver(b, func(b buf.Buf) error { kept = b; return errNot }) })
			if ok {
				add(kept, &ownership{block: o.block, ended: true})
			}
		case 4:
			if o.block.owners == 4 {
				continue
			}
			var s buf.Buf
			try(func() { s = b.Share() })
			if ok && !o.ended {
				o.block.owners++
				add(s, &ownership{block: o.block})
				continue
			}
		case 5: // a write by an owner or a former owner; an owner of a shared buffer does not write
			if !o.ended && o.block.owners > 1 {
				continue
			}
			try(func() {
				if _, err := b.Slice(0, 0).Append(binary.LittleEndian.AppendUint64(nil, o.block.id)); err != nil {
					fail("%v", err)
				}
			})
		case 6:
			try(func() { b = b.Slice(0, 8) })
			if ok {
				add(b, o)
			}
		case 7: // a copy of the handle
			try(func() { b.Bytes() })
			if ok {
				add(b, o)
			}
		default:
			try(func() {
				if !stamped(b.Slice(0, 0), o.block.id) {
					fail("%v has other contents: %x", b, b.Bytes())
				}
			})
		}
		if ok == o.ended {
			fail("%v, ended: %v, panicked: %q", b, o.ended, text)
		}
		if !ok {
			misused++
		}
	}
	if st := p.Stats(); st.Misused != uint64(misused) || st.Lent != lent {
		t.Errorf("%+v, not %d and %d", st, misused, lent)
	}
	t.Logf("%d steps, %d of them wrong", steps, misused)
	c.Abort(nil)
	for _, h := range all {
		if !h.owner.ended {
			if !stamped(h.b.Slice(0, 0), h.owner.block.id) {
				fail("%v has other contents", h.b)
			}
			h.b.Release()
			end(h.owner)
		}
	}
}

// Goroutines wrongly use the same handles at the same time, and release, send, share and append at random. One careful
// owner after another gets buffers, fills them, and finds the contents unchanged.
func TestMisuseByManyGoroutines(t *testing.T) {
	if checkedBuild {
		t.Skip("the race detector would report the mistakes")
	}
	const size, count, careless = 256, 8, 3
	turns := 200_000
	if testing.Short() {
		turns /= 20
	}
	r, err := buf.NewRegion(size * count)
	if err != nil {
		t.Fatal(err)
	}
	p, err := buf.NewPool(r, size, count)
	if err != nil {
		t.Fatal(err)
	}
	c := buf.NewChan(2)
	var table [16]atomic.Pointer[buf.Buf] // handles shared by all careless goroutines
	var wg sync.WaitGroup
	var wrong atomic.Int64
	for n := range careless {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 7))
			junk := bytes.Repeat([]byte{0xFF}, 16)
			for range turns {
				at := &table[rng.IntN(len(table))]
				b := at.Load()
				text := panicOf(func() {
					switch op := rng.IntN(8); {
					case b == nil || op == 0:
						if got, err := p.TryGet(); err == nil {
							if old := at.Swap(&got); old != nil {
								old.Release()
							}
						}
					case op == 1:
						b.Release()
					case op == 2:
						_ = c.TrySend(*b)
					case op == 3:
						if got, err := c.TryRecv(); err == nil {
							if old := at.Swap(&got); old != nil {
								old.Release()
							}
						}
					case op == 4:
						s := b.Share()
						s.Release()
					case op == 5:
						_ = buf.HandOver(*b, func(buf.Buf) error { return errNot })
					default:
						_, _ = b.Slice(0, 0).Append(junk)
					}
				})
				if text != "" {
					wrong.Add(1)
				}
			}
		})
	}
	for n := range 2 {
		wg.Go(func() {
			for i := range turns / 4 {
				b, err := p.TryGet()
				if err != nil {
					continue
				}
				id := uint64(n)<<32 | uint64(i)
				stamp(b, id)
				if !stamped(b, id) {
					t.Errorf("%v was written by another", b)
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if wrong.Load() == 0 {
		t.Error("no mistake was made")
	}
	t.Logf("%d mistakes", wrong.Load())
	c.Abort(nil)
	for i := range table {
		if b := table[i].Load(); b != nil {
			_ = panicOf(b.Release)
		}
	}
	_ = r.Close() // fails, because careless goroutines leak
}
