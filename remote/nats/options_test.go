package nats_test

import (
	"testing"

	"github.com/coir-go/coir/remote/nats"
)

// An option that would stop leases, IDs or streams from working panics.
func TestOptionsAreChecked(t *testing.T) {
	for name, option := range map[string]func(){
		"WithLease":    func() { nats.WithLease(0) },
		"WithWindow":   func() { nats.WithWindow(0) },
		"WithReplicas": func() { nats.WithReplicas(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s(0) does not panic", name)
				}
			}()
			option()
		}()
	}
}
