package main

import (
	"os"
	"slices"
	"testing"
	"time"
)

// TestMain runs a replica if this process was started as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-replica") {
		main()
		return
	}
	os.Exit(m.Run())
}

// Each payment ends once: the customer is told that it is paid if a callback was accepted, and only then, at most
// one callback has completed it, and every replica says the same. Forged callbacks are refused.
func TestPayments(t *testing.T) {
	c := config{payments: 60, limit: 2 * time.Second}
	if os.Getenv("COIR_SOAK") != "" {
		c.payments = 20_000
	}
	l, err := run(t.Context(), c, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.check(); err != nil || len(l.payments) != c.payments || l.forged == 0 {
		t.Errorf("%v\n%v", err, l)
	}
}
