//go:build corpus

package b

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// A resolver asks two name servers over UDP and takes the first answer. The second answer is of no use, so each
// lookup begins by throwing away what has come in meanwhile. If an answer to the last query comes after that and
// before the answers to the new one, the resolver takes it for the address of the new name. The answers carry the
// number of their query, but the wrong resolver does not compare it.
//
// Class: order
// Expect: fail
type dnsAnswer struct {
	id   int
	addr string
}

// dnsServe answers a query "id name" with "id name.addr".
func dnsServe(pc net.PacketConn) {
	buf := make([]byte, 512)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		pc.WriteTo(append(buf[:n:n], ".addr"...), from)
	}
}

type dnsResolver struct {
	pc      net.PacketConn
	servers []net.Addr
	answers chan dnsAnswer
	last    int  // number of the last query
	strict  bool // compare the number
}

func (r *dnsResolver) read() {
	buf := make([]byte, 512)
	for {
		n, _, err := r.pc.ReadFrom(buf)
		if err != nil {
			return
		}
		var a dnsAnswer
		if _, err := fmt.Sscanf(string(buf[:n]), "%d %s", &a.id, &a.addr); err == nil {
			r.answers <- a
		}
	}
}

func (r *dnsResolver) discard() {
	for {
		select {
		case <-r.answers:
		default:
			return
		}
	}
}

func (r *dnsResolver) lookup(name string) (string, error) {
	r.discard()
	r.last++
	for _, server := range r.servers {
		if _, err := r.pc.WriteTo(fmt.Appendf(nil, "%d %s", r.last, name), server); err != nil {
			return "", err
		}
	}
	for {
		a := <-r.answers
		if a.id == r.last || !r.strict {
			return a.addr, nil
		}
	}
}

func dnsListen(t *testing.T) net.PacketConn {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

// dnsVisit connects to the host that was looked up and reads its greeting.
func dnsVisit(t *testing.T, ln net.Listener) {
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if greeting, err := io.ReadAll(conn); !strings.HasPrefix(string(greeting), "hello") {
		t.Errorf("greeting %q, %v", greeting, err)
	}
}

func dnsRun(t *testing.T, strict bool) {
	var wg sync.WaitGroup
	host, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		for conn, err := host.Accept(); err == nil; conn, err = host.Accept() {
			fmt.Fprintln(conn, "hello")
			conn.Close()
		}
	})
	primary, secondary := dnsListen(t), dnsListen(t)
	wg.Go(func() { dnsServe(primary) })
	wg.Go(func() { dnsServe(secondary) })
	r := &dnsResolver{pc: dnsListen(t), servers: []net.Addr{secondary.LocalAddr(), primary.LocalAddr()},
		answers: make(chan dnsAnswer, 8), strict: strict}
	wg.Go(r.read)
	for _, name := range []string{"mail", "news"} {
		addr, err := r.lookup(name)
		if err != nil || addr != name+".addr" {
			t.Errorf("address of %s: %q, %v", name, addr, err)
		}
		dnsVisit(t, host)
	}
	for _, c := range []io.Closer{r.pc, primary, secondary, host} {
		c.Close()
	}
	wg.Wait()
}

func TestBugResolverLateAnswer(t *testing.T) {
	dnsRun(t, false)
}

func TestFixedResolverLateAnswer(t *testing.T) {
	dnsRun(t, true)
}
