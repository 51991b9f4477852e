// Package nats provides a transport of package remote on NATS: JetStream stores the queues, and core NATS passes the
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
// A queue is a subject, not a stream. Queues of the same capacity share a stream, because NATS bounds the messages of
// each subject by a setting of the stream. The processes of a group share the consumers of such a stream, and each
// consumer has at most 500 queues. The processes of a group run the same program, and receive from the same queues: a
// process gives back a message of a queue from which it does not receive. Two groups cannot receive from one queue: the
// second one gets an error that names both.
//
// Queues that have messages when the processes begin to receive from them need a new consumer. NATS permits 1000
// consumers for each stream, unless the configuration of the account or the server says otherwise. So begin to receive
// from such queues at the same time: up to 500 of them share a consumer.
//
// # What stored means
//
// By default a NATS server syncs its files every two minutes, and acknowledges a message before that. New and Open read
// the setting of every server that stores the stream, by the subject of [WithSyncSubject]. [remote.Info.Meaning] is
// durable only if three servers or more store the stream, and each of them syncs before it acknowledges. If the setting
// cannot be read, the meaning is only stored.
//
// The setting is read again after each reconnect, and every five seconds, because NATS sends no event when a server
// restarts with another setting. If servers do not answer, their last answers count. While the setting is weaker than
// it was, operations of queues return [remote.ErrUnavailable], so that sends and receives wait until it is as before. A
// message that is stored in between has only the weaker guarantee.
//
// # Accounts
//
// The file accounts.conf, next to this one, defines the accounts of a cluster and the permissions of each process. A
// process can read its own inbox and its own tickets, but not those of another process: connect with the inbox prefix
// that the file names. This protects only if all connections use TLS.
//
// # Ends
//
// The end of a queue is stored in a separate stream, and NATS cannot refuse later messages to the queue's subject. If a
// process publishes at the moment when another ends the queue, its message may be accepted after the last receiver has
// left. Then the message stays in the queue.
package nats
