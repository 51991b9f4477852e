package postgres

import (
	"testing"

	"github.com/coir-go/coir/remote"
)

// The number of machines is known only if the setting lists names.
func TestMeaningOfSettings(t *testing.T) {
	const stored, synced, durable = remote.MeaningStored, remote.MeaningStoredSynced, remote.MeaningDurable
	for settings, want := range map[string]remote.Meaning{
		"on on ":                               synced,
		"off on ":                              stored,
		"on off ANY 1 (a, b)":                  stored,
		"on local ANY 1 (a, b)":                synced,
		"on remote_write ANY 1 (a, b)":         synced,
		"on remote_apply ANY 1 (a, b)":         durable,
		"on on ANY 1 (a, b)":                   durable,
		"on on any 1(a,b)":                     durable,
		"on on FIRST 1 (a, b)":                 durable,
		"on on 1 (a, b)":                       durable,
		"on on a, b":                           durable,
		"on on a":                              synced, // two machines
		"on on ANY 1 (a)":                      synced,
		"on on ANY 1 (a, b, c)":                synced, // two of four
		"on on ANY 2 (a, b, c)":                durable,
		"on on ANY 2 (a, b, c, d)":             durable,
		"on on ANY 1 (*)":                      synced,
		"on on *":                              synced,
		"on on ANY 1 (\"a b\", \"c\")":         durable,
		"on on ANY 3 (a, b)":                   synced, // a commit waits forever
		"off off ":                             stored,
		"on on \n ANY 1 (\n one,\n two ) \n\t": durable,
	} {
		if m := meaningOf(settings); m != want {
			t.Errorf("%q: %v, not %v", settings, m, want)
		}
	}
}
