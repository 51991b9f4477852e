//go:build corpus

package large

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
)

// A block is larger than half of a stream's window, so the reader sends a window update after it.
const block = 160 << 10

// fetch opens a stream, asks for a block and reads it.
func fetch(s *yamux.Session, id byte) error {
	stream, err := s.Open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer stream.Close()
	if _, err := stream.Write([]byte{id}); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	got := make([]byte, block)
	n, err := io.ReadFull(stream, got)
	if err != nil {
		return fmt.Errorf("read of %d bytes returned %d bytes: %w", block, n, err)
	}
	for i, b := range got {
		if b != id {
			return fmt.Errorf("byte %d is %d", i, b)
		}
	}
	return nil
}

// serve answers n requests, and closes the session after the last.
func serve(s *yamux.Session, n int) error {
	var answers sync.WaitGroup
	for range n {
		stream, err := s.Accept()
		if err != nil {
			return err
		}
		answers.Go(func() {
			defer stream.Close()
			id := make([]byte, 1)
			if _, err := io.ReadFull(stream, id); err != nil {
				return
			}
			body := make([]byte, block)
			for i := range body {
				body[i] = id[0]
			}
			_, _ = stream.Write(body)
		})
	}
	answers.Wait()
	return s.Close()
}

func config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.LogOutput = io.Discard
	c.KeepAliveInterval = 10 * time.Second
	return c
}

// TestFetch fetches four blocks through one connection, from a server that closes the session after it has sent them.
//
// Expect: fail
func TestFetch(t *testing.T) {
	const n = 4
	here, there := net.Pipe()
	server, err := yamux.Server(there, config())
	if err != nil {
		t.Fatal(err)
	}
	client, err := yamux.Client(here, config())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if err := serve(server, n); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	for i := range n {
		all.Go(func() {
			if err := fetch(client, byte(i+1)); err != nil {
				t.Errorf("block %d: %v", i+1, err)
			}
		})
	}
	all.Wait()
	_ = client.Close()
}
