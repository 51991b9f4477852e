// Package postgres provides a transport of package remote on PostgreSQL. It also provides [RecvTx], which removes a
// value in the transaction of its effect, so that the effect happens exactly once.
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
// The queues share five tables; each queue is a row, and each message is a row. Functions of the database store, lease
// and remove messages, with one call each. Calls that are made at the same time share a statement: while a statement is
// on its way, messages for the same queue gather, and the next statement sends them. So many fibers that send one value
// each are as fast as one that sends many values in a statement.
//
// # Connections
//
// The transport uses connections of the pool for its statements, and keeps one connection for listening. The pool needs
// more connections than there are effects of RecvTx running at a time. If the pool connects through a pooler, the
// connection that listens needs its own session (PgBouncer: pool_mode session).
//
// # What stored means
//
// New reads the settings fsync, synchronous_commit and synchronous_standby_names, and each Publish checks in its
// transaction that they are the same. [remote.Info.Meaning] is stored and synced if the server writes its log to the
// disk before it answers. It is durable if two more conditions hold: synchronous_commit is on or remote_apply, and
// synchronous_standby_names lists standbys by name and makes a commit wait for enough of them. They are enough if they
// are a majority together with the server itself, as with "ANY 1 (a, b)". In all other cases the meaning is only
// stored.
//
// The server does not report whether the standbys sync their disks, nor whether the standby that replaces it after a
// failure has the message.
package postgres
