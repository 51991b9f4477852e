package buf

// HandOver hands b over to a new owner: it calls deliver with a Buf that has the same contents, and deliver passes that
// Buf on. If deliver returns nil, the buffer belongs to the receiver, and b and all its copies are stale. If deliver
// returns an error, the buffer still belongs to the caller, and HandOver returns that error. While deliver runs, b is
// stale.
//
// [Chan] calls HandOver itself. Call it for all other ways to pass a buffer on: inside another value, in a case of a
// select, as the answer of a ticket, or through a native channel.
//
//	err := buf.HandOver(b, func(b buf.Buf) error { return replies.Resolve(id, b) })
//
// deliver must not use its Buf after it has passed it on. If deliver panics, the caller does not get the buffer back,
// because it may have a new owner.
func HandOver(b Buf, deliver func(Buf) error) error {
	// Spec: BU-01 (a buffer has one owner)
	// Spec: BU-02 (a failed send keeps its buffer)
	// Spec: BU-03 (passing a buffer copies a descriptor)
	// Spec: BU-08 (hand-overs are counted)
	if b.in == nil {
		b.misused("HandOver", stale)
	}
	p, s := b.in.pool, b.state()
	if p.book != nil {
		return p.book.handOver(b, deliver)
	}
	next, o := s.end(b.gen)
	if o != done {
		b.misused("HandOver", o)
	}
	to := b
	to.gen = next
	if err := deliver(to); err != nil {
		if o := s.restore(next, b.gen); o != done {
			to.misused("HandOver", o)
		}
		p.cancelled.Add(1)
		return err
	}
	p.moved.Add(1)
	return nil
}
