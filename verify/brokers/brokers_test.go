package brokers

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/coder/websocket"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// each runs f for each of n clients, and waits until all have ended.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// serveGRPC serves the health service of gRPC, and returns a client.
func serveGRPC(t *testing.T) (*grpc.Server, *health.Server, grpc_health_v1.HealthClient) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, h := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(s, h)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		s.Stop()
		<-served
	})
	return s, h, grpc_health_v1.NewHealthClient(c)
}

func TestGRPCCalls(t *testing.T) {
	_, _, c := serveGRPC(t)
	each(3, func(int) {
		r, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Error(r, err)
		}
	})
}

func TestGRPCStream(t *testing.T) {
	_, h, c := serveGRPC(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.Recv(); err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatal(r, err)
	}
	h.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	if r, err := w.Recv(); err != nil || r.Status != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Fatal(r, err)
	}
}

func TestGRPCGracefulStop(t *testing.T) {
	s, _, c := serveGRPC(t)
	if _, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	s.GracefulStop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err == nil {
		t.Error("no error")
	}
}

// The server has the same deadline. If it notices first that the deadline has passed, the health service answers
// Canceled.
func TestGRPCDeadline(t *testing.T) {
	_, _, c := serveGRPC(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	w, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.Recv(); err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Fatal(r, err)
	}
	_, err = w.Recv()
	if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Canceled {
		t.Error(err)
	}
}

// serveWebsockets accepts websockets, and calls f for each.
func serveWebsockets(t *testing.T, f func(ctx context.Context, c *websocket.Conn)) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		f(r.Context(), c)
		_ = c.CloseNow()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func dialWebsocket(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func TestWebsocketEcho(t *testing.T) {
	url := serveWebsockets(t, func(ctx context.Context, c *websocket.Conn) {
		for {
			kind, b, err := c.Read(ctx)
			if err != nil || c.Write(ctx, kind, b) != nil {
				return
			}
		}
	})
	conns := []*websocket.Conn{dialWebsocket(t, url), dialWebsocket(t, url)}
	each(len(conns), func(i int) {
		text := fmt.Sprint("hello ", i)
		if err := conns[i].Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Error(err)
		}
		if _, b, err := conns[i].Read(t.Context()); string(b) != text || err != nil {
			t.Error(string(b), err)
		}
		if err := conns[i].Close(websocket.StatusNormalClosure, ""); err != nil {
			t.Error(err)
		}
	})
}

func TestWebsocketBroadcast(t *testing.T) {
	var mu sync.Mutex
	joined, members := make(chan bool), []*websocket.Conn{}
	leave := make(chan bool)
	url := serveWebsockets(t, func(_ context.Context, c *websocket.Conn) {
		mu.Lock()
		members = append(members, c)
		mu.Unlock()
		joined <- true
		<-leave
	})
	conns := []*websocket.Conn{dialWebsocket(t, url), dialWebsocket(t, url), dialWebsocket(t, url)}
	for range conns {
		<-joined
	}
	for _, m := range members {
		if err := m.Write(t.Context(), websocket.MessageText, []byte("news")); err != nil {
			t.Error(err)
		}
	}
	each(len(conns), func(i int) {
		if _, b, err := conns[i].Read(t.Context()); string(b) != "news" || err != nil {
			t.Error(string(b), err)
		}
	})
	close(leave)
}

// serveNATS starts a server, and returns two clients.
func serveNATS(t *testing.T) (a, b *nats.Conn) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	dial := func() *nats.Conn {
		c, err := nats.Connect(s.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	return dial(), dial()
}

func TestNATSPublish(t *testing.T) {
	a, b := serveNATS(t)
	got, err := a.SubscribeSync("news")
	if err != nil || a.Flush() != nil {
		t.Fatal(err)
	}
	if err := b.Publish("news", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if m, err := got.NextMsg(time.Minute); err != nil || string(m.Data) != "hello" {
		t.Error(m, err)
	}
}

func TestNATSRequest(t *testing.T) {
	a, b := serveNATS(t)
	if _, err := a.Subscribe("sum", func(m *nats.Msg) { _ = m.Respond([]byte("3")) }); err != nil || a.Flush() != nil {
		t.Fatal(err)
	}
	each(2, func(int) {
		if m, err := b.Request("sum", []byte("1 2"), time.Minute); err != nil || string(m.Data) != "3" {
			t.Error(m, err)
		}
	})
}

func TestNATSQueue(t *testing.T) {
	a, b := serveNATS(t)
	got := make(chan string, 10)
	for range 2 {
		if _, err := a.QueueSubscribe("jobs", "workers", func(m *nats.Msg) { got <- string(m.Data) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := b.Publish("jobs", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		<-got
	}
}

func serveRedis(t *testing.T) *redis.Client {
	t.Helper()
	s := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRedisCounter(t *testing.T) {
	c := serveRedis(t)
	each(3, func(int) {
		if err := c.Incr(t.Context(), "n").Err(); err != nil {
			t.Error(err)
		}
	})
	if n, err := c.Get(t.Context(), "n").Int(); n != 3 || err != nil {
		t.Error(n, err)
	}
}

func TestRedisPublish(t *testing.T) {
	c := serveRedis(t)
	s := c.Subscribe(t.Context(), "news")
	defer func() { _ = s.Close() }()
	if _, err := s.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), "news", "hello").Err(); err != nil {
		t.Fatal(err)
	}
	if m, err := s.ReceiveMessage(t.Context()); err != nil || m.Payload != "hello" {
		t.Error(m, err)
	}
}

func TestRedisBlockingPop(t *testing.T) {
	c := serveRedis(t)
	got := make(chan []string)
	go func() {
		v, err := c.BLPop(t.Context(), time.Minute, "jobs").Result()
		if err != nil {
			t.Error(err)
		}
		got <- v
	}()
	if err := c.RPush(t.Context(), "jobs", "a").Err(); err != nil {
		t.Fatal(err)
	}
	if v := <-got; len(v) != 2 || v[1] != "a" {
		t.Error(v)
	}
}
