// Package desk matches answers from outside, such as callbacks, replies from a socket or messages from a queue, with
// the callers that wait for them. A caller opens a [Ticket] at a [Desk], sends its id along with the request, and
// waits. The code that receives the answer resolves the id:
//
//	var replies = desk.New[Reply](desk.WithName("replies"))
//
//	func call(ctx context.Context, req Request) (Reply, error) {
//		t, err := replies.OpenTimeout(ctx, 5*time.Second)
//		if err != nil {
//			return Reply{}, err
//		}
//		defer t.Cancel()
//		req.ID = t.ID()
//		if err := send(ctx, req); err != nil {
//			return Reply{}, err
//		}
//		return t.Wait(ctx)
//	}
//
//	func received(reply Reply) {
//		if err := replies.Resolve(reply.ID, reply); err != nil {
//			log.Print(err) // late, duplicate, unknown or foreign
//		}
//	}
//
// Go programs often use a map of channels for this. Such a map leaks entries when a caller times out, when a request
// cannot be sent, or when the peer disconnects. A Desk leaks none: a ticket leaves it when it is completed, when it is
// cancelled, at its deadline, or when the context in which it was opened ends. This needs no goroutine.
//
// You may send an [ID] to other programs. It has 64 random bits, so it cannot be guessed, and it is valid only at its
// own desk, for its own ticket, until the ticket has ended.
//
// Both fibers and goroutines may use a Desk. The call that completes a ticket is ordered before the return of a wait
// for it. Other calls may be ordered too; do not rely on that.
package desk
