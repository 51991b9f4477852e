package inspect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coir-go/coir"
)

// Serve serves a [Handler] on a TCP address, such as localhost:7117, until ctx ends; then it returns nil. It returns an
// error if it cannot listen there, or if other machines could reach the address and the option [WithRemote] is missing.
// It can be called in a goroutine and in a fiber.
func Serve(ctx context.Context, addr string, opts ...Option) error {
	var o settings
	for _, opt := range opts {
		opt(&o)
	}
	_, err := coir.Blocking(ctx, func() (struct{}, error) {
		l, err := listen(addr, o.remote)
		if err != nil {
			return struct{}{}, err
		}
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			o.hosts = append(o.hosts, host)
		}
		return struct{}{}, serve(ctx, l, newHandler(&o))
	})
	return err
}

// listen listens on an address of this machine.
func listen(addr string, remote bool) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if !remote && !at.IP.IsLoopback() {
		return nil, fmt.Errorf("inspect: other machines could reach %q: use localhost:%d, or the option inspect.WithRemote",
			addr, at.Port)
	}
	l, err := net.ListenTCP("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	return l, nil
}

// serve serves a handler until ctx ends. It closes l.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	err := s.Serve(l)
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("inspect: %w", err)
}
