package buf_test

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/netio"
)

// A connection of netio reads into a buffer and writes from it. While a read waits, the buffer cannot be released.
func TestConnectionReadsIntoABuffer(t *testing.T) {
	each(t, func(t *testing.T, opt buf.Option) {
		p := newPool(t, 64, 2, opt)
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			n.Go("echo", func(ctx context.Context) error {
				c, err := l.Accept()
				if err != nil {
					return err
				}
				defer c.Close()
				b, err := get(t, p).Fill(c.Read)
				defer b.Release()
				if err != nil {
					return err
				}
				_, err = b.WriteTo(c)
				return err
			})
			c, err := netio.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := c.Write([]byte("hello")); err != nil {
				return err
			}
			b, err := get(t, p).Fill(func(room []byte) (int, error) { return c.Read(room) })
			if err != nil || string(b.Bytes()) != "hello" {
				t.Errorf("%v, %v", b, err)
			}
			b.Release()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
