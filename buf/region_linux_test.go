package buf_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/coir-go/coir/buf"
)

// mapped reports whether memory is mapped at the address.
func mapped(t *testing.T, at uintptr) bool {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && from <= at && at < to {
			return true
		}
	}
	return false
}

// The memory of a region is returned to the system with the last buffer, and not before.
//
// Spec: BU-06 (a region is released once)
func TestMemoryGoesBackToTheSystem(t *testing.T) {
	if checkedBuild {
		t.Skip("a checked region is on the heap")
	}
	const size = 1 << 20
	for range 10 {
		r, err := buf.NewRegion(64 * size)
		if err != nil || !r.OffHeap() {
			t.Fatalf("%v, %v", r, err)
		}
		p, err := buf.NewPool(r, size, 64)
		if err != nil {
			t.Fatal(err)
		}
		a, b := get(t, p), get(t, p)
		at := uintptr(unsafe.Pointer(unsafe.SliceData(a.Slice(0, size).Bytes()))) + 32*size
		a.Release()
		if err := r.Close(); err == nil || !mapped(t, at) {
			t.Errorf("%v, mapped: %v", err, mapped(t, at))
		}
		s := b.Share()
		b.Release()
		if !mapped(t, at) {
			t.Error("not mapped, though there is a share")
		}
		s.Release()
		if err := r.Close(); err != nil || mapped(t, at) {
			t.Errorf("%v, mapped: %v", err, mapped(t, at))
		}
	}
}
