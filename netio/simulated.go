package netio

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coir-go/coir"
)

// The network of a simulation. In a fiber that package sim runs, Listen and Dial find it by coir.Simulated, and make
// connections that are memory: see simconn.go. It begins empty with each schedule.
//
// All of it is made of coir's own operations, so that sim sees them: a Cond as the lock of what is shared, and one to
// wait on for each thing that is waited for; an Alarm for what comes with time. So a wait has the name of what it waits
// for, a goroutine that uses a simulated connection is found, and a model checker knows which operations conflict.
// Between Lock and Unlock there is no operation that may let another fiber run.

// The faults that sim.WithFaults may name.
const (
	faultRefuse  = "netio refuse"
	faultDelay   = "netio delay"
	faultPartial = "netio partial read"
	faultReset   = "netio reset"
	faultSmall   = "netio small buffer"
)

const (
	simBacklog = 128      // connections that wait to be accepted
	simBuffer  = 64 << 10 // bytes of one direction that have not been read
	smallSize  = 16       // the same, with the fault

	never = time.Duration(math.MaxInt64)
)

// simNet is the network of one schedule.
type simNet struct {
	sim       *coir.Simulation
	ctx       context.Context // never ends; by it the simulation is found where no fiber runs
	cond      *coir.Cond      // guards what follows, and the listeners
	listeners []*simListener
	hosts     []string // by their address
	port      uint16   // the last that was given to a caller that did not ask for one
}

type simNetKey struct{}

// simulated returns the network of the simulation that the caller runs in, or nil.
func simulated(ctx context.Context) *simNet {
	s := coir.Simulated(ctx)
	if s == nil {
		return nil
	}
	return s.State(simNetKey{}, func() any {
		ctx := coir.Shield(context.Background())
		return &simNet{sim: s, ctx: ctx, cond: coir.NewCond(coir.WithName("network")), port: 49151}
	}).(*simNet)
}

// now returns the virtual time.
func (n *simNet) now() time.Duration { return coir.Now(n.ctx) }

// enter locks what an operation uses, and returns an error, without the lock, if the caller is not in the simulation.
// It panics if the caller is in another schedule: what names the connection or listener.
func (n *simNet) enter(lock *coir.Cond, what string, at simAddr) error {
	in := simulated(n.ctx)
	if in != nil && in != n {
		panic("netio: " + what + " " + at.title + " was made in another schedule, whose network has ended: make it in the " +
			"function that sim runs, and keep it in no variable that outlives the schedule")
	}
	if in == nil {
		n.cond.Lock() // so package sim, if it still runs, finds the caller
		defer n.cond.Unlock()
		return errOutside
	}
	lock.Lock()
	return nil
}

var errOutside = errors.New("used by a goroutine that is not a fiber of its simulation, or when that has ended: use it " +
	"in fibers of the function that sim runs")

// simAddr is an address of the network.
type simAddr struct {
	net.Addr
	title string // for reports: as the program has written it
}

// latency returns how long something takes on its way: no time, without the fault.
func (n *simNet) latency() time.Duration {
	if !n.sim.Fault(faultDelay) {
		return 0
	}
	return time.Millisecond * [...]time.Duration{1, 10, 100, 1000}[n.sim.Intn(4)]
}

// resolve returns the address that a text names. The caller holds the lock.
func (n *simNet) resolve(network, address string, listens bool) (simAddr, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	case "unix":
		if address == "" {
			address = "@" + strconv.Itoa(int(n.freePort()))
		}
		return simAddr{&net.UnixAddr{Name: address, Net: network}, address}, nil
	case "udp", "udp4", "udp6", "unixgram", "unixpacket", "ip", "ip4", "ip6":
		return simAddr{}, notSimulated(network)
	default:
		return simAddr{}, net.UnknownNetworkError(network)
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return simAddr{}, err
	}
	port, err := net.LookupPort(network, service) // a number is not looked up
	if err != nil {
		return simAddr{}, err
	}
	ip, named := n.lookUp(host, network == "tcp6", listens)
	if network == "tcp4" && !ip.Is4() || network == "tcp6" && ip.Is4() {
		return simAddr{}, &net.AddrError{Err: "no suitable address", Addr: host}
	}
	if listens && host == "" && network != "tcp4" {
		ip = netip.IPv6Unspecified()
	}
	if port == 0 && listens {
		port = int(n.freePort())
	}
	a := &net.TCPAddr{IP: ip.AsSlice(), Port: port, Zone: ip.Zone()}
	if named {
		return simAddr{a, net.JoinHostPort(host, strconv.Itoa(port))}, nil
	}
	return simAddr{a, a.String()}, nil
}

func notSimulated(network string) error {
	return fmt.Errorf("%s is not simulated: %w", network, errors.ErrUnsupported)
}

// lookUp returns the address of a host. Any name is one, and named reports that it is not an address already.
func (n *simNet) lookUp(host string, six, listens bool) (ip netip.Addr, named bool) {
	switch {
	case host == "" && listens:
		return netip.IPv4Unspecified(), false
	case (host == "" || host == "localhost") && six:
		return netip.IPv6Loopback(), false
	case host == "" || host == "localhost":
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap(), false
	}
	i := slices.Index(n.hosts, host)
	if i < 0 {
		i = len(n.hosts)
		n.hosts = append(n.hosts, host)
	}
	high, low := byte((i+1)>>8), byte(i+1)
	if six {
		return netip.AddrFrom16([16]byte{0: 0xfd, 14: high, 15: low}), true
	}
	return netip.AddrFrom4([4]byte{10, 0, high, low}), true
}

// freePort returns a port that no one listens on.
func (n *simNet) freePort() uint16 {
	for {
		n.port = max(n.port+1, 49152) // after the last comes the first
		if !slices.ContainsFunc(n.listeners, func(l *simListener) bool {
			a, ok := l.addr.Addr.(*net.TCPAddr)
			return ok && a.Port == int(n.port)
		}) {
			return n.port
		}
	}
}

// overlap reports whether two addresses that are listened on exclude each other, or a connection to b goes to a.
func overlap(a, b net.Addr) bool {
	x, ok := a.(*net.TCPAddr)
	y, two := b.(*net.TCPAddr)
	if !ok || !two {
		return ok == two && a.String() == b.String()
	}
	return x.Port == y.Port && (x.IP.IsUnspecified() || y.IP.IsUnspecified() || x.IP.Equal(y.IP))
}

// listen is ListenConfig.Listen in a simulation.
func (n *simNet) listen(ctx context.Context, network, address string) (net.Listener, error) {
	failed := func(at net.Addr, err error) (net.Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: at, Err: err}
	}
	if err := coir.Ended(ctx); err != nil {
		return nil, err
	}
	n.cond.Lock()
	defer n.cond.Unlock()
	at, err := n.resolve(network, address, true)
	if err != nil {
		return failed(nil, err)
	}
	if slices.ContainsFunc(n.listeners, func(l *simListener) bool { return overlap(l.addr.Addr, at.Addr) }) {
		return failed(at.Addr, os.NewSyscallError("bind", errAddrInUse))
	}
	l := &simListener{net: n, addr: at, due: never}
	l.accepts, l.dials = newWaiters("accept "+at.title), newWaiters("dial "+at.title)
	n.listeners = append(n.listeners, l)
	return listenerOf(l), nil
}

// dial is Dialer.DialContext in a simulation.
func (n *simNet) dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	if limit, ok := dialLimit(d); ok {
		var cancel context.CancelFunc
		ctx, cancel = coir.WithTimeout(ctx, limit)
		defer cancel()
	}
	if err := coir.Ended(ctx); err != nil {
		return nil, err
	}
	var to simAddr
	c, err := n.connect(ctx, d, network, address, &to)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Source: d.LocalAddr, Addr: to.Addr, Err: err}
	}
	return connOf(c), nil
}

// dialLimit returns how long a Dialer may take, if that is limited.
func dialLimit(d *net.Dialer) (time.Duration, bool) {
	limit := never
	if d.Timeout > 0 {
		limit = d.Timeout
	}
	if !d.Deadline.IsZero() {
		limit = min(limit, untilVirtually(d.Deadline))
	}
	return limit, limit < never
}

// connect makes a connection to the address, which it stores in to, and puts the other end into a listener's queue.
func (n *simNet) connect(ctx context.Context, d *net.Dialer, network, address string, to *simAddr) (*simConn, error) {
	n.cond.Lock()
	at, err := n.resolve(network, address, false)
	if err != nil {
		n.cond.Unlock()
		return nil, err
	}
	*to = at
	late := n.latency()
	if late > 0 {
		n.cond.Unlock()
		if err := coir.Sleep(ctx, late); err != nil {
			return nil, err
		}
		n.cond.Lock()
	}
	if n.sim.Fault(faultRefuse) {
		n.cond.Unlock()
		return nil, os.NewSyscallError("connect", errRefused)
	}
	for {
		i := slices.IndexFunc(n.listeners, func(l *simListener) bool { return overlap(l.addr.Addr, at.Addr) })
		if i < 0 {
			n.cond.Unlock()
			if network == "unix" && !strings.HasPrefix(address, "@") {
				return nil, os.NewSyscallError("connect", errNoFile)
			}
			return nil, os.NewSyscallError("connect", errRefused)
		}
		l := n.listeners[i]
		if len(l.queue) < simBacklog {
			own := n.ownAddr(at, d.LocalAddr)
			c, s := n.newLink(own, at, l.addr)
			l.queue = append(l.queue, s)
			woken := l.accepts.take()
			n.cond.Unlock()
			wakeAll(woken)
			return c, nil
		}
		if err := l.dials.wait(ctx, n.cond, n.cond.Unlock); err != nil {
			n.cond.Unlock()
			return nil, err
		}
	}
}

// ownAddr returns the address of the end that dials: all hosts are one, so it has the address that it dials.
func (n *simNet) ownAddr(to simAddr, asked net.Addr) simAddr {
	t, ok := to.Addr.(*net.TCPAddr)
	if !ok {
		u, ok := asked.(*net.UnixAddr)
		if !ok {
			u = &net.UnixAddr{Net: "unix"}
		}
		return simAddr{u, "client of " + to.title}
	}
	own := &net.TCPAddr{IP: t.IP, Zone: t.Zone}
	if a, ok := asked.(*net.TCPAddr); ok && a != nil {
		if own.Port = a.Port; a.IP != nil && !a.IP.IsUnspecified() {
			own.IP, own.Zone = a.IP, a.Zone
		}
	}
	if own.Port == 0 {
		own.Port = int(n.freePort())
	}
	return simAddr{own, own.String()}
}

// simListener is a listener of the network, guarded by the network's lock.
type simListener struct {
	net            *simNet
	addr           simAddr
	queue          []*simConn // that no one has accepted yet
	accepts, dials simWaiters
	due            time.Duration
	alarm          simAlarm
	closed         bool
}

func (l *simListener) enter() error { return l.net.enter(l.net.cond, "the listener of", l.addr) }

func (l *simListener) accept(ctx context.Context) (*simConn, error) {
	if err := coir.Ended(ctx); err != nil {
		return nil, err
	}
	n := l.net
	if err := l.enter(); err != nil {
		return nil, err
	}
	for {
		now := n.now()
		switch {
		case l.closed:
			n.cond.Unlock()
			return nil, net.ErrClosed
		case now >= l.due:
			n.cond.Unlock()
			return nil, os.ErrDeadlineExceeded
		case len(l.queue) > 0:
			c := l.queue[0]
			l.queue = slices.Delete(l.queue, 0, 1)
			woken := l.dials.take()
			n.cond.Unlock()
			wakeAll(woken)
			return c, nil
		}
		l.alarm.set(n.ctx, l, now, l.due)
		if err := l.accepts.wait(ctx, n.cond, n.cond.Unlock); err != nil {
			n.cond.Unlock()
			return nil, err
		}
	}
}

// Ended implements coir.Watcher: the deadline has passed.
func (l *simListener) Ended(error) {
	l.net.cond.Lock()
	l.alarm.armed = false
	woken := l.accepts.take()
	l.net.cond.Unlock()
	wakeAll(woken)
}

func (l *simListener) setDeadline(t time.Time) error {
	n := l.net
	if err := l.enter(); err != nil {
		return err
	}
	if l.closed {
		n.cond.Unlock()
		return net.ErrClosed
	}
	now := n.now()
	l.due = virtualTime(now, t)
	var woken []*simWaiters
	if now >= l.due {
		woken = l.accepts.take()
	} else if l.accepts.count > 0 {
		l.alarm.set(n.ctx, l, now, l.due)
	}
	n.cond.Unlock()
	wakeAll(woken)
	return nil
}

func (l *simListener) close() error {
	n := l.net
	if err := l.enter(); err != nil {
		return err
	}
	if l.closed {
		n.cond.Unlock()
		return net.ErrClosed
	}
	l.closed = true
	l.alarm.stop()
	n.listeners = slices.DeleteFunc(n.listeners, func(x *simListener) bool { return x == l })
	woken := slices.Concat(l.accepts.take(), l.dials.take())
	left := l.queue
	l.queue = nil
	n.cond.Unlock()
	wakeAll(woken)
	abandon := make([]func(), len(left))
	for i, c := range left {
		abandon[i] = c.abandon
	}
	callAll(abandon)
	return nil
}

// simWaiters are those that wait for one thing. What they wait for is guarded by a lock of the link or the network; the
// Cond is there to wait on, with a name for reports. Its lock guards nothing.
type simWaiters struct {
	cond  *coir.Cond
	count int // of those that wait and have not been woken, guarded as what they wait for
	round int // how often they have been woken
}

func newWaiters(name string) simWaiters { return simWaiters{cond: coir.NewCond(coir.WithName(name))} }

// wait waits until the waiters are woken. The caller holds the lock of what it waits for, which is unlocked meanwhile. It
// holds the lock again when wait has ended, also if unlock does not return.
func (w *simWaiters) wait(ctx context.Context, lock *coir.Cond, unlock func()) error {
	w.count++
	round := w.round
	woken := w.cond.WaitCase() // also if that is between unlock and Select
	defer func() {
		lock.Lock()
		if w.round == round {
			w.count--
		}
	}()
	unlock()
	_, err := coir.Select(ctx, woken)
	return err
}

// take returns what the caller wakes when it has unlocked: w, if there are waiters.
func (w *simWaiters) take() []*simWaiters {
	if w.count == 0 {
		return nil
	}
	w.count = 0
	w.round++
	return []*simWaiters{w}
}

func wakeAll(all []*simWaiters) {
	for _, w := range all {
		w.cond.Lock()
		w.cond.Broadcast()
		w.cond.Unlock()
	}
}

// simAlarm is an alarm that can be moved.
type simAlarm struct {
	coir.Alarm
	at    time.Duration
	armed bool
}

// set moves the alarm to a time, which may be never.
func (a *simAlarm) set(ctx context.Context, to coir.Watcher, now, at time.Duration) {
	if a.armed && a.at == at {
		return
	}
	if a.stop(); at < never {
		a.Start(ctx, to, at-now)
		a.at, a.armed = at, true
	}
}

func (a *simAlarm) stop() {
	if a.armed {
		a.Stop()
		a.armed = false
	}
}

// virtualTime returns the time on the virtual clock, which shows now, that a deadline stands for.
func virtualTime(now time.Duration, t time.Time) time.Duration {
	if t.IsZero() {
		return never
	}
	if left := untilVirtually(t); left < never-now {
		return now + left
	}
	return never
}

// untilVirtually returns how long it is until t. A program has made t from the real clock, a moment ago. So that this
// moment, which differs from run to run, does not matter, the result is rounded up to two digits.
func untilVirtually(t time.Time) time.Duration {
	left := max(time.Until(t), 0)
	unit := time.Duration(1)
	for unit <= left/100 {
		unit *= 10
	}
	if left > never-unit {
		return never
	}
	return (left + unit - 1) / unit * unit
}
