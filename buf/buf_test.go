package buf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"unsafe"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/desk"
)

// each runs a test on a region off the heap, on one on the heap, and on a checked one.
func each(t *testing.T, f func(t *testing.T, opt buf.Option)) {
	for name, opt := range map[string]buf.Option{
		"off the heap": buf.WithName("r"), "on the heap": buf.WithHeap(), "checked": buf.WithChecks(),
	} {
		t.Run(name, func(t *testing.T) { f(t, opt) })
	}
}

// A Buf is sent through a channel: the receiver has the same bytes, at the same address, and the sender's copies are
// stale.
//
// Spec: BU-01 (a buffer has one owner)
// Spec: BU-03 (passing a buffer copies a descriptor)
func TestSendHandsOver(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 2, opt)
		c := buf.NewChan(1)
		b := with(t, p, "hello")
		part, first := b.Slice(1, 3), unsafe.SliceData(b.Bytes())
		if err := c.Send(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		for _, stale := range []buf.Buf{b, part} {
			if text := panicOf(func() { stale.Bytes() }); !strings.Contains(text, "handed over") {
				t.Errorf("a stale Buf can be used: %q", text)
			}
		}
		got, err := c.Recv(t.Context())
		if err != nil || string(got.Bytes()) != "hello" {
			t.Fatalf("%v, %v", got, err)
		}
		if same := unsafe.SliceData(got.Bytes()) == first; same == (checkedBuild || strings.HasSuffix(t.Name(), "checked")) {
			t.Errorf("same address: %v", same) // in a checked region the bytes move
		}
		got.Release()
		if size := unsafe.Sizeof(got); size > 32 {
			t.Errorf("a Buf has %d bytes", size)
		}
	})
}

// A send that fails, for any reason, leaves the buffer and its slices with the sender.
//
// Spec: BU-02 (a failed send keeps its buffer)
// Spec: BU-08 (hand-overs are counted)
func TestFailedSendKeepsTheBuffer(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 1, opt)
		b := with(t, p, "mine")
		bytes := b.Bytes()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		closed, aborted := buf.NewChan(1), buf.NewChan(1)
		closed.Close()
		aborted.Abort(io.ErrUnexpectedEOF)
		full := buf.NewChan(0, coir.WithOverflow(coir.OverflowFail))
		for _, x := range []struct {
			name string
			send func() error
			want error
		}{
			{"cancelled", func() error { return buf.NewChan(0).Send(cancelled, b) }, context.Canceled},
			{"time limit", func() error { return buf.NewChan(0).SendTimeout(t.Context(), b, 1) }, coir.ErrTimeout},
			{"would block", func() error { return buf.NewChan(0).TrySend(b) }, coir.ErrWouldBlock},
			{"full", func() error { return full.Send(t.Context(), b) }, coir.ErrWouldBlock},
			{"closed", func() error { return closed.Send(t.Context(), b) }, coir.ErrClosed},
			{"aborted", func() error { return aborted.Send(t.Context(), b) }, io.ErrUnexpectedEOF},
			{"nested", func() error {
				return buf.HandOver(b, func(b buf.Buf) error { return buf.NewChan(0).TrySend(b) })
			}, coir.ErrWouldBlock},
		} {
			if err := x.send(); !errors.Is(err, x.want) {
				t.Errorf("%s: %v", x.name, err)
			}
			if string(b.Bytes()) != "mine" || string(bytes) != "mine" {
				t.Errorf("%s: %q, %q", x.name, b.Bytes(), bytes)
			}
		}
		if st := p.Stats(); st.Moved != 0 || st.Cancelled != 8 || st.Lent != 1 {
			t.Errorf("p.Stats() = %+v, want Moved 0, Cancelled 8, Lent 1", st)
		}
		b.Release()
	})
}

// Undelivered buffers return to their pool, or go to OnUndelivered, whatever the reason.
//
// Spec: BU-10 (undelivered buffers go back)
// Spec: BU-08 (hand-overs are counted)
func TestUndeliveredBuffersGoBack(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 2, opt)
		for name, c := range map[string]*buf.Chan{
			"aborted":     buf.NewChan(2),
			"drop oldest": buf.NewChan(1, coir.WithOverflow(coir.OverflowDropOldest)),
			"drop newest": buf.NewChan(1, coir.WithOverflow(coir.OverflowDropNewest)),
			"conflated":   buf.NewChan(coir.Conflated),
		} {
			for range 2 {
				if err := c.Send(t.Context(), get(t, p)); err != nil {
					t.Fatal(name, err)
				}
			}
			c.Abort(nil)
			if n := p.Len(); n != 2 {
				t.Errorf("%s: %d of 2 buffers are back", name, n)
			}
		}
		if st := p.Stats(); st.Aborted != 8 || st.Moved != 8 {
			t.Errorf("p.Stats() = %+v, want Aborted 8, Moved 8", st)
		}
		var got []buf.Buf
		c := buf.NewChan(2, coir.OnUndelivered(func(b buf.Buf) { got = append(got, b) }))
		_ = c.Send(t.Context(), with(t, p, "x"))
		c.Abort(nil)
		if len(got) != 1 || string(got[0].Bytes()) != "x" {
			t.Fatalf("received %v, want one buffer with x", got)
		}
		got[0].Release()
	})
}

// The answer of a ticket is a buffer. The waiter owns it. If the ticket has ended before, the completer keeps it.
//
// Spec: BU-11 (a ticket's payload may be a descriptor)
func TestTicketAnsweredByABuffer(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 1, opt)
		d := desk.New[buf.Buf]()
		tk, err := d.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		answer := func(b buf.Buf) error {
			return buf.HandOver(b, func(b buf.Buf) error { return d.Resolve(tk.ID(), b) })
		}
		b := with(t, p, "answer")
		if err := answer(b); err != nil {
			t.Fatal(err)
		}
		if panicOf(b.Release) == "" {
			t.Error("the completer can use what it has handed over")
		}
		got, err := tk.Wait(t.Context())
		if err != nil || string(got.Bytes()) != "answer" {
			t.Fatalf("%v, %v", got, err)
		}
		if err := answer(got); !errors.Is(err, desk.ErrDuplicate) {
			t.Errorf("%v", err)
		}
		got.Release() // the completer still owns it
	})
}

// A select sends a buffer, or the caller keeps it.
func TestSendCaseInHandOver(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 100, 1, opt)
		other := coir.NewEvent()
		send := func(c *buf.Chan, b buf.Buf) error {
			return buf.HandOver(b, func(b buf.Buf) error {
				i, err := coir.TrySelect(c.SendCase(b), other.DoneCase())
				if err == nil && i != 0 {
					err = io.EOF
				}
				return err
			})
		}
		b := with(t, p, "x")
		full, room := buf.NewChan(0), buf.NewChan(1)
		if err := send(full, b); !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("%v", err)
		}
		other.Set()
		if err := send(full, b); err != io.EOF {
			t.Errorf("%v", err)
		}
		if string(b.Bytes()) != "x" {
			t.Errorf("b.Bytes() = %q, want \"x\"", b.Bytes())
		}
		other = coir.NewEvent()
		if err := send(room, b); err != nil {
			t.Fatal(err)
		}
		var got buf.Buf
		if i, err := coir.TrySelect(room.RecvCase(&got)); i != 0 || err != nil || string(got.Bytes()) != "x" {
			t.Errorf("%d, %v, %v", i, err, got)
		}
		if panicOf(b.Release) == "" {
			t.Error("the sender can use what it has handed over")
		}
		got.Release()
	})
}

// If the function of HandOver panics, the caller does not get the buffer back, because it may have been delivered.
func TestHandOverThatPanics(t *testing.T) {
	p := newPool(t, 100, 1)
	b := get(t, p)
	var kept buf.Buf
	_ = panicOf(func() { _ = buf.HandOver(b, func(b buf.Buf) error { kept = b; panic("x") }) })
	if panicOf(b.Release) == "" {
		t.Error("it came back")
	}
	kept.Release()
}

// Random slices and appends of a buffer are compared with a []byte of the same capacity: they stay within the buffer.
//
// Spec: BU-04 (a descriptor stays within its region)
func TestSlicesStayWithinTheirBuffer(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		const size = 61
		p := newPool(t, size, 3, opt)
		before, b, after := fence(t, p), get(t, p), fence(t, p)
		rng := rand.New(rand.NewPCG(3, 4))
		model := make([]byte, 0, size)
		for range 20_000 {
			switch rng.IntN(6) {
			case 0:
				b, model = b.Slice(0, 0), model[:0]
			case 1:
				i, j := rng.IntN(size+3)-1, rng.IntN(size+3)-1
				ok := i >= 0 && j >= i && j <= cap(model)
				text := panicOf(func() { b = b.Slice(i, j) })
				if (text == "") != ok {
					t.Fatalf("Slice(%d, %d) of capacity %d: %q", i, j, cap(model), text)
				}
				if ok {
					model = model[i:j]
				}
			case 2:
				add := bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(cap(model)-len(model)+1))
				var err error
				if b, err = b.Append(add); err != nil {
					t.Fatal(err)
				}
				model = append(model, add...)
			case 3:
				if cap(model) < 10 {
					b.Release()
					b, model = get(t, p), make([]byte, 0, size)
					clear(b.Slice(0, size).Bytes())
				}
			default:
				if !bytes.Equal(b.Bytes(), model) || b.Len() != len(model) || b.Cap() != cap(model) || cap(b.Bytes()) != b.Len() {
					t.Fatalf("%v, %x, not %x", b, b.Bytes(), model)
				}
			}
		}
		for _, f := range []buf.Buf{before, after} {
			if !bytes.Equal(f.Bytes(), bytes.Repeat([]byte{0xAA}, size)) {
				t.Errorf("another buffer was written: %x", f.Bytes())
			}
			f.Release()
		}
		b.Release()
	})
}

// fence returns a buffer that is full of 0xAA.
func fence(t *testing.T, p *buf.Pool) buf.Buf {
	return with(t, p, strings.Repeat("\xAA", p.Size()))
}

// Append to a full buffer moves to the next size. If no larger buffer is free, Append fails and changes nothing.
//
// Spec: BU-08 (hand-overs are counted)
func TestAppendGrows(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		r, err := buf.NewRegion(64+256+1024, opt)
		if err != nil {
			t.Fatal(err)
		}
		var pools []*buf.Pool
		for _, size := range []int{1024, 64, 256} {
			p, err := buf.NewPool(r, size, 1)
			if err != nil {
				t.Fatal(err)
			}
			pools = append(pools, p)
		}
		large, small, middle := pools[0], pools[1], pools[2]
		b := with(t, small, "abc")
		b, err = b.Append([]byte(strings.Repeat("x", 100)))
		if err != nil || b.Len() != 103 || b.Cap() != 256 || small.Len() != 1 || small.Stats().Copied != 1 {
			t.Fatalf("%v, %v", b, err)
		}
		if b, err = b.Append(b.Bytes()); err != nil || b.Len() != 206 || b.Cap() != 256 { // appends b to itself
			t.Fatalf("%v, %v", b, err)
		}
		other := get(t, large)
		same, err := b.Append(make([]byte, 100))
		if !errors.Is(err, coir.ErrWouldBlock) || same != b {
			t.Errorf("%v, %v", same, err)
		}
		if _, err := b.Append(make([]byte, 1000)); err == nil || errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("%v", err)
		}
		other.Release()
		copied, err := b.Clone()
		if err != nil || copied.Cap() != 1024 || !bytes.Equal(copied.Bytes(), b.Bytes()) || middle.Stats().Copied != 1 {
			t.Errorf("%v, %v", copied, err)
		}
		var w io.Writer = &copied
		if n, err := fmt.Fprintf(w, "%d", 42); n != 2 || err != nil || !bytes.HasSuffix(copied.Bytes(), []byte("42")) {
			t.Errorf("%d, %v, %q", n, err, copied.Bytes())
		}
		b.Release()
		copied.Release()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// All owners of a shared buffer can read it, none can write to it, and the last one returns it.
//
// Spec: BU-06 (a region is released once)
func TestShare(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 64, 2, opt)
		a := with(t, p, "abc")
		b := a.Share()
		c := b.Share()
		a.Release()
		if panicOf(a.Release) == "" || panicOf(func() { a.Share() }) == "" {
			t.Error("a released owner is valid")
		}
		if p.Len() != 1 || string(b.Bytes()) != "abc" || string(c.Bytes()) != "abc" {
			t.Errorf("%v, %v, %v", p, b, c)
		}
		if text := panicOf(func() { _, _ = b.Fill(nil) }); !strings.Contains(text, "shared") {
			t.Errorf("Fill of a shared buffer panicked with %q, want \"shared\" in it", text)
		}
		d, err := b.Append([]byte("d")) // makes a copy
		if err != nil || string(d.Bytes()) != "abcd" || string(c.Bytes()) != "abc" || panicOf(b.Release) == "" {
			t.Errorf("%v, %v", d, err)
		}
		ch := buf.NewChan(1)
		if err := ch.Send(t.Context(), c); err != nil || panicOf(c.Release) == "" {
			t.Errorf("%v", err)
		}
		if c, err = ch.Recv(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c, err = c.Append([]byte("e")); err != nil || string(c.Bytes()) != "abce" || p.Len() != 0 { // c is alone
			t.Errorf("%v, %v, %v", c, err, p)
		}
		c.Release()
		d.Release()
	})
}

// The memory is returned with the last buffer, and until then Close reports the missing buffers.
//
// Spec: BU-06 (a region is released once)
func TestRegionEndsWithItsLastBuffer(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		r, err := buf.NewRegion(1<<20, opt)
		if err != nil {
			t.Fatal(err)
		}
		p, err := buf.NewPool(r, 1<<10, 100)
		if err != nil {
			t.Fatal(err)
		}
		a := with(t, p, "still here")
		b := a.Share()
		c := get(t, p)
		if err := r.Close(); err == nil || !strings.Contains(err.Error(), "2 of 100 buffers not released") {
			t.Errorf("%v", err)
		}
		if _, err := p.Get(t.Context()); !errors.Is(err, coir.ErrClosed) {
			t.Errorf("%v", err)
		}
		if _, err := p.TryGet(); !errors.Is(err, coir.ErrClosed) {
			t.Errorf("%v", err)
		}
		if _, err := buf.NewPool(r, 1, 1); !errors.Is(err, coir.ErrClosed) {
			t.Errorf("%v", err)
		}
		c.Release()
		a.Release()
		if got := string(b.Bytes()); got != "still here" {
			t.Errorf("string(b.Bytes()) = %q, want \"still here\"", got)
		}
		if err := r.Close(); err == nil || !strings.Contains(err.Error(), "1 of 100 buffers not released") {
			t.Errorf("%v", err)
		}
		b.Release()
		if err := r.Close(); err != nil {
			t.Errorf("%v", err)
		}
		if panicOf(b.Release) == "" {
			t.Error("a buffer of a region that is gone can be released")
		}
	})
}

// NewPool fails if the region does not have enough memory left.
func TestRegionIsBounded(t *testing.T) {
	r, err := buf.NewRegion(1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		size, count int
		ok          bool
	}{{1, 10, true}, {64, 6, false}, {1 << 30, 1 << 20, false}, {65, 2, true}, {64, 1, true}, {1, 1, false}} {
		p, err := buf.NewPool(r, x.size, x.count)
		if (err == nil) != x.ok {
			t.Errorf("%d buffers of %d bytes: %v", x.count, x.size, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "buf: ") || p != nil) {
			t.Errorf("%v, %v", p, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, f := range []func(){
		func() { _, _ = buf.NewRegion(0) },
		func() { _, _ = buf.NewPool(r, 0, 1) },
		func() { _, _ = buf.NewPool(r, 1, 0) },
		func() { _, _ = buf.NewPool(r, math.MaxInt, 1) },
		func() { _, _ = buf.NewPool(r, 1, math.MaxInt) },
	} {
		if text := panicOf(f); !strings.HasPrefix(text, "buf: ") {
			t.Errorf("the panic is %q, want one that begins with \"buf: \"", text)
		}
	}
}

// A region reports whether it is off the heap.
func TestRegionSaysWhereItIs(t *testing.T) {
	for _, x := range []struct {
		opt  buf.Option
		want string
	}{{buf.WithHeap(), "on the heap"}, {buf.WithChecks(), "checked, on the heap"}} {
		r, err := buf.NewRegion(1, x.opt)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.String(), x.want) || r.OffHeap() {
			t.Errorf("a region of the heap is %v, want %q in its text", r, x.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	r, err := buf.NewRegion(1)
	if err != nil {
		t.Fatal(err)
	}
	if r.OffHeap() != strings.Contains(r.String(), "off the heap") {
		t.Errorf("OffHeap() = %v for the region %v, want what its text says", r.OffHeap(), r)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Sockets read into buffers and write from them.
func TestFillAndWriteTo(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 64, 3, opt)
		here, there := net.Pipe()
		go func() {
			_, _ = there.Write([]byte("hello"))
			_ = there.Close()
		}()
		b := get(t, p)
		b, err := b.Fill(here.Read)
		if err != nil || string(b.Bytes()) != "hello" {
			t.Errorf("%v, %v", b, err)
		}
		if b, err = b.Fill(here.Read); err != io.EOF || b.Len() != 5 {
			t.Errorf("%v, %v", b, err)
		}
		var out bytes.Buffer
		if n, err := b.WriteTo(&out); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		world := with(t, p, " world")
		v := buf.Buffers(b, world)
		if n, err := v.WriteTo(&out); n != 11 || err != nil || out.String() != "hellohello world" {
			t.Errorf("%d, %v, %q", n, err, &out)
		}
		full := b.Slice(0, b.Cap())
		if _, err := full.Fill(here.Read); err != io.ErrShortBuffer {
			t.Errorf("%v", err)
		}
		if text := panicOf(func() { _, _ = b.Fill(func(p []byte) (int, error) { return len(p) + 1, nil }) }); text == "" {
			t.Error("a reader lies")
		}
		b.Release()
		world.Release()
	})
}

// Get, Release, Send and Recv do not allocate.
func TestNoAllocations(t *testing.T) {
	p := newPool(t, 64, 2)
	if checkedBuild {
		t.Skip("a checked build allocates")
	}
	c := buf.NewChan(1)
	ctx := context.Background()
	for name, f := range map[string]func(){
		"Get and Release": func() {
			b, err := p.Get(ctx)
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		},
		"Send and Recv": func() {
			b, _ := p.TryGet()
			if err := c.Send(ctx, b); err != nil {
				t.Fatal(err)
			}
			b, _ = c.Recv(ctx)
			b.Release()
		},
		"HandOver": func() {
			b, _ := p.TryGet()
			_ = buf.HandOver(b, func(b buf.Buf) error { b.Release(); return nil })
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
