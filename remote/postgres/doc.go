// Package postgres has a transport of package remote on PostgreSQL, and [RecvTx], which removes a value in the
// transaction that has its effect: so the effect happens exactly once.
//
//	pool, err := pgxpool.New(ctx, url) // of pgx
//	...
//	_, err = pool.Exec(ctx, postgres.SQL("coir")) // once; or by the tool that makes your other tables
//	...
//	t, err := postgres.New(ctx, pool)
//	...
//	orders, err := remote.Durable[Order](ctx, n, t, "orders", 64, remote.WithMeaning(remote.MeaningStoredSynced))
//	...
//	err = postgres.RecvTx(ctx, orders, func(ctx context.Context, tx pgx.Tx, it *remote.Item[Order]) error {
//		_, err := tx.Exec(ctx, "update account set balance = balance - $1 where id = $2", it.Value.Sum, it.Value.From)
//		return err
//	})
//
// # Queues
//
// The queues share five tables; a queue is a row, and so is a message. Messages are stored, leased and removed by
// functions of the database, one call each. Calls that are made at the same time go together: while a statement is on
// its way, messages for the same queue are gathered, and sent by the next. So many fibers that send are as fast as one
// that sends many values in a statement.
//
// # Connections
//
// The transport uses connections of the pool for its statements, and takes one for itself, which listens. The pool
// needs more connections than there are effects of RecvTx at a time. With a pooler between, that one connection must be
// a session of its own (PgBouncer: pool_mode session).
//
// # What stored means
//
// New reads the settings fsync, synchronous_commit and synchronous_standby_names, and each Publish checks in its own
// transaction that they are the same. [remote.Info.Meaning] is stored and synced if the server writes its log to the
// disk before it answers. It is durable if, in addition, synchronous_commit is on or remote_apply, and
// synchronous_standby_names lists standbys by name, and a commit waits for enough of them: with the server itself they
// are a majority, as with "ANY 1 (a, b)". Otherwise it is only stored.
//
// Two things cannot be read from the server: whether the standbys sync their disks, and whether the one that takes the
// server's place after a failure is one that has the message.
package postgres
