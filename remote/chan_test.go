package remote_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
)

// A Send whose context ends says whether it waited for room or for the broker.
func TestSendSaysWhatItWaitedFor(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		b := memory.New()
		c, err := remote.Durable[int](ctx, n, b.Node("full"), orders, 1)
		if err != nil {
			return err
		}
		defer c.Leave()
		away, err := remote.Durable[int](ctx, n, unreachable{b.Node("away")}, orders, 1)
		if err != nil {
			return err
		}
		defer away.Leave()
		if err := c.Send(ctx, 1); err != nil {
			return err
		}
		for _, p := range []struct {
			c    *remote.Chan[int]
			want error
			not  error
		}{{c, remote.ErrFull, remote.ErrUnavailable}, {away, remote.ErrUnavailable, remote.ErrFull}} {
			short, cancel := coir.WithTimeout(ctx, time.Millisecond)
			err := p.c.Send(short, 2)
			cancel()
			if !errors.Is(err, p.want) || errors.Is(err, p.not) || !errors.Is(err, coir.ErrTimeout) ||
				errors.Is(err, remote.ErrUnknown) {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// unreachable is a transport that cannot publish.
type unreachable struct{ remote.Transport }

func (unreachable) Publish(context.Context, string, remote.Msg) error { return remote.ErrUnavailable }

// Each end has one codec. A value goes through the codec and back.
func TestCodecs(t *testing.T) {
	type value struct{ Text string }
	for _, codec := range []remote.Codec{remote.JSON, remote.Gob} {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			c, err := remote.Durable[value](ctx, n, memory.New().Node("only"), orders, 1, remote.WithCodec(codec))
			if err != nil {
				return err
			}
			defer c.Leave()
			if err := c.Send(ctx, value{"text"}); err != nil {
				return err
			}
			it, err := c.Recv(ctx)
			if err == nil && it.Value.Text != "text" {
				t.Errorf("%T: %v", codec, it.Value)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A channel of []byte sends its values unchanged, and does not keep its caller's slice. The codec Bytes refuses values
// of other types.
func TestBytesAreSentAsTheyAre(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[[]byte](ctx, n, memory.New().Node("only"), orders, 1)
		if err != nil {
			return err
		}
		defer c.Leave()
		sent := []byte("a\x00b")
		if err := c.Send(ctx, sent); err != nil {
			return err
		}
		sent[0] = 'x'
		it, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if data := string(it.Delivery().Msg().Data); string(it.Value) != "a\x00b" || data != "a\x00b" {
			t.Errorf("%q, from %q", it.Value, data)
		}
		it.Value[0] = 'y'
		if data := it.Delivery().Msg().Data; data[0] != 'a' {
			t.Errorf("the receiver has changed the stored value to %q", data)
		}
		texts, err := remote.Durable[string](ctx, n, memory.New().Node("other"), orders, 1, remote.WithCodec(remote.Bytes))
		if err != nil {
			return err
		}
		defer texts.Leave()
		if err := texts.Send(ctx, "text"); err == nil || !strings.Contains(err.Error(), "this is a string") {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A buffer of package buf cannot leave its process: the send fails, and the sender still has the buffer.
//
// Spec: BU-07 (missing descriptor support is ErrUnsupported)
func TestBufferIsNotSent(t *testing.T) {
	region, err := buf.NewRegion(64, buf.WithChecks())
	if err != nil {
		t.Fatal(err)
	}
	frames, err := buf.NewPool(region, 64, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := frames.TryGet()
	if err != nil {
		t.Fatal(err)
	}
	for _, codec := range []remote.Codec{remote.JSON, remote.Gob} {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			c, err := remote.Durable[buf.Buf](ctx, n, memory.New().Node("only"), orders, 1, remote.WithCodec(codec))
			if err != nil {
				return err
			}
			defer c.Leave()
			err = buf.HandOver(b, func(b buf.Buf) error { return c.Send(ctx, b) })
			if err == nil || !strings.Contains(err.Error(), "cannot be encoded") || c.Stats().Sent != 0 {
				t.Errorf("%T: %v, %+v", codec, err, c.Stats())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	b.Release()
	if err := region.Close(); err != nil {
		t.Error(err)
	}
}

// A full channel fails, or drops and counts, if an option says so.
func TestOverflow(t *testing.T) {
	for over, want := range map[coir.OverflowPolicy]error{coir.OverflowFail: remote.ErrFull, coir.OverflowDropNewest: nil} {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			c, err := remote.Durable[int](ctx, n, memory.New().Node("only"), orders, 1, remote.WithOverflow(over))
			if err != nil {
				return err
			}
			defer c.Leave()
			if err := c.Send(ctx, 1); err != nil {
				return err
			}
			err = c.Send(ctx, 2)
			if !errors.Is(err, want) || want != nil && !errors.Is(err, coir.ErrWouldBlock) {
				t.Errorf("%v: %v", over, err)
			}
			if st := c.Stats(); st.Sent != 1 || st.Dropped > 0 != (want == nil) {
				t.Errorf("%v: %+v", over, st)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A transport that promises less than the channel needs is refused.
func TestMeaningIsAskedFor(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		node := memory.New(memory.WithMeaning(remote.MeaningStored)).Node("only")
		if _, err := remote.Durable[int](ctx, n, node, orders, 1); err == nil {
			t.Error("a transport that only stores is durable")
		}
		c, err := remote.Durable[int](ctx, n, node, orders, 1, remote.WithMeaning(remote.MeaningStored))
		if err != nil {
			return err
		}
		defer c.Leave()
		if m := c.Stats().Meaning; m != remote.MeaningStored {
			t.Error(m)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// An end whose context has ended is left. Its operations return the error of that context too, whichever context they
// have, because they cannot know which of the two the end noticed first.
func TestLeftByItsContext(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		short, cancel := coir.WithCancel(ctx)
		defer cancel()
		c, err := remote.Durable[int](short, n, memory.New().Node("only"), orders, 1)
		if err != nil {
			return err
		}
		cancel()
		errSend := c.Send(ctx, 1)
		_, errRecv := c.Recv(ctx)
		for _, err := range []error{errSend, errRecv} {
			if !errors.Is(err, coir.ErrClosed) || !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		var last error
		for _, err := range c.All(ctx) {
			last = err
		}
		if !errors.Is(last, context.Canceled) {
			t.Error(last)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A value is settled once, and an item that was not received cannot be settled.
func TestAValueIsSettledOnce(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, memory.New().Node("only"), orders, 1)
		if err != nil {
			return err
		}
		defer c.Leave()
		if err := c.Send(ctx, 1); err != nil {
			return err
		}
		received, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if received.Delivery() == nil {
			t.Error("a value that is held has no delivery")
		}
		if err := received.Ack(ctx); err != nil {
			return err
		}
		if received.Delivery() == nil {
			t.Error("a value that is settled has no delivery")
		}
		for what, it := range map[string]*remote.Item[int]{"settled": received, "made by the program": {Value: 1}} {
			it.Hold(ctx)
			it.Nak(0)
			for i, err := range []error{it.Ack(ctx), it.Fail(ctx, errors.New("failed")), it.Reject(ctx, "wrong")} {
				if !errors.Is(err, remote.ErrSettled) {
					t.Errorf("%s: operation %d: %v", what, i, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// An ID can be parsed from its text only.
func TestIDText(t *testing.T) {
	id := remote.ID{Sender: 0xfedcba9876543210, Seq: 7}
	var back remote.ID
	if err := back.UnmarshalText([]byte(id.String())); err != nil || back != id {
		t.Error(back, err)
	}
	for _, text := range []string{"", "12", id.String() + "00", id.String()[1:] + "x"} {
		if back.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is an ID", text)
		}
	}
}

// broken is a transport whose pulls fail, or where serving the subject of wants fails a few times.
type broken struct {
	remote.Transport
	pull   error
	serves *atomic.Int32 // how many more times it fails
}

func (b broken) Pull(ctx context.Context, queue string, credit int) ([]remote.Delivery, error) {
	if b.pull != nil {
		return nil, b.pull
	}
	return b.Transport.Pull(ctx, queue, credit)
}

func (b broken) Serve(ctx context.Context, subject string, f func(data []byte) []byte) (io.Closer, error) {
	if strings.HasPrefix(subject, "want.") && b.serves != nil && b.serves.Add(-1) >= 0 {
		return nil, remote.ErrUnavailable
	}
	return b.Transport.Serve(ctx, subject, f)
}

// If the transport fails for good, the receives of an end return its error, which is not mistaken for the end of the
// channel.
func TestAnErrorThatStaysIsReceived(t *testing.T) {
	refused := errors.New("pulls are not permitted")
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, broken{Transport: memory.New().Node("only"), pull: refused}, orders, 1)
		if err != nil {
			return err
		}
		defer c.Leave()
		for range 2 {
			if _, err := c.Recv(ctx); !errors.Is(err, refused) || errors.Is(err, coir.ErrClosed) {
				t.Errorf("Recv: %v", err)
			}
		}
		var last error
		for _, err := range c.All(ctx) {
			last = err
		}
		if !errors.Is(last, refused) {
			t.Errorf("All: %v", last)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A receiving end that cannot begin at first tries again.
func TestReceivingBeginsLater(t *testing.T) {
	for _, open := range []func(context.Context, *coir.Nursery, remote.Transport, string, int, ...remote.Option,
	) (*remote.Chan[int], error){remote.Durable[int], remote.Volatile[int]} {
		serves := new(atomic.Int32)
		serves.Store(3)
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			c, err := open(ctx, n, broken{Transport: memory.New().Node("only"), serves: serves}, orders, 1)
			if err != nil {
				return err
			}
			defer c.Leave()
			n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
			it, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			return it.Ack(ctx)
		})
		if err != nil || serves.Load() > 0 {
			t.Errorf("%v, with %d failures to come", err, serves.Load())
		}
	}
}

// halved is a transport that can serve only a few subjects, and counts the subjects that are served.
type halved struct {
	remote.Transport
	most int
	now  *int
}

func (h halved) Serve(ctx context.Context, subject string, f func(data []byte) []byte) (io.Closer, error) {
	if *h.now == h.most {
		return nil, errors.New("no more subjects")
	}
	*h.now++
	s, err := h.Transport.Serve(ctx, subject, f)
	return counted{s, h.now}, err
}

type counted struct {
	io.Closer
	now *int
}

func (c counted) Close() error {
	*c.now--
	return c.Closer.Close()
}

// A channel that cannot be opened leaves nothing behind.
func TestAFailedOpenLeavesNothing(t *testing.T) {
	for most := range 2 {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			var now int
			tr := halved{memory.New().Node("only"), most, &now}
			if _, err := remote.Durable[int](ctx, n, tr, orders, 1); err == nil || now != 0 {
				t.Errorf("Durable: %v, and %d subjects are still served", err, now)
			}
			if _, err := remote.Volatile[int](ctx, n, tr, orders, 1); err == nil || now != 0 {
				t.Errorf("Volatile: %v, and %d subjects are still served", err, now)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A transport whose leases have no duration is refused, because nothing could renew them.
func TestALeaseHasATime(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		_, err := remote.Durable[int](ctx, n, memory.New(memory.WithLease(-1)).Node("only"), orders, 1)
		if err == nil || !strings.Contains(err.Error(), "lease") {
			t.Errorf("%v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
