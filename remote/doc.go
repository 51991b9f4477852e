// Package remote provides channels whose ends are in different processes, and promises whose results are stored under a
// key. The values go through a [Transport]: package remote/nats has one on NATS, package remote/postgres one on
// PostgreSQL, and package memory one for tests. Package remote/ticket has tickets that any replica of a service can
// complete.
//
//	orders, err := remote.Durable[Order](ctx, n, transport, "orders", 64)
//	...
//	err = orders.Send(ctx, order) // nil: it is stored
//	...
//	err = orders.RecvTx(ctx, func(ctx context.Context, it *remote.Item[Order]) error {
//		return db.InOneTransaction(ctx, it.ID, func(tx Tx) error { return book(tx, it.Value) })
//	})
//
// There are two kinds of channels, with different promises: [Durable] and [Volatile]. Neither behaves like a Go
// channel: each operation says what its return means, and an unknown outcome is a separate error, [ErrUnknown].
//
// Operations wait like those of package coir: fibers and goroutines can wait, a wait ends with its context, and a
// select can have receives as cases.
//
// # In production
//
// Snapshots of a runtime, and the inspector, show each channel: how many values the broker stores, who waits, and since
// when the broker is away. [Ready] is for the readiness check of an orchestrator.
//
// # Tests
//
// Test a program that uses this package with package sim and the transport of package memory. There, as the schedule
// decides, the network loses, delays and repeats messages, and processes and the broker crash.
package remote
