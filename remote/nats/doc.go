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
// subject by a setting of the stream. The processes of a group share consumers of at most 500 queues of such a stream.
// They run the same program, and receive from the same queues: a process that is given a message of a queue from which
// it does not receive gives it back. Two groups cannot receive from one queue.
//
// # What stored means
//
// By default a NATS server syncs its files every two minutes, and acknowledges a message before that. New and Open read
// the setting of every server that stores the stream, by the subject of [WithSyncSubject]: [remote.Info.Meaning] is
// durable only if three servers or more store the stream, and each of them syncs before it acknowledges. If the setting
// cannot be read, it is only stored.
//
// The setting is read again after each reconnect, and every five seconds, because NATS sends no event when a server
// restarts with another setting. When servers do not answer, what they have said before counts. While the setting is
// weaker than it was, operations of queues return [remote.ErrUnavailable], so that sends and receives wait until it is
// as before. A message that was stored in between is stored as weakly.
//
// # Accounts
//
// The file accounts.conf, beside this one, has the accounts of a cluster with the permissions of each process. A
// process can read its own inbox and its own tickets, and not those of another: connect with the inbox prefix that the
// file names. It can be sure of that only with TLS between all.
//
// # Ends
//
// The end of a queue is stored in a stream of its own, and NATS cannot refuse messages to a subject from then on. A
// process that publishes at the same moment as another ends the queue may have its message accepted after the last
// receiver has gone. Then it stays in the queue.
package nats
