// Payments is a service of three replicas that waits for callbacks. A customer's request reaches one replica, and the
// callback of the payment provider reaches another: package ticket brings the answer to the request that waits.
//
// This command starts all parts: a NATS server in its own process, three replicas as processes, a load spreader, a
// provider that calls back at random, late, twice and with forged tokens, and customers. Then it counts.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/coir-go/coir"
)

// config are the parameters of a run.
type config struct {
	payments int
	limit    time.Duration // for the provider's answer
	stay     bool          // until it is interrupted
}

func main() {
	var c config
	broker := flag.String("replica", "", "run as a replica, with the NATS server at this address")
	flag.IntVar(&c.payments, "payments", 500, "how many payments the customers make")
	flag.DurationVar(&c.limit, "limit", 5*time.Second, "how long a payment waits for the provider")
	flag.BoolVar(&c.stay, "stay", false, "keep running, so that the inspect pages can be opened")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	err := error(nil)
	if *broker != "" {
		err = replica(ctx, *broker, c.limit)
	} else {
		_, err = run(ctx, c, os.Stdout)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // cancel is not needed any more
	}
}

const replicas = 3

// run runs all parts until the payments have ended, and returns their outcomes.
func run(ctx context.Context, c config, out io.Writer) (*ledger, error) {
	dir, err := os.MkdirTemp("", "payments")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(time.Minute) {
		return nil, errors.New("the NATS server does not start")
	}
	l := &ledger{payments: map[string]*payment{}}
	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		defer n.Cancel(nil)
		var targets []*url.URL
		for i := range replicas {
			at, err := startReplica(n, i, s.ClientURL(), c.limit)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "replica %d: http://%s/debug/coir/\n", i+1, at)
			targets = append(targets, &url.URL{Scheme: "http", Host: at})
		}
		spreader, err := serve(n, "spreader", spread(targets))
		if err != nil {
			return err
		}
		p := &provider{ledger: l, n: n, limit: c.limit, callbacks: "http://" + spreader + "/callbacks"}
		address, err := serve(n, "provider", p)
		if err != nil {
			return err
		}
		if err := customers(ctx, l, c.payments, "http://"+spreader, "http://"+address); err != nil {
			return err
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, l)
		if c.stay {
			return coir.WaitCancel(ctx)
		}
		return nil
	})
	return l, err
}

// startReplica starts a replica as a process, which ends with the nursery, and returns its address.
func startReplica(n *coir.Nursery, i int, broker string, limit time.Duration) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(self, "-replica", broker, "-limit", limit.String())
	cmd.Env = append(os.Environ(), "PAYMENTS_KEY="+key())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // the replica ends when it is closed, even if this process is killed
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	n.Go("replica", func(ctx context.Context) error {
		_ = coir.WaitCancel(ctx)
		_ = in.Close()
		_ = cmd.Wait() // it was told to end
		return nil
	}, coir.WithGoroutine(), coir.WithIndex(i))
	if err != nil {
		return "", fmt.Errorf("replica %d does not start: %w", i+1, err)
	}
	return strings.TrimSpace(line), nil
}

var keyOnce atomic.Pointer[string]

// key returns the key of the tokens, which is random for each run. A service loads it from its store of secrets.
func key() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	text := hex.EncodeToString(b[:])
	keyOnce.CompareAndSwap(nil, &text)
	return *keyOnce.Load()
}

// serve serves HTTP in the nursery, and returns the address.
func serve(n *coir.Nursery, name string, h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	n.Go(name, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = s.Close() })()
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, coir.WithGoroutine())
	return l.Addr().String(), nil
}

// spread returns a handler that passes each request to the next replica.
func spread(targets []*url.URL) http.Handler {
	var next atomic.Uint32
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(targets[next.Add(1)%uint32(len(targets))])
	}}
}
