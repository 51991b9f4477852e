//go:build corpus

package a

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
)

// A chat room over TCP sends every line of a member to all members. Each member has a queue, and a goroutine that
// writes the queue to the connection. The room copies the list of members and sends to their queues without the
// lock. A member that hangs up leaves the list and closes its queue. If it does so after the copy and before the
// send, the send is to a closed channel.
//
// Class: channel
// Expect: panic
type chatRoom struct {
	ln    net.Listener
	tasks sync.WaitGroup
	held  bool // send while holding the lock

	mu      sync.Mutex
	members []chan string
}

func (r *chatRoom) serve() {
	for {
		conn, err := r.ln.Accept()
		if err != nil {
			return
		}
		r.tasks.Go(func() { r.handle(conn) })
	}
}

func (r *chatRoom) handle(conn net.Conn) {
	defer conn.Close()
	queue := make(chan string, 16)
	queue <- "welcome"
	r.join(queue)
	r.tasks.Go(func() {
		for line := range queue {
			fmt.Fprintln(conn, line)
		}
	})
	in := bufio.NewScanner(conn)
	for in.Scan() {
		r.broadcast(in.Text())
	}
	r.leave(queue)
}

func (r *chatRoom) join(queue chan string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = append(r.members, queue)
}

func (r *chatRoom) leave(queue chan string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.members, queue)
	r.members = slices.Delete(r.members, i, i+1)
	close(queue)
}

func (r *chatRoom) broadcast(line string) {
	r.mu.Lock()
	members := slices.Clone(r.members)
	if r.held {
		defer r.mu.Unlock()
	} else {
		r.mu.Unlock()
	}
	for _, queue := range members {
		select {
		case queue <- line:
		default: // a slow member misses the line
		}
	}
}

// chatJoin connects to the room and waits for the welcome.
func chatJoin(t *testing.T, addr string) (net.Conn, *bufio.Scanner) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(conn)
	if !in.Scan() || in.Text() != "welcome" {
		t.Fatalf("got %q instead of the welcome", in.Text())
	}
	return conn, in
}

func chatScene(t *testing.T, held bool) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &chatRoom{ln: ln, held: held}
	r.tasks.Go(r.serve)
	ann, heard := chatJoin(t, ln.Addr().String())
	bob, _ := chatJoin(t, ln.Addr().String())
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, line := range []string{"hello", "anybody here?"} {
			fmt.Fprintln(ann, line)
			if !heard.Scan() || heard.Text() != line {
				t.Errorf("ann said %q and heard %q", line, heard.Text())
			}
		}
	})
	wg.Go(func() { bob.Close() })
	wg.Wait()
	ann.Close()
	ln.Close()
	r.tasks.Wait()
}

func TestBugChatRoom(t *testing.T) { chatScene(t, false) }

func TestFixedChatRoom(t *testing.T) { chatScene(t, true) }
