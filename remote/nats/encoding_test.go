package nats

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir/remote"
)

// What is stored at the servers, and what other processes get, does not change: see TestEncodingsArePinned of package
// remote. Servers refuse a stream that they have with another configuration.
func TestEncodingsArePinned(t *testing.T) {
	tr := &Transport{set: settings{prefix: "coir", group: "default", replicas: 3, window: 2 * time.Minute}}
	q := tr.newQueue("new orders", 64)
	m := q.message(remote.Msg{ID: remote.ID{Sender: 0x0102030405060708, Seq: 0x1112131415161718}, Data: []byte("tea")})
	listed := tr.listed("new orders", 64)
	for _, p := range []struct{ what, got, want string }{
		{"the stream of the list of queues", pinned(tr.listConfig()),
			"coir-queues [coir.m.* coir.e.*] File Limits DiscardOld 1 per subject (refused: false), direct: true, 0s"},
		{"the stream of a queue", pinned(tr.queueConfig(64)),
			"coir-64 [coir.q.64.*] File WorkQueue DiscardNew 64 per subject (refused: true), direct: false, 2m0s"},
		{"the stream of Put", pinned(tr.putConfig()),
			"coir-put [coir.p.*] File Limits DiscardOld 1 per subject (refused: false), direct: false, 0s"},
		{"the consumers of a group", fmt.Sprint(tr.consumerName(0), " ", tr.consumerName(1)), "default default=1"},
		{"a message", fmt.Sprintf("%s %v %s", m.Subject, m.Header, m.Data), "coir.q.64.new=20orders " +
			"map[Nats-Msg-Id:[new=20orders/01020304050607081112131415161718]] tea"},
		{"the capacity of a queue", fmt.Sprintf("%s %v %s", listed.Subject, listed.Header, listed.Data),
			"coir.m.new=20orders map[Nats-Expected-Last-Subject-Sequence:[0]] 64"},
		{"the end of a queue", q.endSubject(), "coir.e.new=20orders"},
		{"the subject of a key", tr.subject("p", token("payment 4711")), "coir.p.payment=204711"},
		{"the subject of Tell", tr.path("t", "want.new orders"), "coir.t.want.new=20orders"},
		{"the subject of Request", tr.path("r", "ticket.7.abc"), "coir.r.ticket.7.abc"},
	} {
		if p.got != p.want {
			t.Errorf("%s:\n\t%s, was\n\t%s", p.what, p.got, p.want)
		}
	}
}

// pinned returns what must not change of the configuration of a stream.
func pinned(c jetstream.StreamConfig) string {
	return fmt.Sprintf("%s %v %v %v %v %d per subject (refused: %v), direct: %v, %v", c.Name, c.Subjects, c.Storage,
		c.Retention, c.Discard, c.MaxMsgsPerSubject, c.DiscardNewPerSubject, c.AllowDirect, c.Duplicates)
}
