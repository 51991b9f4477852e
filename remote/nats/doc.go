// Package nats has a transport of package remote on NATS: JetStream stores the queues, and core NATS passes the
// messages that are not stored.
//
//	nc, err := client.Connect(url, append(nats.Options(), client.UserCredentials(file))...) // of nats.go
//	...
//	t, err := nats.New(ctx, nc, nats.WithGroup("billing"))
//	...
//	orders, err := remote.Durable[Order](ctx, n, t, "orders", 64)
//
// # Queues
//
// A queue is a subject, not a stream: queues of one capacity share a stream, because NATS bounds the messages of each
// subject by a setting of the stream. The processes of a group share one consumer for each such stream. They run the
// same program, and receive from the same queues: a process that is given a message of a queue that it does not receive
// from gives it back. Two groups cannot receive from one queue. A group receives from at most 500 queues of one
// capacity, because NATS takes a time that is quadratic in their number to change the list.
//
// # What stored means
//
// By default a NATS server syncs its files every two minutes, and acknowledges a message before that. New and Open read
// the setting of every server that stores the stream, by the subject of [WithSyncSubject]: [remote.Info.Meaning] is
// durable only if three servers or more store the stream, and each of them syncs before it acknowledges. If the setting
// cannot be read, it is only stored. It is read again after each reconnect: if it has become weaker, Publish fails.
package nats
