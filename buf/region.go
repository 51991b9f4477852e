package buf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coir-go/coir"
)

// Region is a piece of memory of a fixed size, from which pools take their buffers. The pools are its size classes:
// each reserves its part when it is created, so a pool never takes memory from another, and the region's size bounds
// the memory of all buffers. The system provides each page when it is first used.
type Region struct {
	name    string
	size    int
	mem     []byte
	mapped  bool
	checked bool
	fixed   bool           // read-only
	free    func() error   // frees the memory, or nil
	keep    func(Buf) bool // set by OnRelease, or nil
	left    atomic.Int64   // buffers that are not retired, plus 1 until Close: see retire

	mu     sync.Mutex
	used   atomic.Int64 // bytes that pools have reserved; changed under mu
	closed bool
	pools  atomic.Pointer[[]*Pool] // ordered by size; changed under mu
}

// Option is an option of [NewRegion].
type Option func(*settings)

type settings struct {
	name                   string
	onHeap, checked, fixed bool
	mem                    []byte
	free                   func() error
	keep                   func(Buf) bool
}

// WithName gives the region a name, which errors show.
func WithName(name string) Option { return func(o *settings) { o.name = name } }

// WithHeap puts the region on the Go heap, as one allocation without pointers. It counts as heap for the pace of the
// garbage collector, and a slice that outlives the region stays valid.
func WithHeap() Option { return func(o *settings) { o.onHeap = true } }

// WithChecks makes the region a checked one, in any build: see the package comment. It is slow, and meant for tests.
func WithChecks() Option { return func(o *settings) { o.checked = true } }

// WithMemory creates the region in memory that the caller provides, which must be at least as long as the region, off
// the Go heap, and not used for anything else. The region calls free when it no longer needs mem. A checked region does
// not use mem: its buffers are on the heap.
//
// Use it for special memory, such as that of a device, or memory that another process can read, as in package shm.
func WithMemory(mem []byte, free func() error) Option {
	return func(o *settings) { o.mem, o.free = mem, free }
}

// WithReadOnly says that the memory of [WithMemory] can only be read. Its buffers behave as if they were always shared:
// see [Buf.Share].
func WithReadOnly() Option { return func(o *settings) { o.fixed = true } }

// OnRelease calls keep when the last owner of a buffer has released it, before the buffer returns to its pool. If keep
// returns true, the buffer does not return: keep owns the Buf that it was called with, which is empty. If keep returns
// false, it must not use that Buf any more. keep runs in the fiber or goroutine that releases the buffer. It must be
// short and must not wait.
func OnRelease(keep func(Buf) bool) Option { return func(o *settings) { o.keep = keep } }

// NewRegion creates a region of the given number of bytes. It is off the Go heap, unless an option says otherwise, the
// region is checked, or the system cannot map memory: see [Region.OffHeap]. The garbage collector does not free memory
// off the heap: close the region when it is no longer needed.
func NewRegion(bytes int, opts ...Option) (*Region, error) {
	// Spec: BU-04 (a descriptor stays within its region)
	if bytes < 1 {
		panic(fmt.Sprintf("buf: NewRegion(%d): a region has at least one byte", bytes))
	}
	var o settings
	for _, opt := range opts {
		opt(&o)
	}
	if o.mem != nil && (len(o.mem) < bytes || o.onHeap) {
		panic(fmt.Sprintf("buf: NewRegion(%d) with %d bytes of memory: it needs all of its size, and not WithHeap",
			bytes, len(o.mem)))
	}
	r := &Region{name: o.name, size: bytes, fixed: o.fixed, free: o.free, keep: o.keep}
	r.checked = o.checked || alwaysChecked || coir.Simulated(context.Background()) != nil
	r.mapped = (canMap || o.mem != nil) && !o.onHeap && !r.checked
	r.left.Store(1)
	r.pools.Store(new([]*Pool))
	switch {
	case r.mapped && o.mem != nil:
		r.mem = o.mem[:bytes:bytes]
	case r.mapped:
		mem, err := mapMemory(bytes)
		if err != nil {
			return nil, fmt.Errorf("buf: NewRegion(%d): cannot map the memory: %w", bytes, err)
		}
		r.mem, r.free = mem, func() error { return unmapMemory(mem) }
	case !r.checked: // buffers of a checked region have their own memory
		r.mem = make([]byte, bytes)
	}
	return r, nil
}

// OffHeap reports whether the region is off the Go heap.
func (r *Region) OffHeap() bool { return r.mapped }

// Close closes the region and its pools. Waiting and later calls of Get return an error that matches [coir.ErrClosed].
// The memory is freed when the last buffer has been released, during Close or later. If buffers have not been released,
// Close returns an error that says how many, and, in a checked region, where they were made. To check again later, call
// Close again.
func (r *Region) Close() error {
	// Spec: BU-06 (a region is released once)
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	pools := *r.pools.Load()
	r.mu.Unlock()
	var found []error
	for _, p := range pools {
		p.Close()
	}
	if first {
		if err := r.retire(1); err != nil {
			found = append(found, err)
		}
	}
	for _, p := range pools {
		found = append(found, p.leaks()...)
	}
	return errors.Join(found...)
}

// retire counts n of the things that keep the memory alive: buffers that will not be lent again, and the open region.
// The last one frees the memory. Each is counted once: a buffer by the state of its slot, the region by closed.
//
// Spec: BU-06 (a region is released once)
func (r *Region) retire(n int) error {
	if r.left.Add(int64(-n)) != 0 || r.free == nil {
		return nil
	}
	if err := r.free(); err != nil {
		return fmt.Errorf("buf: %v: cannot unmap the memory: %w", r, err)
	}
	return nil
}

// reserve returns the part of the region for count buffers of stride bytes each, and adds p to its pools.
func (r *Region) reserve(p *Pool, count, stride int) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("buf: NewPool of %v: %w", r, coir.ErrClosed)
	}
	used := int(r.used.Load())
	if count > (r.size-used)/stride {
		return nil, fmt.Errorf("buf: NewPool of %v: %d buffers of %d bytes need %d bytes, and %d are left", r,
			count, stride, uint64(count)*uint64(stride), r.size-used)
	}
	n := count * stride
	var part []byte
	if r.mem != nil {
		part = r.mem[used : used+n : used+n]
	}
	r.used.Store(int64(used + n))
	r.left.Add(int64(count))
	pools := append(slices.Clone(*r.pools.Load()), p)
	slices.SortStableFunc(pools, func(a, b *Pool) int { return cmp.Compare(a.size, b.size) })
	r.pools.Store(&pools)
	return part, nil
}

// tryGet returns a buffer of at least n bytes, of the smallest size that has a free one.
func (r *Region) tryGet(what string, n int) (Buf, error) {
	fits := false
	for _, p := range *r.pools.Load() {
		if n > p.size {
			continue
		}
		fits = true
		if b, err := p.tryGet(); err == nil {
			return b, nil
		}
	}
	if fits {
		return Buf{}, fmt.Errorf("buf: %s: all buffers of %d bytes or more of %v are lent: %w",
			what, n, r, coir.ErrWouldBlock)
	}
	return Buf{}, fmt.Errorf("buf: %s: %v has no buffers of %d bytes or more", what, r, n)
}

// String returns a short description of the region.
func (r *Region) String() string {
	where := "on the heap"
	switch {
	case r.checked:
		where = "checked, on the heap"
	case r.mapped:
		where = "off the heap"
	}
	return fmt.Sprintf("buf.Region(%s, %d of %d bytes reserved, %s)",
		cmp.Or(r.name, "no name"), r.used.Load(), r.size, where)
}
