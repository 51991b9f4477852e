// Package network has tests whose sockets are on loopback addresses. Under coir test they are in memory, but for tests
// with OnKernel in their name.
package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// echo serves a listener: it returns what it reads, in capitals.
func echo(l net.Listener) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				buf := make([]byte, 100)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					_, _ = c.Write(bytes.ToUpper(buf[:n]))
				}
			})
		}
	})
	return &wg
}

func listen(t *testing.T, network, address string) net.Listener {
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func ask(t *testing.T, l net.Listener) {
	c, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	buf := make([]byte, 5)
	_, _ = c.Write([]byte("hello"))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "HELLO" {
		t.Errorf("read %q, %v", buf, err)
	}
}

func TestTCP(t *testing.T) {
	l := listen(t, "tcp", "localhost:0")
	wg := echo(l)
	ask(t, l)
	ask(t, l)
	_ = l.Close()
	wg.Wait()
}

func TestUnix(t *testing.T) {
	l := listen(t, "unix", filepath.Join(t.TempDir(), "s"))
	wg := echo(l)
	ask(t, l)
	_ = l.Close()
	wg.Wait()
}

func TestUDP(t *testing.T) {
	s, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 100)
		n, from, err := s.ReadFrom(buf)
		if err == nil {
			_, err = s.WriteTo(bytes.ToUpper(buf[:n]), from)
		}
		if err != nil {
			t.Error(err)
		}
	})
	c, err := net.Dial("udp", s.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write([]byte("hello"))
	buf := make([]byte, 100)
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "HELLO" {
		t.Errorf("read %q, %v", buf, err)
	}
	wg.Wait()
	_ = c.Close()
	_ = s.Close()
}

func get(t *testing.T, c *http.Client, url string) {
	resp, err := c.Get(url)
	if err != nil {
		t.Error(err)
		return
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(text) != "hello" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })

func TestHTTP(t *testing.T) {
	s := httptest.NewServer(hello)
	defer s.Close()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { get(t, s.Client(), s.URL) })
	}
	wg.Wait()
}

// A server closes its connections in the order of a map, by their addresses.
func TestManyConnections(t *testing.T) {
	var in sync.WaitGroup
	in.Add(100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.Done()
		in.Wait()
		hello(w, r)
	}))
	defer s.Close()
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer c.CloseIdleConnections()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { get(t, c, s.URL) })
	}
	wg.Wait()
}

// Idle connections of the default client do not live from one schedule to the next.
func TestDefaultClient(t *testing.T) {
	s := httptest.NewServer(hello)
	defer s.Close()
	get(t, http.DefaultClient, s.URL)
	get(t, http.DefaultClient, s.URL)
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(hello)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	get(t, s.Client(), s.URL)
	c, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// Time is virtual, also beside sockets.
func TestSlowServer(t *testing.T) {
	begin := time.Now()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Hour)
		_, _ = io.WriteString(w, "hello")
	}))
	defer s.Close()
	get(t, s.Client(), s.URL)
	if took := time.Since(begin); took < time.Hour || took > time.Hour+time.Minute {
		t.Error(took)
	}
}

func TestClientTimeout(t *testing.T) {
	stop := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer s.Close()
	defer close(stop)
	c := s.Client()
	c.Timeout = time.Minute
	begin := time.Now()
	if _, err := c.Get(s.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(begin); took > 2*time.Minute {
		t.Error(took)
	}
}

// A deadline is moved while a goroutine waits.
func TestDeadlineMoves(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	begin := time.Now()
	_ = a.SetReadDeadline(begin.Add(time.Hour))
	ended := make(chan error, 1)
	go func() { _, err := a.Read(make([]byte, 1)); ended <- err }()
	time.Sleep(time.Minute)
	_ = a.SetReadDeadline(begin.Add(10 * time.Minute))
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if took := time.Since(begin); took < 10*time.Minute || took > 11*time.Minute {
		t.Error(took)
	}
	_ = a.SetReadDeadline(time.Time{})
}

// A writer waits for a reader: the buffer of a connection is bounded.
func TestBackPressure(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	const size = 8 << 20
	var wg sync.WaitGroup
	var written time.Time
	wg.Go(func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if n, err := c.Write(make([]byte, size)); n != size || err != nil {
			t.Error(n, err)
		}
		written = time.Now()
	})
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(time.Minute)
	begin := time.Now()
	if n, err := io.Copy(io.Discard, c); n != size || err != nil {
		t.Error(n, err)
	}
	wg.Wait()
	if written.Before(begin) {
		t.Error("it did not wait")
	}
}

// Writers of packets wait for the reader of a unix socket whose queue is full, also without a connection to it.
func TestUnixPacketsBackPressure(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) *net.UnixAddr { return &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unixgram"} }
	r, err := net.ListenUnixgram("unixgram", at("r"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const each, size = 50, 9000
	var wg sync.WaitGroup
	writes := func(c *net.UnixConn, err error, write func([]byte) (int, error)) {
		if err != nil {
			t.Error(err)
			return
		}
		wg.Go(func() {
			defer c.Close()
			for range each {
				if n, err := write(make([]byte, size)); n != size || err != nil {
					t.Error(n, err)
					return
				}
			}
		})
	}
	c, err := net.DialUnix("unixgram", nil, at("r"))
	writes(c, err, c.Write)
	u, err := net.ListenUnixgram("unixgram", at("u"))
	writes(u, err, func(b []byte) (int, error) { return u.WriteTo(b, at("r")) })
	time.Sleep(time.Minute) // both wait
	for range 2 * each {
		if n, err := r.Read(make([]byte, size)); n != size || err != nil {
			t.Fatal(n, err)
		}
	}
	wg.Wait()
}

// Many pieces, files and connections are copied into a connection.
func TestCopies(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	text := strings.Repeat("hello", 1000)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		b := net.Buffers{[]byte(text[:1]), nil, []byte(text[1:])}
		if _, err := b.WriteTo(c); err != nil {
			t.Error(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if n, err := io.Copy(c, f); n != int64(len(text)) || err != nil {
			t.Error(n, err)
		}
	})
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := io.ReadAll(c); string(got) != text+text || err != nil {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	wg.Wait()
}

// The other end does not come.
//
// Expect: deadlock
func TestBugAccept(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	_, _ = l.Accept()
}

// Both ends wait for the other to speak first.
//
// Expect: deadlock
func TestBugBothRead(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	go func() {
		c, _ := l.Accept()
		_, _ = c.Read(make([]byte, 1))
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Read(make([]byte, 1))
}

// Both ends write more than the connection holds before they read.
//
// Expect: deadlock
func TestBugBothWrite(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	much := make([]byte, 16<<20)
	go func() {
		c, _ := l.Accept()
		_, _ = c.Write(much)
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Write(much)
}

// Two requests find the same balance.
//
// Expect: fail
func TestBugLostUpdate(t *testing.T) {
	var mu sync.Mutex
	balance := 10
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		b := balance
		mu.Unlock()
		mu.Lock()
		balance = b + 1
		mu.Unlock()
	}))
	defer s.Close()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			resp, err := s.Client().Get(s.URL)
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	wg.Wait()
	if balance != 12 {
		t.Errorf("the balance is %d", balance)
	}
}

// A connection orders what is before a write and after the read of its bytes, and nothing else: both ends write to n when
// they have written to the connection.
//
// Expect: race
func TestBugRace(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	n := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("x"))
		n++
	})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("y"))
	n++
	wg.Wait()
}

// The first write to a peer that has closed may succeed, but not if it is large: the reset comes before it ends.
func TestLargeWriteToClosed(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	_ = l.Close()
	if n, err := c.Write(make([]byte, 8<<20)); err == nil {
		t.Errorf("%d bytes were written", n)
	}
}

// Only the kernel can copy a descriptor.
func TestFileOnKernel(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	m, err := net.FileListener(f)
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
}

// A process may connect to what the test listens at.
func TestProcessOnKernel(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	if err := exec.Command("true").Run(); err != nil {
		t.Skip(err)
	}
}

// So it may if it is told later where that is, or get a port that the test has found to be free.
func TestProcessFirstOnKernel(t *testing.T) {
	if err := exec.Command("true").Run(); err != nil {
		t.Skip(err)
	}
	_ = listen(t, "tcp", "127.0.0.1:0").Close()
}

func TestFreePortOnKernel(t *testing.T) {
	_ = listen(t, "tcp", "127.0.0.1:0").Close()
	if err := exec.Command("true").Run(); err != nil {
		t.Skip(err)
	}
}

// work is for a goroutine that is there before the test.
var work = func() chan func() {
	work := make(chan func())
	go func() {
		for f := range work {
			f()
		}
	}()
	return work
}()

func TestWorkerOnKernel(t *testing.T) {
	l := listen(t, "tcp", "127.0.0.1:0")
	wg := echo(l)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	work <- func() {
		_, err := c.Write([]byte("hello"))
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 5))
		}
		done <- err
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = c.Close()
	_ = l.Close()
	wg.Wait()
}

// A server that is there before the test is in the kernel.
func TestServerOutsideOnKernel(t *testing.T) {
	if outside == nil {
		t.Skip("there is none")
	}
	c, err := net.Dial("tcp", outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// Its port is in use, also for what listens in memory.
func TestPortInUse(t *testing.T) {
	if outside == nil || outsidePackets == nil {
		t.Skip("there is none")
	}
	_, port, _ := net.SplitHostPort(outside.Addr().String())
	_, other, _ := net.SplitHostPort(outsidePackets.LocalAddr().String())
	for _, host := range []string{"127.0.0.1", "0.0.0.0", ""} {
		if l, err := net.Listen("tcp", host+":"+port); !errors.Is(err, syscall.EADDRINUSE) {
			t.Error(host, l, err)
		}
		if c, err := net.ListenPacket("udp", host+":"+other); !errors.Is(err, syscall.EADDRINUSE) {
			t.Error(host, c, err)
		}
	}
	l := listen(t, "tcp", "127.0.0.2:"+port)
	_ = l.Close()
}

var (
	outside, _        = net.Listen("tcp", "127.0.0.1:0")
	outsidePackets, _ = net.ListenPacket("udp", "127.0.0.1:0")
)

// In one order of the two it uses the kernel's network: then all schedules do.
func TestSometimesOnKernel(t *testing.T) {
	order := make(chan int, 2)
	go func() { order <- 1 }()
	go func() { order <- 2 }()
	l := listen(t, "tcp", "127.0.0.1:0")
	defer l.Close()
	if first := <-order; first == 2 {
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	fmt.Fprint(io.Discard, <-order)
}
