package coir_test

// The errors of operations on channels: what they are, and what they say.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// The error of a closed channel names the operation and the channel, and says why.
//
// Spec: CH-37 (abort is the hard close)
func TestErrorsNameTheChannel(t *testing.T) {
	cause := errors.New("disk is full")
	closeThenAbort := func(c *coir.Chan[int]) bool { return c.Close() && !c.Abort(cause) }
	abort := func(cause error) func(*coir.Chan[int]) bool {
		return func(c *coir.Chan[int]) bool { return c.Abort(cause) }
	}
	for _, x := range []struct {
		name string
		end  func(*coir.Chan[int]) bool
		text string // after the operation, if the channel has a name
	}{
		{"orders", (*coir.Chan[int]).Close, "channel is closed"},
		{"orders", abort(cause), "channel was aborted: disk is full"},
		{"orders", abort(nil), "channel was aborted"},
		{"orders", closeThenAbort, "channel was aborted: disk is full"},
		{"", (*coir.Chan[int]).Close, "channel is closed"},
		{"", abort(nil), "channel was aborted"},
		{"", abort(cause), "channel was aborted: disk is full"},
		{"", closeThenAbort, "channel was aborted: disk is full"},
	} {
		c := coir.NewChan[int](0, coir.WithName(x.name))
		if c.Name() != x.name || !x.end(c) {
			t.Fatalf("channel %q", c.Name())
		}
		for _, op := range operationsOn(t.Context(), c) {
			want := "coir: " + x.text
			if x.name != "" {
				want = "coir: " + op.verb + ": " + x.text
			}
			err := op.err
			if err == nil || !errors.Is(err, coir.ErrClosed) || err.Error() != want {
				t.Errorf("the error is %q, want %q", err, want)
			}
			if errors.Is(err, cause) != strings.Contains(x.text, cause.Error()) {
				t.Errorf("%q, and it is the cause of Abort: %v", err, errors.Is(err, cause))
			}
			for _, other := range []error{coir.ErrTimeout, coir.ErrWouldBlock, context.Canceled, context.DeadlineExceeded} {
				if errors.Is(err, other) {
					t.Errorf("%q is %q too", err, other)
				}
			}
		}
	}
}

// failing is an operation that failed.
type failing struct {
	verb string
	err  error
}

// operationsOn returns the results of all operations on a channel on which none can succeed.
func operationsOn(ctx context.Context, c *coir.Chan[int]) []failing {
	_, recv := c.Recv(ctx)
	_, timed := c.RecvTimeout(ctx, 1)
	_, tried := c.TryRecv()
	_, recvMany := c.RecvMany(ctx, make([]int, 2))
	_, recvBatch := c.RecvBatch(ctx, make([]int, 2), time.Hour)
	_, sendMany := c.SendMany(ctx, []int{1, 2})
	_, selected := coir.Select(ctx, c.RecvCase(nil))
	_, selectedSend := coir.Select(ctx, c.SendCase(1))
	send, receive := "send on "+c.Name(), "receive from "+c.Name()
	return []failing{
		{receive, recv}, {receive, timed}, {receive, tried}, {receive, recvMany}, {receive, selected}, {send, selectedSend},
		{send, c.Send(ctx, 1)}, {send, c.SendTimeout(ctx, 1, 1)}, {send, c.TrySend(1)}, {send, sendMany}, {receive, recvBatch},
	}
}

// A timeout is a net.Error, like those of package net and of package context.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
func TestTimeoutIsANetError(t *testing.T) {
	late, stop := coir.WithTimeout(t.Context(), 0)
	defer stop()
	for _, name := range []string{"", "orders"} {
		c := coir.NewChan[int](0, coir.WithName(name))
		_, limit := c.RecvTimeout(t.Context(), 1)
		for _, err := range []error{limit, c.Send(late, 1), coir.Sleep(late, time.Hour)} {
			if ne := net.Error(nil); !errors.As(err, &ne) || !ne.Timeout() {
				t.Errorf("%q is no net.Error of a timeout", err)
			}
		}
	}
}

// A channel that was aborted because something else was closed, timed out or was cancelled has not timed out itself,
// nor was the operation cancelled: the cause is shown but does not match.
//
// Spec: CH-37 (abort is the hard close)
func TestAbortForTheErrorOfAnotherOperation(t *testing.T) {
	other := coir.NewChan[int](0, coir.WithName("other"))
	_, timeout := other.RecvTimeout(t.Context(), 1)
	_, wouldBlock := other.TryRecv()
	other.Close()
	_, closed := other.TryRecv()
	for _, cause := range []error{
		timeout, wouldBlock, closed, context.Canceled, context.DeadlineExceeded, coir.ErrTimeout,
		fmt.Errorf("upstream: %w", timeout),
	} {
		c := coir.NewChan[int](0)
		c.Abort(cause)
		for _, op := range operationsOn(t.Context(), c) {
			if !errors.Is(op.err, coir.ErrClosed) || op.err.Error() != "coir: channel was aborted: "+cause.Error() {
				t.Errorf("%q for %q", op.err, cause)
			}
			for _, is := range []error{coir.ErrTimeout, coir.ErrWouldBlock, context.Canceled, context.DeadlineExceeded} {
				if errors.Is(op.err, is) {
					t.Errorf("%q is %q", op.err, is)
				}
			}
		}
	}
}

// The errors of an open channel also name the operation, if the channel has a name. Otherwise they are the exported
// values.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
// Spec: CH-24 (a cancelled wait tells the cause)
func TestErrorsNameTheOperation(t *testing.T) {
	over, cancel := coir.WithCancelCause(t.Context())
	cancel(errWhy)
	late, stop := coir.WithTimeout(t.Context(), 0)
	defer stop()
	for _, name := range []string{"", "orders"} {
		send, receive := "coir: ", "coir: "
		if name != "" {
			send, receive = "coir: send on orders: ", "coir: receive from orders: "
		}
		c := coir.NewChan[int](0, coir.WithName(name))
		check := func(verb, text string, want error, errs ...error) {
			t.Helper()
			for _, err := range errs {
				if err == nil || !isWanted(err, want) || err.Error() != verb+text {
					t.Errorf("the error is %q, want %q", err, verb+text)
				}
				_, isCancel := want.(cancelFor)
				if name == "" && !isCancel && err != want { //nolint:errorlint // the very value is promised
					t.Errorf("%q is not the very value", err)
				}
			}
		}
		_, err := c.TryRecv()
		check(receive, "would block", coir.ErrWouldBlock, err)
		check(send, "would block", coir.ErrWouldBlock, c.TrySend(1))
		_, err = c.RecvTimeout(t.Context(), 1)
		_, now := c.RecvTimeout(t.Context(), 0)
		_, scope := c.Recv(late)
		check(receive, "timed out", coir.ErrTimeout, err, now, scope)
		check(send, "timed out", coir.ErrTimeout,
			c.SendTimeout(t.Context(), 1, 1), c.SendTimeout(t.Context(), 1, 0), c.Send(late, 1))
		_, err = c.Recv(over)
		_, timed := c.RecvTimeout(over, 1)
		check(receive, "cancelled: because", cancelFor{errWhy}, err, timed)
		check(send, "cancelled: because", cancelFor{errWhy}, c.Send(over, 1), c.SendTimeout(over, 1, 1))
	}
}
