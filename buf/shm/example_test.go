package shm_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf/shm"
)

// A link has two ends. Here both are in one process; in a real program, one process has the function consume, and the
// other has produce.
func Example() {
	dir, err := os.MkdirTemp("", "frames")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("produce", func(ctx context.Context) error { return produce(ctx, l.Addr().String()) })
		return consume(ctx, l)
	})
	fmt.Println("error:", err)
	// Output:
	// received frame 1
	// received frame 2
	// received frame 3
	// error: <nil>
}

func produce(ctx context.Context, address string) error {
	conn, err := net.Dial("unix", address)
	if err != nil {
		return err
	}
	out, err := shm.NewSender(ctx, conn, 4096, 8, shm.WithName("frames"))
	if err != nil {
		return err
	}
	defer out.Close()
	for i := range 3 {
		b, err := out.Get(ctx)
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintf(&b, "frame %d", i+1); err == nil {
			err = out.Send(ctx, b)
		}
		if err != nil {
			b.Release()
			return err
		}
	}
	return nil
}

func consume(ctx context.Context, l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	in, err := shm.NewReceiver(ctx, conn, shm.WithName("frames"))
	if err != nil {
		return err
	}
	defer in.Close()
	for b, err := range in.All(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("received %s\n", b.Bytes())
		b.Release()
	}
	return nil
}
