//go:build corpus

package a

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// A monitor takes the heartbeats of its peers over UDP, each with the second it was sent. A sweep marks the peers dead
// that were not heard of for five seconds; a dead peer is told so at its next heartbeat and joins again. The sweep
// makes a list of silent peers first and marks them second. A heartbeat in between is answered ok, and then the live
// peer is marked dead without hearing of it.
//
// Class: atomicity
// Expect: fail
type beatMonitor struct {
	conn  net.PacketConn
	tasks sync.WaitGroup
	sweep func(now int)

	mu   sync.Mutex
	last map[string]int
	dead map[string]bool
}

func newBeatMonitor(t *testing.T) *beatMonitor {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &beatMonitor{conn: conn, last: map[string]int{}, dead: map[string]bool{}}
}

func (m *beatMonitor) serve() {
	buf := make([]byte, 256)
	for {
		n, from, err := m.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		packet := string(buf[:n])
		m.tasks.Go(func() { m.conn.WriteTo([]byte(m.handle(packet)), from) })
	}
}

func (m *beatMonitor) handle(packet string) string {
	var verb, peer string
	var second int
	fmt.Sscan(packet, &verb, &peer, &second)
	if verb == "sweep" {
		m.sweep(second)
		return "ok"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case verb == "join":
		m.dead[peer] = false
	case m.dead[peer]:
		return "dead"
	}
	if verb != "state" {
		m.last[peer] = second
	}
	return "ok"
}

func (m *beatMonitor) silent(now int) (peers []string) {
	for peer, second := range m.last {
		if now-second >= 5 {
			peers = append(peers, peer)
		}
	}
	return peers
}

func (m *beatMonitor) mark(peers []string) {
	for _, peer := range peers {
		m.dead[peer] = true
	}
}

func (m *beatMonitor) sweepTwoSteps(now int) {
	m.mu.Lock()
	peers := m.silent(now)
	m.mu.Unlock()

	m.mu.Lock()
	m.mark(peers)
	m.mu.Unlock()
}

func (m *beatMonitor) sweepOneStep(now int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mark(m.silent(now))
}

func beatScene(t *testing.T, m *beatMonitor) {
	m.tasks.Go(m.serve)
	ask := func(packet string) string {
		conn, err := net.Dial("udp", m.conn.LocalAddr().String())
		if err != nil {
			t.Error(err)
			return ""
		}
		defer conn.Close()
		fmt.Fprint(conn, packet)
		buf := make([]byte, 256)
		n, err := conn.Read(buf)
		if err != nil {
			t.Error(err)
		}
		return string(buf[:n])
	}
	ask("join db 1")
	var wg sync.WaitGroup
	wg.Go(func() {
		if ask("beat db 8") == "dead" {
			ask("join db 8")
		}
	})
	wg.Go(func() { ask("sweep all 10") })
	wg.Wait()
	if got := ask("state db 0"); got != "ok" {
		t.Errorf("the peer is live and the monitor says %s", got)
	}
	m.conn.Close()
	m.tasks.Wait()
}

func TestBugHeartbeat(t *testing.T) {
	m := newBeatMonitor(t)
	m.sweep = m.sweepTwoSteps
	beatScene(t, m)
}

func TestFixedHeartbeat(t *testing.T) {
	m := newBeatMonitor(t)
	m.sweep = m.sweepOneStep
	beatScene(t, m)
}
