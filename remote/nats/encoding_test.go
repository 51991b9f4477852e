package nats

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coir-go/coir/remote"
)

var update = flag.Bool("update", false, "write the golden files")

// What is stored at the servers, and what other processes get, does not change: see TestEncodingsArePinned of package
// remote. A change to the configuration of a stream is refused by servers that have the stream.
func TestEncodingsArePinned(t *testing.T) {
	tr := &Transport{set: settings{prefix: "coir", group: "default", replicas: 3, window: 2 * time.Minute}}
	q := tr.newQueue("new orders", 64)
	id := remote.ID{Sender: 0x0102030405060708, Seq: 0x1112131415161718}
	got, err := json.MarshalIndent(map[string]any{
		"the stream of the list of queues": tr.listConfig(),
		"the stream of a queue":            tr.queueConfig(64),
		"the stream of Put":                tr.putConfig(),
		"the consumers of a group":         []string{tr.consumerName(0), tr.consumerName(1)},
		"the subject of the end":           q.endSubject(),
		"a message":                        q.message(remote.Msg{ID: id, Data: []byte("tea")}),
		"the capacity of a queue":          tr.listed("new orders", 64),
		"the subject of a key":             tr.subject("p", token("payment 4711")),
		"the subject of Tell":              tr.path("t", "want.new orders"),
		"the subject of Request":           tr.path("r", "ticket.7.abc"),
		"the error of a full queue":        codeMaxPerSubject,
	}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, append(got, '\n'))
}

func golden(t *testing.T, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "encoding.golden")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s:\n%s\nwas\n%s", file, got, want)
	}
}
