// Package remote has channels whose ends are in different processes, and results that are stored under a key. The
// values go through a [Transport]: package remote/nats has one on NATS, and package memory one for tests. Package
// remote/ticket has tickets that any replica of a service can complete.
//
//	orders, err := remote.Durable[Order](ctx, n, transport, "orders", 64)
//	...
//	err = orders.Send(ctx, order) // nil: it is stored
//	...
//	err = orders.RecvTx(ctx, func(ctx context.Context, it *remote.Item[Order]) error {
//		return db.InOneTransaction(ctx, it.ID, func(tx Tx) error { return book(tx, it.Value) })
//	})
//
// There are two kinds, with different promises: [Durable] and [Volatile]. There is no third, and neither is a Go
// channel over a network: each operation says what its return means, and an outcome that is not known is an error of
// its own, [ErrUnknown].
//
// The waits are those of package coir: they end with their context, fibers and goroutines alike, and receives can stand
// in a select.
//
// # Tests
//
// A program that uses this package is tested under package sim, with the transport of package memory: there the network
// loses, delays and repeats messages, and processes and the broker crash, as the schedule decides.
package remote
