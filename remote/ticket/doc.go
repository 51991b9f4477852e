// Package ticket provides tickets that any replica of a service can complete. A replica opens a ticket, passes its
// token to an outside party, and waits. The party calls back with the token and reaches some other replica. That
// replica checks the token without asking others, and passes the answer to the replica that waits.
//
//	payments, err := ticket.New[Receipt](ctx, n, transport, "payments/webhook", keys)
//	...
//	t, err := payments.Open(ctx, 15*time.Minute)
//	...
//	defer t.Cancel()
//	err = provider.Charge(ctx, order, callbackURL, t.Token(ticket.RightResolve).Reveal())
//	...
//	receipt, err := t.Wait(ctx)
//
// and in the handler of the callback, in any replica:
//
//	token, err := ticket.ParseToken(r.Header.Get("Token"))
//	...
//	outcome, err := payments.Resolve(ctx, token, r.Header.Get("Event-Id"), receipt)
//
// A ticket lives in the memory of the process that opened it, its owner. When that process ends, the ticket is gone,
// and its token does not resume a later process. For a result that must survive the process, use a [remote.Promise].
//
// # What is promised
//
//   - A ticket is completed at most once. A repeated answer with the same idempotency key is a duplicate, which counts
//     as a success; answers with other keys are too late.
//   - A token is a secret that gives rights on one ticket until it expires. It cannot be forged or changed without a
//     key of [Keys], has one encoding, and is valid for one audience. A replica checks it without sending a message.
//   - An answer whose owner cannot be reached is stored. It is passed on if the owner can be reached before the ticket
//     expires. The store is bounded.
package ticket
