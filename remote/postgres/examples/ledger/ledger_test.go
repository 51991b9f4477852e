//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/coir-go/coir/remote/postgres/internal/server"
)

// TestMain lets the test binary act as the processes that the driver starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "send" || os.Args[1] == "receive") {
		main()
		return
	}
	os.Exit(m.Run())
}

// Senders and receivers are killed at random moments: each payment that was acknowledged is booked once, and none
// twice.
func TestKills(t *testing.T) {
	kills, limit := 3, 4*time.Minute
	if os.Getenv("COIR_SOAK") != "" {
		kills, limit = 50, 30*time.Minute
	}
	s, err := server.Start()
	if errors.Is(err, server.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	got, err := drive(ctx, s.DSN, kills)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(got)
	if got.Acknowledged < kills {
		t.Error("too few payments for so many kills")
	}
}
