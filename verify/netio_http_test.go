package verify

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

// netioEnds are the ends of an exchange: netio at both, or the standard library at one.
var netioEnds = []struct {
	name           string
	client, server bool // whether the end uses netio
}{{"both", true, true}, {"client", true, false}, {"server", false, true}}

// serveNetio starts a server. It returns its URL and a client. Each end uses netio if its parameter is true.
func serveNetio(t *testing.T, client, server, secure bool, h http.Handler) (string, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	if server {
		_ = s.Listener.Close()
		l, err := netio.Listen("tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		s.Listener = l
	}
	transport := &http.Transport{DialContext: new(net.Dialer).DialContext, ForceAttemptHTTP2: true}
	if client {
		transport.DialContext = new(netio.Dialer).DialContext
	}
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: "example.com"}
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return s.URL, &http.Client{Transport: transport}
}

// Requests of HTTP/1.1 and of HTTP/2 over TLS, many at a time, with bodies that are larger than a socket's buffers.
func TestNetioUnderHTTP(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<15)
	for _, ends := range netioEnds {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tls=%v", ends.name, secure), func(t *testing.T) {
				major := 1
				if secure {
					major = 2
				}
				url, client := serveNetio(t, ends.client, ends.server, secure, http.HandlerFunc(
					func(w http.ResponseWriter, r *http.Request) {
						if r.ProtoMajor != major {
							t.Errorf("the request is one of %s", r.Proto)
						}
						all, err := io.ReadAll(r.Body) // in HTTP/1.1 the response begins after the request has ended
						if err != nil {
							t.Error(err)
						}
						_, _ = w.Write(all)
					}))
				one := func(ctx context.Context, i int) error {
					sent := body[:len(body)>>(i%12)]
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(sent))
					if err != nil {
						return err
					}
					resp, err := client.Do(req)
					if err != nil {
						return err
					}
					defer resp.Body.Close()
					got, err := io.ReadAll(resp.Body)
					if err == nil && !bytes.Equal(got, sent) {
						err = fmt.Errorf("sent %d bytes, got %d", len(sent), len(got))
					}
					return err
				}
				requests := func(yield func(int) bool) {
					for i := 0; i < 24 && yield(i); i++ {
					}
				}
				if err := coir.ForEach(t.Context(), 8, requests, one); err != nil { // runs in fibers
					t.Error(err)
				}
				if err := coir.ForEach(t.Context(), 8, requests, one, coir.WithGoroutine()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// When its client cancels a request, the request also ends at the server.
func TestNetioRequestGivenUp(t *testing.T) {
	for _, ends := range netioEnds {
		t.Run(ends.name, func(t *testing.T) {
			entered, left := make(chan struct{}), make(chan struct{})
			url, client := serveNetio(t, ends.client, ends.server, false, http.HandlerFunc(
				func(_ http.ResponseWriter, r *http.Request) {
					close(entered)
					<-r.Context().Done()
					close(left)
				}))
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-entered
				cancel()
			}()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
				t.Error("no error")
			}
			<-left
		})
	}
}

// An exchange like that of WebSocket: a request for an upgrade, and then messages in both directions on the same
// connection.
func TestNetioUpgrade(t *testing.T) {
	const messages = 500
	for _, ends := range netioEnds {
		t.Run(ends.name, func(t *testing.T) {
			var served sync.WaitGroup
			served.Add(1)
			url, client := serveNetio(t, ends.client, ends.server, false, http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					defer served.Done()
					w.Header().Set("Connection", "Upgrade")
					w.Header().Set("Upgrade", "lines")
					w.WriteHeader(http.StatusSwitchingProtocols)
					c, rw, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					for {
						line, err := rw.ReadString('\n')
						if err != nil {
							if err != io.EOF {
								t.Error(err)
							}
							return
						}
						_, _ = rw.WriteString("re: " + line)
						if err := rw.Flush(); err != nil {
							t.Error(err)
							return
						}
					}
				}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "lines")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != http.StatusSwitchingProtocols {
				t.Fatal(resp.Status)
			}
			c := resp.Body.(io.ReadWriteCloser)
			err = coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				n.Go("write", func(context.Context) error {
					for i := range messages {
						if _, err := fmt.Fprintf(c, "message %d\n", i); err != nil {
							return err
						}
					}
					return nil
				})
				n.Go("read", func(context.Context) error {
					lines := bufio.NewReader(c)
					for i := range messages {
						line, err := lines.ReadString('\n')
						if err != nil {
							return err
						}
						if line != fmt.Sprintf("re: message %d\n", i) {
							return fmt.Errorf("message %d: got %q", i, line)
						}
					}
					return nil
				})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			_ = c.Close()
			served.Wait()
		})
	}
}
