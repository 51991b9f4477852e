package buf_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// givenOrChecked runs f with an option that leaves a region in the memory that it is given, and with checks.
func givenOrChecked(t *testing.T, f func(t *testing.T, opt buf.Option)) {
	t.Run("given", func(t *testing.T) { f(t, buf.WithName("r")) })
	t.Run("checked", func(t *testing.T) { f(t, buf.WithChecks()) })
}

// A region of the caller's memory has its buffers in that memory, unless it is checked, and frees the memory once.
//
// Spec: BU-06 (a region is released once)
func TestRegionOfGivenMemory(t *testing.T) {
	givenOrChecked(t, func(t *testing.T, opt buf.Option) {
		mem, freed := make([]byte, 4*64), 0
		r, err := buf.NewRegion(len(mem), opt, buf.WithMemory(mem, func() error { freed++; return nil }))
		if err != nil {
			t.Fatal(err)
		}
		p, err := buf.NewPool(r, 64, 4)
		if err != nil {
			t.Fatal(err)
		}
		b := with(t, p, "here")
		if in := &mem[0] == unsafe.SliceData(b.Bytes()); in != r.OffHeap() {
			t.Errorf("the first buffer is in the memory: %t, and the region says %t", in, r.OffHeap())
		}
		if err := r.Close(); err == nil || freed != 0 {
			t.Errorf("Close: %v, freed %d times; a buffer is not released", err, freed)
		}
		b.Release()
		if err := r.Close(); err != nil || freed != 1 {
			t.Errorf("Close: %v, freed %d times, want 1", err, freed)
		}
	})
}

// No method writes to a buffer of read-only memory.
func TestReadOnlyRegion(t *testing.T) {
	givenOrChecked(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 64, 1, opt, buf.WithMemory(make([]byte, 64), func() error { return nil }), buf.WithReadOnly())
		b := get(t, p)
		defer b.Release()
		if _, err := b.Append([]byte("x")); !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("Append: %v, want ErrWouldBlock: there is no other buffer", err)
		}
		text := panicOf(func() { _, _ = b.Fill(func(p []byte) (int, error) { return 0, nil }) })
		if !strings.Contains(text, "read-only") {
			t.Errorf("Fill: %q", text)
		}
	})
}

// OnRelease gets a buffer when its last owner has released it, and decides whether it goes back to the pool.
func TestOnReleaseKeepsBuffers(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		var kept []buf.Buf
		keeps := true
		p := newPool(t, 64, 2, opt, buf.OnRelease(func(b buf.Buf) bool {
			if keeps {
				kept = append(kept, b)
			}
			return keeps
		}))
		b := with(t, p, "text")
		share := b.Share()
		b.Release()
		if len(kept) != 0 {
			t.Error("a shared buffer was kept before its last owner released it")
		}
		share.Release()
		if len(kept) != 1 || kept[0].Len() != 0 || p.Len() != 1 {
			t.Fatalf("kept %v, %d free; want one empty buffer, and 1", kept, p.Len())
		}
		if text := panicOf(func() { b.Bytes() }); text == "" {
			t.Error("the released Buf is valid again")
		}
		keeps = false
		kept[0].Release()
		if p.Len() != 2 {
			t.Errorf("%d free, want 2", p.Len())
		}
	})
}
