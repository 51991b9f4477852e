package nats_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// The servers of a test, embedded in its process. Each stores its data in a separate directory.

const accounts = `
system_account: SYS
accounts {
  SYS: {
    users: [ {user: sys, password: sys} ]
    exports: [ {service: "$SYS.REQ.SERVER.PING.JSZ", response_type: stream, accounts: [APP]} ]
  }
  APP: {
    jetstream: enabled
    users: [ {user: app, password: app} ]
    imports: [ {service: {account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ"}, to: "coir.sync"} ]
  }
}
`

// start starts a server, with the text appended to its configuration.
func start(t testing.TB, name string, always bool, text string) *server.Server {
	t.Helper()
	return startIn(t, t.TempDir(), "127.0.0.1:-1", name, always, text)
}

// startIn starts a server with its data in dir, where an earlier one may have left data.
func startIn(t testing.TB, dir, listen, name string, always bool, text string) *server.Server {
	t.Helper()
	syncs := ""
	if always {
		syncs = "sync_interval: always"
	}
	file := filepath.Join(dir, "server.conf")
	config := fmt.Sprintf("listen: %q\nserver_name: %s\njetstream { store_dir: %q\n %s }\n%s%s", listen,
		name, dir, syncs, accounts, text)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoLog, opts.NoSigs = true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

// single starts one server.
func single(t testing.TB, always bool) *server.Server {
	t.Helper()
	s := start(t, "single", always, "")
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// cluster starts three servers, and sets whether they sync.
func cluster(t testing.TB, always [3]bool) []*server.Server {
	t.Helper()
	var routes []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		routes = append(routes, l.Addr().String())
	}
	return startCluster(t, always, routes)
}

func startCluster(t testing.TB, always [3]bool, routes []string) (all []*server.Server) {
	t.Helper()
	for i, at := range routes {
		text := fmt.Sprintf("cluster { name: coir, listen: %q, routes: [nats://%s] }\n", at, strings.Join(routes, ", nats://"))
		all = append(all, start(t, fmt.Sprintf("n%d", i+1), always[i], text))
	}
	for _, s := range all {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("a server does not start")
		}
	}
	return all
}

// connect connects to servers.
func connect(t testing.TB, servers ...*server.Server) *client.Conn {
	t.Helper()
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.ClientURL())
	}
	nc, err := client.Connect(strings.Join(urls, ","), append(nats.Options(), client.UserInfo("app", "app"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// transport returns a transport. While the cluster has no leader, it tries again.
func transport(t testing.TB, nc *client.Conn, opts ...nats.Option) *nats.Transport {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		try, stop := context.WithTimeout(ctx, 5*time.Second)
		tr, err := nats.New(try, nc, opts...)
		stop()
		if err == nil {
			t.Cleanup(func() { tr.Close() })
			return tr
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

var _ remote.Transport = (*nats.Transport)(nil)
