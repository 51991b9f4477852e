package coir_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/snapshot"
)

// shelf is a type that is built on a channel, as a channel to another process is.
type shelf struct {
	in   *coir.Chan[int]
	room coir.Event
}

var (
	putVerb  = &coir.Verb{Name: "put", Waits: "to put on shelf", Ends: "take from", Of: "shelf"}
	takeVerb = &coir.Verb{Name: "take", Waits: "to take from shelf", Ends: "put on", Of: "shelf"}
)

func newShelf(name string) *shelf {
	s := &shelf{in: coir.NewChan[int](0, coir.WithName(name))}
	s.in.Describe(takeVerb)
	s.in.Show(func(o *snapshot.Object) {
		o.Len, o.Cap, o.Note, o.Made = 3, 3, "full, 3 of 3", "shop/main.go:7"
		o.Trouble, o.TroubleSince = "no light", time.Unix(1, 0)
	})
	return s
}

// put waits for several things in turn.
func (s *shelf) put(ctx context.Context) error {
	in, end := s.in.SendScope(ctx, putVerb)
	defer end()
	short, cancel := coir.WithTimeout(in, time.Millisecond)
	err := s.room.Wait(short)
	cancel()
	if !errors.Is(err, coir.ErrTimeout) {
		return err
	}
	_, err = coir.Select(in, s.room.DoneCase(), coir.After(time.Hour))
	return err
}

// A type that is built on a channel says what its object is, and all waits of one of its operations are waits to send.
func TestSnapshotShowsATypeBuiltOnAChannel(t *testing.T) {
	rt := coir.NewRuntime()
	defer func() { _ = rt.Close(context.Background()) }()
	s := newShelf("books")
	began := time.Now()
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("author", s.put)
		n.Go("author under a deadline", func(ctx context.Context) error {
			ctx, cancel := coir.WithTimeout(ctx, 2*time.Hour)
			defer cancel()
			return s.put(ctx)
		})
		n.Go("reader", func(ctx context.Context) error {
			_, err := s.in.Recv(ctx)
			return err
		})
		n.Go("other", func(ctx context.Context) error { // a child of a fiber that puts is not such a fiber
			in, end := s.in.SendScope(ctx, putVerb)
			defer end()
			return coir.Run(in, func(_ context.Context, n *coir.Nursery) error {
				n.Go("child", coir.WaitCancel)
				return nil
			})
		})
		go func() { // with a context of the runtime
			_ = s.put(ctx)
		}()
		return nil
	})
	got := snapshotWhen(t, rt, "all wait in a select", func(s *snapshot.Snapshot) bool {
		o := objectIn(s, "books")
		return waiting("author", "author under a deadline", "reader", "child")(s) && o != nil &&
			o.Senders == 3 && o.Receivers == 1
	})
	o := objectIn(got, "books")
	if o.Kind != "shelf" || o.Len != 3 || o.Note != "full, 3 of 3" || o.Made == "" || o.Trouble != "no light" ||
		o.TroubleSince.IsZero() {
		t.Errorf("the snapshot has %+v; want what Show has set", o)
	}
	if o.High+int(o.Receiver+o.ReceiverBefore+o.Sender+o.SenderBefore) != 0 || o.FromOutside || o.ToOutside {
		t.Errorf("the snapshot has %+v; want no field of the channel that Show does not promise", o)
	}
	for i := range got.Fibers {
		f := &got.Fibers[i]
		want, kind := "to put on shelf books (full, 3 of 3)", snapshot.WaitSend
		switch {
		case f.Name == "reader":
			want, kind = "to take from shelf books (full, 3 of 3)", snapshot.WaitRecv
		case f.Name == "child":
			want, kind = "for a cancel", snapshot.WaitCancel
		case !strings.HasPrefix(f.Name, "author") && f.State != snapshot.StateGoroutine:
			continue
		}
		if len(f.Wait) != 1 || f.Wait[0].Text != want || f.Wait[0].Kind != kind {
			t.Errorf("%s waits for %+v, want one wait of kind %v, %q", f.Name, f.Wait, kind, want)
		}
		if kind == snapshot.WaitSend && (f.Wait[0].Object != o.ID || f.Since.Before(began.Add(-time.Second)) ||
			f.Since.After(time.Now())) {
			t.Errorf("%s: %+v, want a wait for object %d since about %v", f.Name, f, o.ID, began)
		}
		deadline := f.Name == "author under a deadline"
		if kind == snapshot.WaitSend && f.Until.IsZero() == deadline {
			t.Errorf("%s waits until %v", f.Name, f.Until)
		}
	}
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
