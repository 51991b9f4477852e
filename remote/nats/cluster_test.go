//go:build unix

package nats_test

// A cluster of three servers in separate processes, with the accounts that the package ships, and TLS on all
// connections. The test binary starts itself in a role. A process with a role ends when its standard input ends.

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir/remote/nats"
)

// roleEnv is the environment variable that holds the role of a process, as JSON.
const roleEnv = "COIR_NATS_TEST_ROLE"

// role says what a process does.
type role struct {
	Kind     string // a key of roles
	Conf     string // of a broker: its configuration file
	Dir      string // of others: where the certificates are
	Node     string // of others: the name in the certificate
	URL      string // of others: the servers
	Channel  string
	Capacity int
	First    int // of a sender: its first value
}

var roles = map[string]func(r role, orders io.Reader, say func(format string, args ...any)) error{
	"broker": playBroker, "sender": playSender, "receiver": playReceiver,
}

func TestMain(m *testing.M) {
	text := os.Getenv(roleEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err == nil {
		err = roles[r.Kind](r, os.Stdin, func(format string, args ...any) {
			_, _ = os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n") // one write, so a line is never partial
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, r.Kind, r.Channel, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// playBroker runs a server.
func playBroker(r role, orders io.Reader, say func(format string, args ...any)) error {
	opts, err := server.ProcessConfigFile(r.Conf)
	if err != nil {
		return err
	}
	opts.NoSigs = true
	opts.NoLog = opts.LogFile == ""
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("it does not start")
	}
	say("ready")
	_, err = io.Copy(io.Discard, orders)
	return err
}

// process is a process that a test has started.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when the process has ended and all its lines were read
}

// play starts a process, and calls hear for each of its lines, in order.
func play(t testing.TB, r role, hear func(line string)) *process {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	var stderr bytes.Buffer
	p.cmd.Stderr = &stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			hear(lines.Text())
		}
		_ = p.cmd.Wait()
		if p.cmd.ProcessState.ExitCode() == 1 {
			t.Errorf("%s %s: %s", r.Kind, r.Node, stderr.String())
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if the process has ended
	<-p.ended
}

// end asks the process to end, and waits for that.
func (p *process) end() {
	_ = p.stdin.Close()
	<-p.ended
}

// brokers is the cluster.
type brokers struct {
	t       testing.TB
	dir     string
	names   []string
	listen  []string // where the servers listen: for clients, then for other servers
	addrs   []string // where clients reach the servers, through a proxy
	proxies []*proxy
	procs   []*process
}

// startBrokers starts three servers. The users get certificates.
func startBrokers(t testing.TB, users ...string) *brokers {
	t.Helper()
	b := &brokers{t: t, dir: t.TempDir(), names: []string{"n1", "n2", "n3"}}
	writeCertificates(t, b.dir, append(users, b.names...)...)
	accounts, err := os.ReadFile("accounts.conf")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(b.dir, "accounts.conf"), accounts)
	b.listen = freeAddrs(t, 6)
	for i := range b.names {
		p := newProxy(t, b.listen[i])
		b.proxies, b.addrs = append(b.proxies, p), append(b.addrs, p.addr())
		b.configure(i, "always")
	}
	b.procs = make([]*process, len(b.names))
	for i := range b.names {
		b.start(i)
	}
	return b
}

// configure writes the configuration of a server.
func (b *brokers) configure(i int, syncs string) {
	routes := b.listen[3:]
	name := b.names[i]
	file := func(name string) string { return filepath.Join(b.dir, name) }
	certificate := fmt.Sprintf("cert_file: %q, key_file: %q, ca_file: %q",
		file(name+".pem"), file(name+".key"), file("ca.pem"))
	writeFile(b.t, file(name+".conf"), fmt.Appendf(nil, `
server_name: %s
listen: %s
client_advertise: %s
jetstream { store_dir: %q, sync_interval: %s }
tls { %s, verify_and_map: true }
cluster { name: coir, listen: %s, routes: [tls://%s], tls { %s } }
include accounts.conf
`, name, b.listen[i], b.addrs[i], file(name), syncs, certificate, routes[i], strings.Join(routes, ", tls://"), certificate))
}

// start starts a server. It does not wait until it is ready.
func (b *brokers) start(i int) <-chan struct{} {
	ready := make(chan struct{})
	b.procs[i] = play(b.t, role{Kind: "broker", Node: b.names[i], Conf: filepath.Join(b.dir, b.names[i]+".conf")},
		func(string) { close(ready) })
	return ready
}

// url returns the URLs of the servers, as a client needs them.
func (b *brokers) url() string { return "tls://" + strings.Join(b.addrs, ",tls://") }

// healthy waits until all servers are running and each has all stored messages. It returns the leaders of the streams.
func (b *brokers) healthy(ctx context.Context, nc *client.Conn, streams ...string) (leaders []string) {
	b.t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	err = poll(ctx, func(ctx context.Context) error {
		leaders = nil
		for _, name := range streams {
			leader, err := currentLeader(ctx, js, name)
			if err != nil {
				return err
			}
			leaders = append(leaders, leader)
		}
		return nil
	})
	if err != nil {
		b.t.Fatalf("the cluster does not recover: %v", err)
	}
	return leaders
}

// currentLeader returns the leader of a stream. It fails if a server of the stream, or of a consumer, is behind.
func currentLeader(ctx context.Context, js jetstream.JetStream, name string) (string, error) {
	s, err := js.Stream(ctx, name)
	if err != nil {
		return "", err
	}
	clusters := []*jetstream.ClusterInfo{s.CachedInfo().Cluster}
	if c, err := s.Consumer(ctx, "default"); err == nil {
		clusters = append(clusters, c.CachedInfo().Cluster)
	}
	for _, c := range clusters {
		if c == nil || c.Leader == "" || len(c.Replicas) != 2 {
			return "", fmt.Errorf("%s has no leader, or not all replicas: %+v", name, c)
		}
		for _, p := range c.Replicas {
			if !p.Current || p.Offline {
				return "", fmt.Errorf("%s of %s is not current", p.Name, name)
			}
		}
	}
	return clusters[0].Leader, nil
}

// poll calls f until it succeeds or ctx ends.
func poll(ctx context.Context, f func(ctx context.Context) error) error {
	for {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := f(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// index returns the number of a server.
func (b *brokers) index(name string) int { return slices.Index(b.names, name) }

// dial connects to the cluster as a user, with its certificate.
func dial(ctx context.Context, dir, url, user string, opts ...client.Option) (nc *client.Conn, err error) {
	opts = append(append(nats.Options(),
		client.RootCAs(filepath.Join(dir, "ca.pem")), client.CustomInboxPrefix("_INBOX_"+user),
		client.ClientCert(filepath.Join(dir, user+".pem"), filepath.Join(dir, user+".key"))), opts...)
	err = poll(ctx, func(context.Context) error {
		nc, err = client.Connect(url, opts...)
		return err
	})
	return nc, err
}

// dialed connects to the cluster for a test.
func (b *brokers) dialed(ctx context.Context, user string, opts ...client.Option) *client.Conn {
	b.t.Helper()
	nc, err := dial(ctx, b.dir, b.url(), user, opts...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	return nc
}

// newTransport returns a transport. While the cluster has no leader, it tries again.
func newTransport(ctx context.Context, nc *client.Conn, opts ...nats.Option) (tr *nats.Transport, err error) {
	err = poll(ctx, func(ctx context.Context) error {
		tr, err = nats.New(ctx, nc, opts...)
		return err
	})
	return tr, err
}

// freeAddrs returns addresses at which nothing listens.
func freeAddrs(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeCertificates writes the certificate of an authority, and one for each name.
func writeCertificates(t testing.TB, dir string, names ...string) {
	t.Helper()
	year := time.Now().AddDate(1, 0, 0)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: year, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := writeCertificate(t, filepath.Join(dir, "ca"), ca, ca, nil)
	for i, name := range names {
		writeCertificate(t, filepath.Join(dir, name), &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, NotAfter: year,
			DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, ca, caKey)
	}
}

// writeCertificate writes a certificate and a new key, and returns the key. Without a signer, the certificate is signed
// by that key.
func writeCertificate(t testing.TB, path string, c, parent *x509.Certificate, signer *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	writeFile(t, path+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))
	return key
}
