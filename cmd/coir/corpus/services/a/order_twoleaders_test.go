//go:build corpus

package a

import (
	"net"
	"net/rpc"
	"sync"
	"testing"
	"time"
)

// Two nodes want to lead. The one that gets the lease from the lease service leads, appends its name to the log and
// gives the lease up; the other one asks again a second later. A node gives the lease up first and stops leading
// when the answer has come. If the other node gets the lease before that, both lead for a while.
//
// Class: order
// Expect: fail
type leaderLease struct {
	mu     sync.Mutex
	holder string
	log    []string
}

func (l *leaderLease) Acquire(node string, ok *bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == "" {
		l.holder = node
	}
	*ok = l.holder == node
	return nil
}

func (l *leaderLease) Append(node string, ok *bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, node)
	*ok = true
	return nil
}

func (l *leaderLease) Release(node string, ok *bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == node {
		l.holder = ""
		*ok = true
	}
	return nil
}

// A leaderCluster counts the nodes that lead.
type leaderCluster struct {
	mu           sync.Mutex
	leading, max int
}

func (c *leaderCluster) lead(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leading += n
	c.max = max(c.max, c.leading)
}

// leaderNode leads once and returns. It stops leading before it gives the lease up if resignFirst is set.
func leaderNode(t *testing.T, addr, name string, c *leaderCluster, resignFirst bool) {
	client, err := rpc.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	call := func(method string) bool {
		var ok bool
		if err := client.Call("Lease."+method, name, &ok); err != nil {
			t.Errorf("%s: %v", method, err)
			return true
		}
		return ok
	}
	for !call("Acquire") {
		time.Sleep(time.Second) // until the next attempt
	}
	c.lead(+1)
	call("Append")
	call("Append")
	if resignFirst {
		c.lead(-1)
		call("Release")
	} else {
		call("Release")
		c.lead(-1)
	}
}

func leaderScene(t *testing.T, resignFirst bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lease := &leaderLease{}
	server := rpc.NewServer()
	if err := server.RegisterName("Lease", lease); err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() { server.ServeConn(conn) })
		}
	})
	c := &leaderCluster{}
	var nodes sync.WaitGroup
	for _, name := range []string{"north", "south"} {
		nodes.Go(func() { leaderNode(t, ln.Addr().String(), name, c, resignFirst) })
	}
	nodes.Wait()
	ln.Close()
	tasks.Wait()
	if len(lease.log) != 4 {
		t.Errorf("%d entries in the log", len(lease.log))
	}
	if c.max != 1 {
		t.Errorf("%d nodes led at once", c.max)
	}
}

func TestBugTwoLeaders(t *testing.T) { leaderScene(t, false) }

func TestFixedTwoLeaders(t *testing.T) { leaderScene(t, true) }
