package buf_test

import (
	"fmt"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// newPool returns a pool of count buffers, in a region of its own that the test closes.
func newPool(t testing.TB, size, count int, opts ...buf.Option) *buf.Pool {
	t.Helper()
	r, err := buf.NewRegion(count*((size+63)/64*64), opts...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := buf.NewPool(r, size, count, coir.WithName("frames"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// get returns a free buffer.
func get(t testing.TB, p *buf.Pool) buf.Buf {
	t.Helper()
	b, err := p.TryGet()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// with returns a buffer with contents.
func with(t testing.TB, p *buf.Pool, text string) buf.Buf {
	t.Helper()
	b, err := get(t, p).Append([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// panicOf returns the text of the panic of f, or "".
func panicOf(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}
