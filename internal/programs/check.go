package programs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir"
)

// call is an operation in progress.
type call struct {
	r     *run
	op    *Op
	what  string
	node  *node         // nil if it has no context
	verb  string        // of its error, if the object has a name
	plain bool          // the error may lack the name
	limit time.Duration // its own time limit; negative if it has none
	c     *channel
	side  int
	try   bool // it must not wait
	shut  func() bool
	ends  bool // the end of the channel ends its wait: Close ends a receive, Abort a send
	loose bool // its end time is unknown

	from time.Duration
	must bool // its context had ended when it began
}

const (
	sending = iota
	receiving
)

func (r *run) call(op *Op, n *node) *call {
	return &call{r: r, op: op, node: n, limit: -1, what: op.Kind.String()}
}

// on makes k an operation on a channel.
func (k *call) on(c *channel, side int) *call {
	k.c, k.side, k.ends = c, side, true
	k.verb = verb(c.d.Name, side)
	return k
}

func verb(name string, side int) string {
	switch {
	case name == "":
		return ""
	case side == sending:
		return "send on " + name
	}
	return "receive from " + name
}

// begin records that the operation begins.
func (k *call) begin() *call {
	w := k.r.w
	if k.r.nur != nil {
		w.mu.Lock()
		closed := k.r.nur.closed
		w.mu.Unlock()
		if closed && !k.r.free {
			k.failf("runs although the Run of its nursery has returned")
		}
	}
	k.from = w.env.Now()
	k.must = k.node != nil && k.node.over()
	return k
}

func (k *call) failf(format string, args ...any) {
	ctx := ""
	if k.node != nil {
		ctx = k.node.name
	}
	k.r.w.failf("%s: %s (op %d, %s): %s", k.r.name, k.what, k.op.N, ctx, fmt.Sprintf(format, args...))
}

// mustNot reports the result of the operation, if it should have found its context cancelled.
func (k *call) mustNot(format string, args ...any) {
	if k.must {
		k.failf("began after its context had been cancelled, and "+format, args...)
	}
}

// end checks the error of the operation.
func (k *call) end(err error) {
	k.timely(err)
	if !errors.Is(err, context.Canceled) && !errors.Is(err, coir.ErrTimeout) {
		k.mustNot("returned %v", err)
	}
	if err == nil {
		return
	}
	k.r.last, k.r.lastNode = err, k.node
	is := func(target error) bool { return errors.Is(err, target) }
	closed, timeout := is(coir.ErrClosed), is(coir.ErrTimeout)
	canceled, blocks := is(context.Canceled), is(coir.ErrWouldBlock)
	if count([]bool{closed, timeout, canceled, blocks}, func(is bool) bool { return is }) != 1 {
		k.failf("%q is closed %v, timeout %v, cancelled %v, would block %v", err, closed, timeout, canceled, blocks)
		return
	}
	if timeout != is(context.DeadlineExceeded) {
		k.failf("%q is ErrTimeout %v, DeadlineExceeded %v", err, timeout, !timeout)
	}
	if k.c != nil {
		k.count(closed, timeout, canceled, blocks)
	}
	switch {
	case closed:
		k.closed(err)
	case blocks:
		if !k.try && (k.c == nil || k.side != sending || k.c.d.Over != coir.OverflowFail) {
			k.failf("%q, and it may wait", err)
		}
		k.text(err, opText(k.verb, "would block", nil))
	case canceled:
		k.canceled(err)
	case timeout:
		k.timedOut(err)
	}
}

// text checks the text of an error.
func (k *call) text(err error, want ...string) {
	got := err.Error()
	if slices.Contains(want, got) {
		return
	}
	if k.plain && k.verb != "" {
		for _, s := range want {
			s = strings.Replace(s, k.verb+": ", "", 1)
			if got == s || s == "coir: cancelled" && got == context.Canceled.Error() {
				return
			}
		}
	}
	k.failf("the text is %q, not %q", err, want)
}

func (k *call) closed(err error) {
	w := k.r.w
	if k.c == nil {
		k.failf("%q, but the operation is not on a channel", err)
		return
	}
	w.mu.Lock()
	ok := k.c.mayBeClosed()
	closes := k.c.closes
	w.mu.Unlock()
	if !ok && (k.shut == nil || !k.shut()) {
		k.failf("%q, and nothing has closed it", err)
	}
	want := []string{opText(k.verb, "channel is closed", nil)}
	if k.c.d.Pipe {
		for _, why := range []string{"every reader of the pipe is closed", "this endpoint of the pipe is closed"} {
			want = append(want, opText(k.verb, "channel was aborted: "+why, nil))
		}
	}
	for _, e := range closes {
		if !e.abort {
			continue
		}
		text := opText(k.verb, "channel was aborted", e.cause)
		want = append(want, text)
		_, own := e.cause.(*ownError)
		if own && err.Error() == text && !errors.Is(err, e.cause) {
			k.failf("%q does not wrap the cause of the Abort", err)
		}
		if own && len(closes) == 1 && err.Error() != text {
			k.failf("%q does not tell the cause %q of the Abort", err, e.cause)
		}
	}
	k.text(err, want...)
}

func (k *call) canceled(err error) {
	if k.node == nil {
		k.failf("%q, but the operation does not take a context", err)
		return
	}
	if got := k.node.ctx.Err(); got != context.Canceled {
		k.failf("%q, and the error of its context is %v", err, got)
		return
	}
	if !k.node.mayBeCancelled() {
		k.failf("%q, and nothing has cancelled its context", err)
	}
	cause := context.Cause(k.node.ctx)
	if !k.node.mayHaveCause(cause) {
		k.failf("%q, and its context was cancelled for %v by nothing that is known", err, cause)
	}
	if own := (*ownError)(nil); errors.As(err, &own) {
		k.failf("%q wraps the cause of the cancel", err)
	}
	if cause != context.Canceled {
		k.text(err, opText(k.verb, "cancelled", cause))
	} else if k.verb == "" {
		k.text(err, context.Canceled.Error())
	} else {
		k.text(err, opText(k.verb, "cancelled", nil))
	}
}

func (k *call) timedOut(err error) {
	var want []string
	if k.limit >= 0 {
		now := k.r.w.env.Now()
		if !k.r.w.p.Sim {
			now += time.Millisecond
		}
		if now-k.from >= k.limit {
			want = append(want, opText(k.verb, "timed out", nil))
		}
	}
	if k.node != nil && k.node.ctx.Err() == context.DeadlineExceeded {
		cause := context.Cause(k.node.ctx)
		if k.node.mayBeExpired(cause) {
			if cause == context.DeadlineExceeded {
				cause = nil
			}
			want = append(want, opText(k.verb, "timed out", cause))
		} else {
			k.failf("%q, and its context has expired for %v by no deadline that is known", err, cause)
		}
	}
	if want == nil {
		k.failf("%q, and neither its own limit has passed nor a deadline of its context", err)
		return
	}
	k.text(err, want...)
}

// count counts a failure of an operation on a channel.
func (k *call) count(closed, timeout, canceled, blocks bool) {
	if k.op.Kind == Select || k.op.Kind == SelectPriority || k.op.Kind == TrySelect || k.op.Kind == Selector {
		return
	}
	w := k.r.w
	if k.shut != nil && k.shut() {
		return // the endpoint may have failed, and not the channel
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &k.c.failed[k.side]
	switch {
	case closed:
		f.closed++
	case timeout:
		f.timedOut++
	case canceled:
		f.cancelled++
	case blocks:
		f.wouldBlock++
	}
}

// timely checks, if time passes only when nothing can run, that the operation ended at the right time.
func (k *call) timely(err error) {
	w := k.r.w
	if !w.env.Idle || k.loose {
		return
	}
	now := w.env.Now()
	late := func(at time.Duration, why string) {
		if at = max(at, k.from); now > at {
			k.failf("ended at %v with %v, and should have at %v: %s", now, err, at, why)
		}
	}
	if err == nil && k.r.limited { // it may have waited for a place
		return
	}
	if k.limit >= 0 {
		late(k.from+k.limit, "its own time limit")
	}
	if k.node != nil {
		if at, ok := k.node.endedBy(); ok {
			late(at, "the end of its context")
		}
	}
	if k.c == nil || !k.ends {
		return
	}
	w.mu.Lock()
	at, ok := k.c.closedAt, k.c.closed
	if k.side == sending {
		at, ok = k.c.abortAt, k.c.aborted
	}
	w.mu.Unlock()
	if ok {
		late(at, "the end of its channel")
	}
}

// got records that a value was received.
func (r *run) got(k *call, c *channel, id int) {
	w := r.w
	w.mu.Lock()
	if id < 1 || id > len(w.values) {
		w.mu.Unlock()
		k.failf("received %d, which was never sent", id)
		return
	}
	v := w.values[id-1]
	v.received++
	n, state, dropped := v.received, v.state, v.dropped
	disorder := !v.loose && r.late(v.sender, slices.Index(w.chans, c), id)
	w.mu.Unlock()
	switch {
	case v.c != c:
		k.failf("received value %d, which was sent on %s", id, v.c.name)
	case n > 1:
		k.failf("received value %d a second time", id)
	case state == back:
		k.failf("received value %d, whose send had failed", id)
	case dropped > 0:
		k.failf("received value %d, which had been dropped", id)
	case disorder:
		k.failf("received value %d after a later one of the same sender", id)
	}
}

// late records that the function has received a value, and reports whether it had already received a later value of the
// same sender by the same way: a channel, or -1 for a queue.
func (r *run) late(sender, by, id int) bool {
	if r.seen == nil {
		r.seen = make(map[[2]int]int)
	}
	key := [2]int{sender, by}
	late := r.seen[key] > id
	r.seen[key] = id
	return late
}

// checkRun checks how a Run ended: with an error, or a panic with v. After a Goexit it returns what the fiber must
// report.
func (w *world) checkRun(n *nursery, err error, v any, exited bool) (unreported []must) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.closed = true
	if n.live != 0 {
		w.failf("%s: Run has returned and %d fibers have not ended", n.name, n.live)
	}
	ctxErr := error(nil)
	if n.node != nil {
		if ctxErr = n.node.ctx.Err(); ctxErr == nil {
			w.failf("%s: Run has returned and its context is not over", n.name)
		}
	}
	musts := n.musts
	for _, e := range n.returned {
		musts = append(musts, realParts(e, ctxErr)...)
	}
	if exited {
		return musts
	}
	out := err
	if v != nil {
		pe, ok := v.(*coir.PanicError)
		if !ok || pe == nil {
			w.failf("%s: Run panicked with %#v, which is not a *PanicError", n.name, v)
			return nil
		}
		out = pe
	}
	if out != nil {
		_ = errors.Is(out, coir.ErrClosed) // walking the chain must not panic
		_ = out.Error()
	}
	parts := tree(out)
	for _, m := range musts {
		if !m.in(parts) {
			w.failf("%s: %v is lost: Run ended with %s", n.name, m, short(out))
		}
	}
	panics := count(musts, func(m must) bool { return m.panic })
	for _, x := range parts {
		if pe, ok := x.(*coir.PanicError); ok && pe != nil && !expected(pe, musts) {
			w.failf("%s: a panic that the program did not make: %v", n.name, pe)
		}
	}
	switch {
	case v != nil && panics == 0:
		w.failf("%s: Run panicked, and nothing in it has", n.name)
	case v == nil && panics > 0:
		w.failf("%s: Run returned %s, and there was a panic", n.name, short(err))
	case len(n.returned) == 0 && len(musts) == 0 && n.exits == 0 && err != nil:
		w.failf("%s: Run returned %s, and nothing in it has failed", n.name, short(err))
	case len(n.returned) > 0 && out == nil && (n.purpose == 0 || !allCancels(n.returned)):
		w.failf("%s: Run returned nil, and these were returned in it: %v", n.name, n.returned)
	case err != nil && n.onlyPurpose():
		w.failf("%s: Run returned %s, and all that has happened is Cancel(nil)", n.name, short(err))
	}
	return nil
}

// onlyPurpose reports whether the nursery was stopped by Cancel(nil), and no other error was returned. The lock is
// held.
func (n *nursery) onlyPurpose() bool {
	return n.purpose > 0 && n.onlyEchoes()
}

// onlyEchoes reports whether all errors returned in the nursery only report that it was cancelled without a cause. The
// lock is held.
func (n *nursery) onlyEchoes() bool {
	if n.reasons > 0 || n.exits > 0 || len(n.musts) > 0 || n.node == nil {
		return false
	}
	for i, err := range n.returned {
		if err != context.Canceled && !strings.HasSuffix(err.Error(), ": cancelled") || n.froms[i] == nil {
			return false
		}
		for x := n.froms[i]; x != nil; x = x.up {
			if x == n.node { // the contexts above are checked below
				break
			}
			if len(x.cancels) > 0 || x.timed || x.nur != nil || x.up == nil {
				return false
			}
		}
	}
	for x := n.node.up; x != nil; x = x.up {
		if len(x.cancels) > 0 || x.timed || x.nur != nil && x.nur.over() {
			return false
		}
	}
	return true
}

func allCancels(errs []error) bool {
	for _, err := range errs {
		for _, x := range tree(err) {
			switch x.(type) {
			case *wrapped, interface{ Unwrap() []error }:
				continue
			}
			if !errors.Is(x, context.Canceled) {
				return false
			}
		}
	}
	return true
}

// realParts returns the errors that Run must report if err was returned in a nursery whose context ended with ctxErr.
// It omits errors that may only report that the nursery was cancelled.
func realParts(err, ctxErr error) (all []must) {
	for _, x := range tree(err) {
		switch x := x.(type) {
		case *coir.PanicError:
			if x != nil {
				all = append(all, must{value: x.Value, panic: false, err: x})
			}
			continue
		case *ownError:
			all = append(all, must{err: x})
			continue
		case *wrapped:
			continue
		case interface{ Unwrap() []error }:
			continue
		}
		switch {
		case errors.Is(x, context.Canceled), x == coir.ErrGoexit:
		case errors.Is(x, context.DeadlineExceeded):
			if ctxErr != context.DeadlineExceeded && x != context.DeadlineExceeded {
				all = append(all, must{err: x})
			}
		default:
			all = append(all, must{err: x})
		}
	}
	return all
}

// in reports whether m is one of the parts.
func (m must) in(parts []error) bool {
	for _, x := range parts {
		if !m.panic && x == m.err {
			return true
		}
		if pe, ok := x.(*coir.PanicError); ok && pe != nil && m.is(pe) {
			return true
		}
	}
	return false
}

// is reports whether pe is the panic m.
func (m must) is(pe *coir.PanicError) bool {
	if !m.panic {
		was, ok := m.err.(*coir.PanicError)
		return ok && was != nil && sameValue(was.Value, pe.Value)
	}
	return (m.fiber == "" || m.fiber == pe.Fiber) && sameValue(m.value, pe.Value)
}

func sameValue(a, b any) bool {
	if _, ok := a.(anyRuntimeError); ok {
		_, ok := b.(interface{ RuntimeError() })
		return ok
	}
	defer func() { _ = recover() }() // values that cannot be compared are different
	return a == b
}

// anyRuntimeError stands for the error of an index out of range.
type anyRuntimeError struct{}

func expected(pe *coir.PanicError, musts []must) bool {
	for _, m := range musts {
		if m.is(pe) {
			return true
		}
		for _, x := range tree(m.err) { // passed on from an inner nursery
			if in, ok := x.(*coir.PanicError); ok && in != nil && sameValue(in.Value, pe.Value) {
				return true
			}
		}
		if in, ok := m.value.(*coir.PanicError); ok && in != nil && sameValue(in.Value, pe.Value) {
			return true
		}
	}
	return false
}

func short(err error) string {
	if err == nil {
		return "nil"
	}
	s := strings.ReplaceAll(err.Error(), "\n", " ")
	if len(s) > 400 {
		s = s[:400] + "..."
	}
	return fmt.Sprintf("%T %q", err, s)
}
