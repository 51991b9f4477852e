//go:build corpus

package b

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A chat server keeps its members in a list. A broadcast walks through the list by index and takes the lock for each
// member anew, since it does not want to write to the network with the lock held. If a member leaves while the
// broadcast is past it, the others move up by one and the next of them is left out.
//
// Class: atomicity
// Expect: fail
type chatMember struct {
	name string
	conn net.Conn
}

type chatRoom struct {
	ln        net.Listener
	wg        sync.WaitGroup
	broadcast func(r *chatRoom, msg string)

	mu      sync.Mutex
	members []*chatMember
}

func (r *chatRoom) add(m *chatMember) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = append(r.members, m)
}

func (r *chatRoom) remove(m *chatMember) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members = slices.DeleteFunc(r.members, func(o *chatMember) bool { return o == m })
}

func (r *chatRoom) at(i int) *chatMember {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= len(r.members) {
		return nil
	}
	return r.members[i]
}

func chatBroadcast(r *chatRoom, msg string) {
	for i := 0; ; i++ {
		m := r.at(i)
		if m == nil {
			return
		}
		fmt.Fprintln(m.conn, msg)
	}
}

func chatBroadcastFixed(r *chatRoom, msg string) {
	r.mu.Lock()
	members := slices.Clone(r.members)
	r.mu.Unlock()
	for _, m := range members {
		fmt.Fprintln(m.conn, msg) // fails for a member that has left
	}
}

func (r *chatRoom) accept() {
	for {
		conn, err := r.ln.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.serve(conn) })
	}
}

func (r *chatRoom) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	if !lines.Scan() {
		return
	}
	m := &chatMember{name: lines.Text(), conn: conn}
	r.add(m)
	defer r.remove(m)
	fmt.Fprintln(conn, "WELCOME")
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "SAY ")
		if !ok {
			return
		}
		r.broadcast(r, m.name+": "+text)
		fmt.Fprintln(conn, "SAID")
	}
}

func chatJoin(t *testing.T, r *chatRoom, name string) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", r.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, name)
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); line != "WELCOME\n" {
		t.Errorf("welcome %q, %v", line, err)
	}
	return conn, in
}

func chatRun(t *testing.T, broadcast func(r *chatRoom, msg string)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &chatRoom{ln: ln, broadcast: broadcast}
	r.wg.Go(r.accept)
	ann, annIn := chatJoin(t, r, "ann")
	bob, bobIn := chatJoin(t, r, "bob")
	cid, cidIn := chatJoin(t, r, "cid")
	var wg sync.WaitGroup
	wg.Go(func() { // leaves after the first message
		annIn.ReadString('\n')
		fmt.Fprintln(ann, "BYE")
		io.Copy(io.Discard, annIn)
		ann.Close()
	})
	fmt.Fprintln(cid, "SAY hello")
	for line := ""; line != "SAID\n"; {
		if line, err = cidIn.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(bob, "BYE")
	if heard, err := io.ReadAll(bobIn); string(heard) != "cid: hello\n" {
		t.Errorf("bob heard %q, %v", heard, err)
	}
	wg.Wait()
	bob.Close()
	cid.Close()
	ln.Close()
	r.wg.Wait()
}

func TestBugChatLeave(t *testing.T) { chatRun(t, chatBroadcast) }

func TestFixedChatLeave(t *testing.T) { chatRun(t, chatBroadcastFixed) }
