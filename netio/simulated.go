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

// The network of a simulation. In a fiber that package sim runs, Listen and Dial find it with coir.Simulated, and make
// connections in memory: see simconn.go. Each schedule starts with an empty network.
//
// The network is built on coir's own operations, so that sim sees them: a Cond as the lock of shared state, a Cond to
// wait on for each kind of wait, and an Alarm for each time. So reports name each wait, sim detects a goroutine that
// uses a simulated connection, and sim knows which operations conflict. Between Lock and Unlock there is no operation
// that may let another fiber run.

// The faults that sim.WithFaults may name.
const (
	faultRefuse  = "netio refuse"
	faultDelay   = "netio delay"
	faultPartial = "netio partial read"
	faultReset   = "netio reset"
	faultSmall   = "netio small buffer"
)

const (
	simBacklog = 128      // connections that may wait to be accepted
	simBuffer  = 64 << 10 // unread bytes in one direction
	smallSize  = 16       // the same, with the fault "netio small buffer"

	never = time.Duration(math.MaxInt64)
)

// simNet is the network of one schedule.
type simNet struct {
	sim       *coir.Simulation
	ctx       context.Context // never ends; identifies the simulation when no fiber runs
	cond      *coir.Cond      // guards the fields below, and the listeners
	listeners []*simListener
	hosts     []string            // the index is the host's address
	clients   map[string]*simConn // the open ends that have dialled, by address
	port      int                 // the last port that was chosen for a caller
	names     int                 // number of names chosen for Unix sockets
}

// The ports for callers that do not ask for a particular port.
const firstPort, lastPort = 49152, 65535

type simNetKey struct{}

// simulated returns the network of the simulation in which the caller runs, or nil.
func simulated(ctx context.Context) *simNet {
	s := coir.Simulated(ctx)
	if s == nil {
		return nil
	}
	return s.State(simNetKey{}, func() any {
		ctx := coir.Shield(context.Background())
		cond := coir.NewCond(coir.WithName("network"))
		return &simNet{sim: s, ctx: ctx, cond: cond, clients: map[string]*simConn{}, port: lastPort}
	}).(*simNet)
}

// networkFor is like simulated, for an operation that uses the real network if there is no simulation. It returns an
// error if there is a simulation that cannot be found.
func networkFor(ctx context.Context, op, network string) (*simNet, error) {
	n := simulated(ctx)
	if n == nil && isCalledByClock() {
		return nil, &net.OpError{Op: op, Net: network, Err: errNoContext}
	}
	return n, nil
}

var errNoContext = errors.New("netio: called without a context of the simulation by a function of OnReadable that " +
	"the clock calls, where the real network would be used: use Dialer.DialContext or ListenConfig.Listen with the " +
	"context of a fiber, or start a fiber that does it")

// now returns the virtual time, limited to a time before never.
func (n *simNet) now() time.Duration { return min(coir.Now(n.ctx), never-1) }

// enter takes the lock for an operation. If the caller is not in the simulation, it returns an error, without the lock.
// If the caller is in another schedule, it panics; what and at describe the connection or listener.
func (n *simNet) enter(lock *coir.Cond, what string, at simAddr) error {
	in := simulated(n.ctx)
	if in != nil && in != n {
		panic("netio: " + what + " " + at.title + " was made in another schedule, whose network has ended: make it in the " +
			"function that sim runs, and keep it in no variable that outlives the schedule")
	}
	if in == nil {
		n.cond.Lock() // if package sim still runs, it detects the caller here
		defer n.cond.Unlock()
		return errOutside
	}
	lock.Lock()
	return nil
}

// endedIn returns ctx's error if ctx has ended. Then it also unlocks lock, which the caller holds. An operation checks
// ctx only when it has the lock: package sim sees the lock, and so tries the operation both before and after a
// cancellation.
func endedIn(ctx context.Context, lock *coir.Cond) error {
	on := false
	defer func() { // even if ctx is nil, or one of its methods panics
		if !on {
			lock.Unlock()
		}
	}()
	err := coir.Ended(ctx)
	on = err == nil
	return err
}

var errOutside = errors.New("netio: used by a goroutine that is not a fiber of its simulation, or when that has ended: " +
	"use it in fibers of the function that sim runs")

// simAddr is an address of the network.
type simAddr struct {
	net.Addr
	title string // for reports: as written by the program
}

// latency returns the delay of a packet: 0 without the fault.
func (n *simNet) latency() time.Duration {
	if !n.sim.Fault(faultDelay) {
		return 0
	}
	return time.Millisecond * [...]time.Duration{1, 10, 100, 1000}[n.sim.Intn(4)]
}

// resolve returns the address that a text names, and the name of the host if it has one. Package net checks the text
// and the local address of a dial, so the errors are those of package net. The caller holds the lock.
func (n *simNet) resolve(network, address string, local net.Addr) (at net.Addr, name string, err error) {
	switch protocol, _, _ := strings.Cut(network, ":"); network {
	case "tcp", "tcp4", "tcp6":
		if address == "" {
			break
		}
		host, service, err := net.SplitHostPort(address)
		if err != nil {
			return nil, "", err
		}
		port, err := net.LookupPort(network, service) // package net does not look up a number
		if err != nil {
			return nil, "", err
		}
		if _, err := netip.ParseAddr(host); err != nil && host != "" {
			if host, name, err = n.lookUp(host, network == "tcp6"); err != nil {
				return nil, "", err
			}
		}
		address = net.JoinHostPort(host, strconv.Itoa(port))
	case "unix":
	default:
		if slices.Contains([]string{"udp", "udp4", "udp6", "unixgram", "unixpacket", "ip", "ip4", "ip6"}, protocol) {
			return nil, "", notSimulated(network)
		}
		return nil, "", net.UnknownNetworkError(network)
	}
	failed := netError(context.Canceled, network, address, local)
	if !errors.Is(failed.Err, context.Canceled) {
		return nil, "", failed.Err
	}
	return failed.Addr, name, nil
}

// netError returns the error that package net returns for a dial in a context that has ended with err.
func netError(err error, network, address string, local net.Addr) *net.OpError {
	due := time.Unix(1, 0)
	if !errors.Is(err, context.DeadlineExceeded) {
		due = time.Now().Add(time.Hour)
	}
	ctx, cancel := context.WithDeadline(context.Background(), due)
	cancel()
	// FallbackDelay is negative because a fallback would be dialled in a goroutine, which sim would take for a
	// goroutine of the program.
	_, err = (&net.Dialer{LocalAddr: local, FallbackDelay: -1}).DialContext(ctx, network, address)
	return err.(*net.OpError)
}

func notSimulated(network string) error {
	return fmt.Errorf("netio: %s is not simulated: %w", network, errors.ErrUnsupported)
}

// lookUp returns the address of a host, and its name unless that is localhost. Every name exists. As with DNS, case and
// a final dot do not matter.
func (n *simNet) lookUp(host string, six bool) (ip, name string, err error) {
	known := strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case known == "localhost" && six:
		return "::1", "", nil
	case known == "localhost":
		return "127.0.0.1", "", nil
	case strings.ContainsAny(host, ":%[]/\\ \x00"):
		return "", "", &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	i := slices.Index(n.hosts, known)
	if i < 0 {
		i = len(n.hosts)
		n.hosts = append(n.hosts, known)
	}
	high, low := byte((i+1)>>8), byte(i+1)
	if six {
		return netip.AddrFrom16([16]byte{0: 0xfd, 14: high, 15: low}).String(), host, nil
	}
	return netip.AddrFrom4([4]byte{10, 0, high, low}).String(), host, nil
}

// titled returns an address of a host, which may have a name.
func titled(a *net.TCPAddr, name string) simAddr {
	if name == "" {
		return simAddr{a, a.String()}
	}
	return simAddr{a, net.JoinHostPort(name, strconv.Itoa(a.Port))}
}

// freePort returns a port at the address ip that neither a listener nor a connection uses. It returns false if there is
// none.
func (n *simNet) freePort(ip net.IP) (int, bool) {
	listened := make(map[int]bool, len(n.listeners))
	for _, l := range n.listeners {
		if a, ok := l.addr.Addr.(*net.TCPAddr); ok {
			listened[a.Port] = true
		}
	}
	for range lastPort - firstPort + 1 {
		if n.port++; n.port > lastPort {
			n.port = firstPort
		}
		if !listened[n.port] && !n.dialled(&net.TCPAddr{IP: ip, Port: n.port}) {
			return n.port, true
		}
	}
	return 0, false
}

// dialled reports whether an open connection was dialled from the address.
func (n *simNet) dialled(from net.Addr) bool { return n.clients[from.String()] != nil }

// forget frees the address of an end that has been closed, if the end had dialled. It takes the lock of the network, so
// that sim knows that this conflicts with a dial from that address.
func (n *simNet) forget(c *simConn) {
	if c.link.unix || c != &c.link.ends[0] {
		return
	}
	n.cond.Lock()
	delete(n.clients, c.local.String())
	n.cond.Unlock()
}

// overlaps reports whether l prevents another listener from using the address at, or whether a connection to that
// address goes to l.
func (l *simListener) overlaps(network string, at net.Addr) bool {
	x, ok := l.addr.Addr.(*net.TCPAddr)
	y, two := at.(*net.TCPAddr)
	if !ok || !two {
		return ok == two && l.addr.String() == at.String()
	}
	if x.Port != y.Port || versions(l.network, x.IP)&versions(network, y.IP) == 0 {
		return false
	}
	return x.IP.IsUnspecified() || y.IP.IsUnspecified() || x.IP.Equal(y.IP)
}

// versions returns the versions of IP that an address of the network has, as bits.
func versions(network string, ip net.IP) int {
	const four, six = 1, 2
	switch {
	case network == "tcp" && ip.IsUnspecified():
		return four | six
	case ip.To4() != nil:
		return four
	}
	return six
}

// listen implements ListenConfig.Listen in a simulation.
func (n *simNet) listen(network, address string) (net.Listener, error) {
	failed := func(at net.Addr, err error) (net.Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: at, Err: err}
	}
	n.cond.Lock()
	defer n.cond.Unlock()
	if address == "" {
		if address = ":0"; network == "unix" {
			n.names++
			address = fmt.Sprintf("@%05x", n.names)
		}
	}
	to, name, err := n.resolve(network, address, nil)
	if err != nil {
		return failed(nil, err)
	}
	at := simAddr{to, address}
	if asked, ok := to.(*net.TCPAddr); ok {
		a := &net.TCPAddr{IP: asked.IP, Port: asked.Port, Zone: asked.Zone}
		if a.IP == nil || network == "tcp" && a.IP.IsUnspecified() {
			if a.IP = net.IPv6unspecified; network == "tcp4" {
				a.IP = net.IPv4zero
			}
		}
		if a.Port == 0 {
			port, ok := n.freePort(a.IP)
			if !ok {
				return failed(to, os.NewSyscallError("bind", errAddrInUse))
			}
			a.Port = port
		}
		at = titled(a, name)
	}
	if n.listener(network, at.Addr) != nil {
		return failed(to, os.NewSyscallError("bind", errAddrInUse))
	}
	l := &simListener{net: n, network: network, addr: at, due: never}
	l.accepts, l.dials = newWaiters(acceptVerb, at.title), newWaiters(dialVerb, at.title)
	n.listeners = append(n.listeners, l)
	return listenerOf(l), nil
}

// dial implements Dialer.DialContext in a simulation.
func (n *simNet) dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	if limit, ok := dialLimit(d); ok {
		var cancel context.CancelFunc
		ctx, cancel = coir.WithTimeout(ctx, limit)
		defer cancel()
	}
	select {
	case <-d.Cancel: //nolint:staticcheck // package net supports it
		in, cancel := coir.WithCancel(ctx)
		cancel()
		ctx = in
	default:
	}
	var to net.Addr
	n.cond.Lock()
	c, woken, err := n.connect(ctx, d.LocalAddr, network, address, &to)
	n.cond.Unlock()
	wakeAll(woken)
	switch {
	case err == nil:
		return connOf(c), nil
	case to == nil:
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		err = netError(err, network, to.String(), d.LocalAddr).Err
	}
	return nil, &net.OpError{Op: "dial", Net: network, Source: d.LocalAddr, Addr: to, Err: err}
}

// dialLimit returns the time limit of a Dialer, if it has one.
func dialLimit(d *net.Dialer) (time.Duration, bool) {
	limit := never
	if d.Timeout != 0 { // a negative timeout has already passed
		limit = d.Timeout
	}
	limit = min(limit, untilVirtually(d.Deadline))
	return limit, limit < never
}

// connect makes a connection to the address, which it stores in to, and puts the other end into a listener's queue. The
// caller holds the lock, and must wake the returned waiters.
func (n *simNet) connect(
	ctx context.Context, local net.Addr, network, address string, to *net.Addr,
) (*simConn, []*simWaiters, error) {
	asked, name, err := n.resolve(network, address, local)
	if err != nil {
		return nil, nil, err
	}
	at := simAddr{asked, address}
	if a, ok := asked.(*net.TCPAddr); ok {
		at = titled(reachable(a, network == "tcp6"), name)
	}
	*to = asked
	if err := coir.Ended(ctx); err != nil {
		return nil, nil, err
	}
	if late := n.latency(); late > 0 {
		n.cond.Unlock()
		err := coir.Sleep(ctx, late)
		n.cond.Lock()
		if err != nil {
			return nil, nil, err
		}
	}
	if n.sim.Fault(faultRefuse) {
		return nil, nil, os.NewSyscallError("connect", errRefused)
	}
	for {
		l := n.listener(network, at.Addr)
		if l == nil && network == "tcp" && allOfIPv6(asked) { // package net tries both versions
			at = titled(reachable(&net.TCPAddr{Port: asked.(*net.TCPAddr).Port}, false), name)
			l = n.listener(network, at.Addr)
		}
		if l == nil {
			if network == "unix" && !strings.HasPrefix(address, "@") {
				return nil, nil, os.NewSyscallError("connect", errNoFile)
			}
			return nil, nil, os.NewSyscallError("connect", errRefused)
		}
		if len(l.queue) < simBacklog {
			own, err := n.ownAddr(at, local)
			if err != nil {
				return nil, nil, err
			}
			c, s := n.newLink(own, at, l.addr)
			if !c.link.unix {
				n.clients[own.String()] = c
			}
			l.queue = append(l.queue, s)
			return c, l.accepts.take(), nil
		}
		if err := l.dials.wait(ctx, n.cond, n.cond.Unlock); err != nil {
			return nil, nil, err
		}
	}
}

// listener returns the listener that overlaps with an address, or nil.
func (n *simNet) listener(network string, at net.Addr) *simListener {
	i := slices.IndexFunc(n.listeners, func(l *simListener) bool { return l.overlaps(network, at) })
	if i < 0 {
		return nil
	}
	return n.listeners[i]
}

// allOfIPv6 reports whether a is [::].
func allOfIPv6(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.Equal(net.IPv6unspecified)
}

// reachable returns a, with the address of this host if a has none.
func reachable(a *net.TCPAddr, six bool) *net.TCPAddr {
	switch {
	case a.IP != nil && !a.IP.IsUnspecified():
		return a
	case six || a.IP != nil && a.IP.To4() == nil:
		return &net.TCPAddr{IP: net.IPv6loopback, Port: a.Port}
	}
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: a.Port}
}

// ownAddr returns the address of the end that dials. All names belong to this host, like the addresses of a loopback
// device, so the end has the address that it dials.
func (n *simNet) ownAddr(to simAddr, local net.Addr) (simAddr, error) {
	t, ok := to.Addr.(*net.TCPAddr)
	if !ok {
		u, ok := local.(*net.UnixAddr)
		if !ok || u == nil {
			u = &net.UnixAddr{Net: "unix"}
		}
		return simAddr{u, "client of " + to.title}, nil
	}
	own := &net.TCPAddr{IP: t.IP, Zone: t.Zone}
	if a, ok := local.(*net.TCPAddr); ok && a != nil {
		if own.Port = a.Port; a.IP != nil && !a.IP.IsUnspecified() {
			own.IP, own.Zone = a.IP, a.Zone
		}
	}
	if own.Port == 0 {
		if own.Port, ok = n.freePort(own.IP); !ok {
			return simAddr{}, os.NewSyscallError("connect", errNoPort)
		}
	} else if n.dialled(own) {
		return simAddr{}, os.NewSyscallError("bind", errAddrInUse)
	}
	return simAddr{own, own.String()}, nil
}

// simListener is a listener of the network, guarded by the network's lock.
type simListener struct {
	net            *simNet
	network        string
	addr           simAddr
	queue          []*simConn // connections that have not been accepted
	accepts, dials simWaiters
	due            time.Duration
	alarm          simAlarm
	closed         bool
}

func (l *simListener) enter() error { return l.net.enter(l.net.cond, "the listener of", l.addr) }

func (l *simListener) accept(ctx context.Context) (*simConn, error) {
	n := l.net
	if err := l.enter(); err != nil {
		return nil, err
	}
	if err := endedIn(ctx, n.cond); err != nil {
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
	left := untilVirtually(t) // before the lock, as in simConn.setDeadlines
	n := l.net
	if err := l.enter(); err != nil {
		return err
	}
	if l.closed {
		n.cond.Unlock()
		return net.ErrClosed
	}
	now := n.now()
	l.due = virtualTime(now, left)
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

// raw returns the reason why there is no syscall.RawConn.
func (l *simListener) raw() error {
	if err := l.enter(); err != nil {
		return err
	}
	defer l.net.cond.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	return errSimulated
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

// simWaiters are the waiters for one condition. The lock of the link or the network guards the condition; the Cond is
// only used for waiting, with a name for reports. Its own lock guards nothing.
type simWaiters struct {
	cond  *coir.Cond
	count int // waiters not yet woken, guarded like the condition
	round int // how often waiters have been woken
}

// The descriptions of waits in reports and snapshots.
var (
	readVerb   = &coir.Verb{Name: "read", Waits: "to read from", Of: "connection"}
	writeVerb  = &coir.Verb{Name: "write", Waits: "to write to", Of: "connection"}
	acceptVerb = &coir.Verb{Name: "accept", Waits: "for a connection to", Of: "listener"}
	dialVerb   = &coir.Verb{Name: "dial", Waits: "to connect to", Of: "listener"}
)

func newWaiters(v *coir.Verb, name string) simWaiters {
	w := simWaiters{cond: coir.NewCond(coir.WithName(name))}
	w.cond.Describe(v)
	return w
}

// wait waits until the waiters are woken. The caller holds the lock of the condition. wait unlocks it while it waits,
// and holds it again when the wait has ended, even if unlock does not return.
func (w *simWaiters) wait(ctx context.Context, lock *coir.Cond, unlock func()) error {
	w.count++
	round := w.round
	woken := w.cond.WaitCase() // also seen if the wake comes between unlock and Select
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

// take returns the waiters that the caller must wake after unlocking: w, if it has any.
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

// virtualTime returns the virtual time that is left after now.
func virtualTime(now, left time.Duration) time.Duration {
	if left < never-now {
		return now + left
	}
	return never
}

// untilVirtually returns the time until the deadline t. The program computed t from the real clock, a short time
// before. That time differs from run to run, so the result is rounded up to two digits.
func untilVirtually(t time.Time) time.Duration {
	if t.IsZero() {
		return never
	}
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
