package buf_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/desk"
)

// A reader fills buffers, and hands them to a writer. There are four buffers, so the reader is at most four ahead.
func Example() {
	region, err := buf.NewRegion(4 * 64 << 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	frames, err := buf.NewPool(region, 64<<10, 4, coir.WithName("frames"))
	if err != nil {
		fmt.Println(err)
		return
	}
	source := strings.NewReader("some bytes")
	err = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		filled := buf.NewChan(4, coir.WithName("filled"))
		n.Go("reader", func(ctx context.Context) error {
			defer filled.Close()
			for source.Len() > 0 {
				b, err := frames.Get(ctx)
				if err != nil {
					return err
				}
				if b, err = b.Fill(source.Read); err == nil {
					err = filled.Send(ctx, b)
				}
				if err != nil {
					b.Release() // it was not sent
					return err
				}
			}
			return nil
		})
		for b, err := range filled.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", b.Bytes())
			b.Release()
		}
		return nil
	})
	fmt.Println(err, region.Close())
	// Output:
	// some bytes
	// <nil> <nil>
}

// pool returns a pool of two buffers in a checked region, for the examples.
func pool() (*buf.Region, *buf.Pool) {
	region, _ := buf.NewRegion(1<<10, buf.WithChecks())
	p, _ := buf.NewPool(region, 100, 2, coir.WithName("frames"))
	return region, p
}

// In a checked region, Close reports where the buffers that were not released were made.
func ExampleRegion_Close() {
	region, p := pool()
	_, _ = p.TryGet()
	fmt.Println(region.Close())
	// Output:
	// buf: frames: 1 of 2 buffers not released: made at buf/example_test.go:71
}

// A select waits for a buffer or for another event.
func ExamplePool_GetCase() {
	region, p := pool()
	quit := coir.NewEvent()
	var b buf.Buf
	switch i, err := coir.Select(context.Background(), p.GetCase(&b), quit.DoneCase()); {
	case err != nil:
		fmt.Println(err)
	case i == 0:
		fmt.Println("a buffer of", b.Cap(), "bytes")
		b.Release()
	}
	fmt.Println(region.Close())
	// Output:
	// a buffer of 100 bytes
	// <nil>
}

// The answer of a ticket is a buffer. Completing the ticket hands the buffer over.
func ExampleHandOver() {
	region, p := pool()
	replies := desk.New[buf.Buf]()
	ticket, _ := replies.Open(context.Background())

	b, _ := p.TryGet()
	b, _ = b.Append([]byte("the answer"))
	resolve := func(b buf.Buf) error { return replies.Resolve(ticket.ID(), b) }
	if err := buf.HandOver(b, resolve); err != nil {
		b.Release() // it was not handed over
	}

	answer, _ := ticket.Wait(context.Background())
	fmt.Printf("%s\n", answer.Bytes())
	err := buf.HandOver(answer, resolve)
	fmt.Println(errors.Is(err, desk.ErrDuplicate))
	answer.Release() // the waiter owns it
	fmt.Println(region.Close())
	// Output:
	// the answer
	// true
	// <nil>
}

// Several readers share one buffer, without a copy.
func ExampleBuf_Share() {
	region, p := pool()
	b, _ := p.TryGet()
	b, _ = b.Append([]byte("news"))
	for i := range 2 {
		s := b.Share()
		fmt.Printf("reader %d: %s\n", i, s.Bytes())
		s.Release()
	}
	b.Release()
	fmt.Println(region.Close())
	// Output:
	// reader 0: news
	// reader 1: news
	// <nil>
}
