package nats

import (
	"fmt"
	"time"

	client "github.com/nats-io/nats.go"
)

// Options returns options for the connection. With them, the connection leaves a server that has not answered for one
// and a half seconds, or that takes no data for two seconds, and tries the next one at once; by default nats.go waits
// for some minutes.
//
// nats.go holds its lock while it writes. So if the network passes nothing on while much data is on its way, no call of
// nats.go returns until the write has failed. The limit for that is part of the options.
func Options() []client.Option {
	return []client.Option{
		client.PingInterval(500 * time.Millisecond), client.MaxPingsOutstanding(2),
		client.FlusherTimeout(2 * time.Second), client.ReconnectOnFlusherError(),
		client.ReconnectWait(20 * time.Millisecond), client.ReconnectJitter(20*time.Millisecond, 20*time.Millisecond),
		client.MaxReconnects(-1),
	}
}

// Option is an option of [New].
type Option func(*settings)

type settings struct {
	prefix   string
	group    string
	replicas int
	lease    time.Duration
	window   time.Duration
	sync     string
	keep     time.Duration
}

// WithPrefix sets the first part of the names of subjects and streams. The default is "coir". Transports with different
// prefixes do not see each other.
func WithPrefix(prefix string) Option {
	if prefix == "" || token(prefix) != prefix {
		panic(fmt.Sprintf("nats: WithPrefix(%q): a prefix has letters and digits only", prefix))
	}
	return func(s *settings) { s.prefix = prefix }
}

// WithGroup sets the group of processes that receive from the same queues. The default is "default".
func WithGroup(group string) Option {
	if group == "" || token(group) != group {
		panic(fmt.Sprintf("nats: WithGroup(%q): a group has letters and digits only", group))
	}
	return func(s *settings) { s.group = group }
}

// WithReplicas sets how many servers store a message. The default is 3. If a stream exists, its own number counts, and
// another one is logged as a warning. n must be positive.
func WithReplicas(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("nats: WithReplicas(%d): at least one server stores a message", n))
	}
	return func(s *settings) { s.replicas = n }
}

// WithLease sets how long a message is leased without progress. The default is 30 seconds. If the processes of a group
// have different leases, the longest one counts, also after its process has ended: the consumer of NATS keeps it. A
// process with a shorter lease logs a warning that names the stream and the consumer, and has the command that shortens
// the lease of the consumer. d must be positive.
func WithLease(d time.Duration) Option {
	if d <= 0 {
		panic(fmt.Sprintf("nats: WithLease(%v): a lease must be positive, so that it can be renewed in time", d))
	}
	return func(s *settings) { s.lease = d }
}

// WithWindow sets how long the ID of a message is remembered. The default is 2 minutes. The servers need about 120
// bytes for each ID. If a stream exists, its own window counts: New and Open fail if it is shorter than this one, and
// log a warning if it is longer. d must be positive.
func WithWindow(d time.Duration) Option {
	if d <= 0 {
		panic(fmt.Sprintf("nats: WithWindow(%v): a window must be positive, because a send is repeated within it", d))
	}
	return func(s *settings) { s.window = d }
}

// WithSyncSubject sets the subject at which the servers say whether they sync before they acknowledge. The default is
// "coir.sync". The system account exports this subject, and the account of the application imports it:
//
//	accounts {
//	  SYS: { exports: [ {service: "$SYS.REQ.SERVER.PING.JSZ", response_type: stream, accounts: [APP]} ], ... }
//	  APP: { imports: [ {service: {account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ"}, to: "coir.sync"} ], ... }
//	}
func WithSyncSubject(subject string) Option { return func(s *settings) { s.sync = subject } }

// WithKeep sets how long the servers keep the result of a [remote.Promise]. After that the promise is open again. By
// default they keep it forever. If the stream exists, its own time counts, and another one is logged as a warning.
func WithKeep(d time.Duration) Option { return func(s *settings) { s.keep = d } }
