//go:build unix

package nats_test

// Faults of real processes, and of the network between clients and servers. Senders and receivers are processes that
// report to the test line by line. The test records these reports, as a database would, and causes the faults.

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

var (
	figures = flag.Bool("figures", false, "write what was measured into docs/guide/remote.md")
	rounds  = flag.Int("rounds", 6, "how many faults of each kind TestFaults has with COIR_SOAK=1")
)

// leaseTime is the lease of a value.
const leaseTime = 3 * time.Second

// playEnd runs f with an end of a channel, until the standard input ends.
func playEnd(r role, orders io.Reader, f func(ctx context.Context, c *remote.Chan[int]) error) error {
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, orders)
		cancel()
	}()
	nc, err := dial(stop, r.Dir, r.URL, r.Node)
	if err != nil {
		return err
	}
	defer nc.Close()
	tr, err := newTransport(stop, nc, nats.WithLease(leaseTime))
	if err != nil {
		return err
	}
	defer tr.Close()
	err = coir.Run(stop, func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, tr, r.Channel, r.Capacity, remote.WithTries(1000))
		if err != nil {
			return err
		}
		defer c.Leave()
		return f(ctx, c)
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// playSender sends values one after the other, and reports the outcome of each.
func playSender(r role, orders io.Reader, say func(format string, args ...any)) error {
	return playEnd(r, orders, func(ctx context.Context, c *remote.Chan[int]) error {
		for v := r.First; coir.Ended(ctx) == nil; v++ {
			switch err := c.Send(ctx, v); {
			case err == nil:
				say("stored %d", v)
			case !errors.Is(err, remote.ErrUnknown):
				say("failed %d", v)
			}
			_ = coir.Sleep(ctx, time.Millisecond) // leave some time to the brokers, which share the machine
		}
		return nil
	})
}

// playReceiver receives values, and reports each before it acknowledges the value, and afterwards.
func playReceiver(r role, orders io.Reader, say func(format string, args ...any)) error {
	return playEnd(r, orders, func(ctx context.Context, c *remote.Chan[int]) error {
		for {
			value := 0
			err := c.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
				value = it.Value
				say("received %d %d", it.Value, it.Tries)
				return nil
			})
			if err != nil {
				return err
			}
			say("removed %d", value)
		}
	})
}

// firsts is the difference between the first values of two senders.
const firsts = 10_000_000

// channel is what the test knows about the values of a channel.
type channel struct {
	t         testing.TB
	name      string
	capacity  int
	receivers int // number of receiving processes

	mu       sync.Mutex
	stored   map[int]bool // stored, as reported by a sender
	failed   map[int]bool // not stored, as reported by a sender
	received map[int]int  // how often
	removed  map[int]bool // removed, as reported by a receiver
	highest  map[int]int  // the highest value of each sender that was received for the first time
	again    int          // values that were received more than once
	stores   []time.Time
	receives []time.Time
}

// hear records a line of a process.
func (c *channel) hear(line string) {
	now := time.Now()
	var v, tries int
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, _ := fmt.Sscanf(line, "stored %d", &v); n == 1 {
		c.stored[v] = true
		c.stores = append(c.stores, now)
	} else if n, _ := fmt.Sscanf(line, "failed %d", &v); n == 1 {
		c.failed[v] = true
	} else if n, _ := fmt.Sscanf(line, "received %d %d", &v, &tries); n == 2 {
		c.receives = append(c.receives, now)
		c.came(v, tries)
	} else if n, _ := fmt.Sscanf(line, "removed %d", &v); n == 1 {
		c.removed[v] = true
	} else {
		c.t.Errorf("%s: a process says %q", c.name, line)
	}
}

// came checks a value that was received. With one receiver, values arrive in order the first time, and a value that is
// known to be removed does not arrive again. With two receivers, one may hold a value when the other removes it.
func (c *channel) came(v, tries int) {
	c.received[v]++
	if c.received[v] > 1 {
		c.again++
		if c.removed[v] && c.receivers == 1 {
			c.t.Errorf("%s: %d came again when it was removed", c.name, v)
		}
		return
	}
	sender := v / firsts
	if tries == 1 && c.receivers == 1 && v < c.highest[sender] {
		c.t.Errorf("%s: %d came for the first time after %d", c.name, v, c.highest[sender])
	}
	c.highest[sender] = max(c.highest[sender], v)
}

// missing returns the number of stored values that were not received.
func (c *channel) missing() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for v := range c.stored {
		if c.received[v] == 0 {
			n++
		}
	}
	return n
}

// counts returns the numbers of stored and received values.
func (c *channel) counts() (stored, received int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.stores), len(c.receives)
}

// check checks that values whose Send failed were not received.
func (c *channel) check() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for v := range c.failed {
		if c.received[v] > 0 {
			c.t.Errorf("%s: the Send of %d failed, and it was received", c.name, v)
		}
	}
}

// scene is a cluster, and processes that use it.
type scene struct {
	t         testing.TB
	ctx       context.Context
	b         *brokers
	nc        *client.Conn
	channels  []*channel
	senders   []*process
	receivers []*process
	started   int // senders
}

const sceneSenders = 2 // of each channel

// newScene starts two channels: "one" has one receiver, and "two" has two receivers that compete.
func newScene(ctx context.Context, t testing.TB) *scene {
	s := &scene{t: t, ctx: ctx, b: startBrokers(t, "node-1", "node-2")}
	s.nc = s.b.dialed(ctx, "node-1")
	for i, name := range []string{"one", "two"} {
		s.channels = append(s.channels, &channel{
			t: t, name: name, capacity: 32 + i, receivers: i + 1,
			stored: map[int]bool{}, failed: map[int]bool{}, received: map[int]int{}, removed: map[int]bool{},
			highest: map[int]int{},
		})
	}
	for _, c := range s.channels {
		for range sceneSenders {
			s.senders = append(s.senders, s.sender(c))
		}
		for range c.receivers {
			s.receivers = append(s.receivers, s.receiver(c))
		}
	}
	s.flow()
	return s
}

func (s *scene) sender(c *channel) *process {
	s.started++
	return play(s.t, role{
		Kind: "sender", Dir: s.b.dir, Node: "node-1", URL: s.b.url(), Channel: c.name, Capacity: c.capacity,
		First: s.started * firsts,
	}, c.hear)
}

func (s *scene) receiver(c *channel) *process {
	return play(s.t, role{
		Kind: "receiver", Dir: s.b.dir, Node: "node-2", URL: s.b.url(), Channel: c.name, Capacity: c.capacity,
	}, c.hear)
}

// streams returns the names of the streams of the channels.
func (s *scene) streams() (names []string) {
	for _, c := range s.channels {
		names = append(names, fmt.Sprintf("coir-%d", c.capacity))
	}
	return append(names, "coir-queues")
}

// flow waits until each channel has stored and received a few more values.
func (s *scene) flow() {
	s.t.Helper()
	before := make([][2]int, len(s.channels))
	for i, c := range s.channels {
		before[i][0], before[i][1] = c.counts()
	}
	err := poll(s.ctx, func(context.Context) error {
		for i, c := range s.channels {
			if stored, received := c.counts(); stored < before[i][0]+20 || received < before[i][1]+20 {
				return fmt.Errorf("%s has %d stored and %d received values since the last fault",
					c.name, stored-before[i][0], received-before[i][1])
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// finish ends the senders, and waits until all stored values are received.
func (s *scene) finish() {
	s.t.Helper()
	for _, p := range s.senders {
		p.end()
	}
	for _, c := range s.channels {
		err := poll(s.ctx, func(context.Context) error {
			if n := c.missing(); n > 0 {
				return fmt.Errorf("%d of %d stored values of %s are lost", n, len(c.stored), c.name)
			}
			return nil
		})
		if err != nil {
			s.t.Error(err)
		}
		c.check()
	}
	for _, p := range s.receivers {
		p.end()
	}
}

// fault is a kind of fault. do causes the fault, and returns when it is over.
type fault struct {
	name string
	do   func(s *scene)
}

var faults = []fault{
	{"kill -9 of the leader of a stream", func(s *scene) {
		leaders := s.b.healthy(s.ctx, s.nc, s.streams()...)
		s.killBroker(s.b.index(leaders[rand.IntN(len(s.channels))]))
	}},
	{"kill -9 of a receiver", func(s *scene) {
		i := rand.IntN(len(s.receivers))
		s.receivers[i].kill()
		s.receivers[i] = s.receiver(s.channels[min(i, 1)])
	}},
	{"a server is cut off from all clients for 2 s", func(s *scene) { s.disturb(network{cut: true}, rand.IntN(3)) }},
	{"kill -9 of any server", func(s *scene) { s.killBroker(rand.IntN(3)) }},
	{"kill -9 of a sender", func(s *scene) {
		i := rand.IntN(len(s.senders))
		s.senders[i].kill()
		s.senders[i] = s.sender(s.channels[i/sceneSenders])
	}},
	{"all servers are cut off from all clients for 2 s", func(s *scene) { s.disturb(network{cut: true}, 0, 1, 2) }},
	{"all data is 150 ms late for 2 s", func(s *scene) { s.disturb(network{delay: 150 * time.Millisecond}, 0, 1, 2) }},
	{"4 KiB a second and connection for 2 s", func(s *scene) { s.disturb(network{rate: 4 << 10}, 0, 1, 2) }},
	{"a server is stopped (SIGSTOP) for 3 s", func(s *scene) { s.freeze(s.b.procs[rand.IntN(3)], 3*time.Second) }},
	{"a receiver is stopped (SIGSTOP) for longer than its lease", func(s *scene) {
		s.freeze(s.receivers[rand.IntN(len(s.receivers))], leaseTime+time.Second)
	}},
}

// killBroker kills a server, and starts it again when values flow without it.
func (s *scene) killBroker(i int) {
	s.b.procs[i].kill()
	s.flow()
	<-s.b.start(i)
}

// disturb degrades the network to some servers for a while.
func (s *scene) disturb(n network, servers ...int) {
	for _, i := range servers {
		s.b.proxies[i].set(n)
	}
	s.last(2 * time.Second)
	for _, i := range servers {
		s.b.proxies[i].set(network{})
	}
}

// freeze stops a process for some time.
func (s *scene) freeze(p *process, d time.Duration) {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		s.t.Error(err)
	}
	s.last(d)
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		s.t.Error(err)
	}
}

// last waits while a fault lasts.
func (s *scene) last(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// gaps holds the measurements of a kind of fault.
type gaps struct {
	times          int
	store, receive time.Duration // the longest times without a stored and without a received value
	again          int           // values that were received again
}

// add adds the events between two times.
func (g *gaps) add(s *scene, from, to time.Time, again int) {
	g.times++
	g.again += again
	for _, c := range s.channels {
		c.mu.Lock()
		g.store, g.receive = max(g.store, longest(c.stores, from, to)), max(g.receive, longest(c.receives, from, to))
		c.mu.Unlock()
	}
}

// longest returns the longest time between two events, one of which is between from and to.
func longest(at []time.Time, from, to time.Time) (gap time.Duration) {
	first, _ := slices.BinarySearchFunc(at, from, time.Time.Compare)
	for i := max(first, 1); i < len(at); i++ {
		gap = max(gap, at[i].Sub(at[i-1]))
		if at[i].After(to) {
			break
		}
	}
	return gap
}

func (s *scene) again() (n int) {
	for _, c := range s.channels {
		c.mu.Lock()
		n += c.again
		c.mu.Unlock()
	}
	return n
}

// Whatever is killed, stopped or cut off: every stored value is received, and no value whose Send failed is received.
// The first time, one receiver gets the values of each sender in order, and it does not get a value again that is known
// to be removed. A machine that stops for longer than a lease is a fault too. With COIR_SOAK=1 each of ten kinds of
// faults occurs six times, or as often as -rounds says; in CI each of the first three kinds occurs once.
func TestFaults(t *testing.T) {
	times, kinds := 1, faults[:3]
	if soak.On() {
		times, kinds = *rounds, faults
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(times)*10*time.Minute)
	defer cancel()
	s := newScene(ctx, t)
	measured := make([]gaps, len(kinds))
	for range times {
		for _, k := range rand.Perm(len(kinds)) {
			from, again := time.Now(), s.again()
			kinds[k].do(s)
			s.flow()
			s.b.healthy(ctx, s.nc, s.streams()...)
			s.last(leaseTime + rand.N(time.Second)) // so that redelivered values have arrived, and the next moment is random
			measured[k].add(s, from, time.Now(), s.again()-again)
		}
	}
	s.finish()
	stored, received := 0, 0
	for _, c := range s.channels {
		stored += len(c.stored)
		received += len(c.received)
	}
	table := faultTable(kinds, measured)
	t.Logf("%d values were stored, %d received, %d came again\n%s", stored, received, s.again(), table)
	if *figures {
		inGuide(t, "faults", table)
	}
}

// faultTable returns the measurements as a table.
func faultTable(kinds []fault, measured []gaps) string {
	var b strings.Builder
	b.WriteString("| What | Times | Nothing stored for | Nothing received for | Values that came again |\n" +
		"|---|---|---|---|---|\n")
	for i, g := range measured {
		fmt.Fprintf(&b, "| %s | %d | %.1f s | %.1f s | %d |\n",
			kinds[i].name, g.times, g.store.Seconds(), g.receive.Seconds(), g.again)
	}
	return b.String()
}

// inGuide writes a table into the guide, between its two comments.
func inGuide(t testing.TB, name, table string) {
	t.Helper()
	const path = "../../docs/guide/remote.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	from := bytes.Index(text, []byte("<!-- "+name+":"))
	to := bytes.Index(text, []byte("<!-- end of "+name+" -->"))
	if from < 0 || to < from {
		t.Fatalf("%s has no place for %s", path, name)
	}
	from += bytes.IndexByte(text[from:], '\n') + 1
	text = slices.Concat(text[:from], []byte("\n"+table+"\n"), text[to:])
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
