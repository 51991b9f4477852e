package remote

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// Two replicas of different versions of coir share a broker during a rolling upgrade. So what is stored or goes to
// another process does not change: each line below was written by the first version. A change of a form needs a new
// form that both versions read, and a line for it. What the transports and package ticket encode is pinned by the tests
// of the same name there.
func TestEncodingsArePinned(t *testing.T) {
	id := ID{Sender: 0x0102030405060708, Seq: 0x1112131415161718}
	dead, err := json.Marshal(DeadLetter{id, "a reason", 3, []byte("tea")})
	if err != nil {
		t.Fatal(err)
	}
	const letter = `{"ID":"01020304050607081112131415161718","Reason":"a reason","Tries":3,"Data":"dGVh"}`
	two := appendValue(appendValue(nil, Msg{id, []byte("tea")}), Msg{ID{1, 2}, nil})
	answers := appendRefusal([]byte{answerTaken, answerFull}, "no")
	for _, p := range []struct{ what, got, want string }{
		{"an ID", id.String(), "01020304050607081112131415161718"},
		{"a dead letter", string(dead), letter},
		{"the ID of a revived value", id.revived().String(), "b9f91933573434691112131415161718"},
		{"the name of dead letters", DeadName(orders), "orders.dead"},
		{"values of a volatile channel", hex.EncodeToString(two), "" +
			"0102030405060708" + "1112131415161718" + "00000003" + "746561" +
			"0000000000000001" + "0000000000000002" + "00000000"},
		{"answers to them", hex.EncodeToString(answers), "79" + "66" + "6e" + "00000002" + "6e6f"},
		{"credit", hex.EncodeToString(creditMessage(3, true)), "00000003" + "01"},
		{"a want", hex.EncodeToString(want{id.Sender, 7, 3, true}.message()), "" +
			"0102030405060708" + "0000000000000007" + "00000003" + "01"},
		{"the subject of values", valueSubject(orders), "value.orders"},
		{"the subject of credit", creditSubject(id.Sender), "credit.0102030405060708"},
		{"the subject of wants", wantSubject(orders), "want.orders"},
		{"the subject of hellos", helloSubject(orders), "hello.orders"},
		{"the subject of a promise", promiseSubject("payment 4711"), "promise.payment 4711"},
		{"the key of a promise", storeKey("payment 4711"), "promise.payment 4711"},
	} {
		if p.got != p.want {
			t.Errorf("%s:\n\t%s, was\n\t%s", p.what, p.got, p.want)
		}
	}
}

const orders = "orders"

// What earlier versions wrote is read.
func TestPinnedEncodingsAreRead(t *testing.T) {
	ms, ok := parseValues(unhex("0102030405060708" + "1112131415161718" + "00000003" + "746561" +
		"0000000000000001" + "0000000000000002" + "00000000"))
	if !ok || len(ms) != 2 || ms[0].ID != (ID{0x0102030405060708, 0x1112131415161718}) || string(ms[0].Data) != "tea" {
		t.Errorf("values: %v", ms)
	}
	rest, err := parseAnswer(unhex("79666e000000026e6f"))
	if err == nil {
		rest, err = parseAnswer(rest)
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("answers: %v", err)
	}
	if _, err = parseAnswer(rest); err == nil || errors.Is(err, ErrUnknown) {
		t.Errorf("a refusal: %v", err)
	}
	if n, more, ok := parseCredit(unhex("0000000301")); n != 3 || !more || !ok {
		t.Errorf("credit: %d, %v", n, more)
	}
	x, ok := parseWant(unhex("010203040506070800000000000000070000000301"))
	if !ok || x != (want{0x0102030405060708, 7, 3, true}) {
		t.Errorf("a want: %v", x)
	}
	var d DeadLetter
	err = json.Unmarshal([]byte(`{"ID":"01020304050607081112131415161718","Reason":"r","Tries":3,"Data":"dGVh"}`), &d)
	if err != nil || d.ID.Seq != 0x1112131415161718 || string(d.Data) != "tea" {
		t.Errorf("a dead letter: %+v, %v", d, err)
	}
}

func unhex(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

// kept is a transport that keeps what is put.
type kept struct {
	Transport
	data []byte
}

func (k *kept) Info() Info {
	return Info{Meaning: MeaningDurable, Lease: time.Minute, Window: time.Minute}
}

func (k *kept) Put(_ context.Context, _ string, data []byte) ([]byte, error) {
	k.data = data
	return data, nil
}

func (k *kept) Get(context.Context, string) ([]byte, error) { return k.data, nil }

func (k *kept) Tell(string, []byte) {}

// The results of promises: a kind, the number of the call, and the value or the reason.
func TestTheResultOfAPromiseIsPinned(t *testing.T) {
	tr := &kept{}
	p, err := NewPromise[string](tr, "payment 4711")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Resolve(t.Context(), "paid"); err != nil {
		t.Fatal(err)
	}
	if b := tr.data; len(b) != 15 || b[0] != 'v' || !bytes.Equal(b[9:], []byte(`"paid"`)) {
		t.Errorf("a value: %q", b)
	}
	if _, err := p.Reject(t.Context(), "no"); err != nil {
		t.Fatal(err)
	}
	if b := tr.data; len(b) != 11 || b[0] != 'e' || string(b[9:]) != "no" {
		t.Errorf("a rejection: %q", b)
	}
	tr.data = append(unhex("760102030405060708"), `"paid"`...)
	if v, err := p.Wait(t.Context()); v != "paid" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

// The codecs. The number that gob gives to a type depends on the program, so gob is read only.
func TestCodecsArePinned(t *testing.T) {
	type order struct {
		Item string
		N    int
	}
	if b, err := JSON.Marshal(order{"tea", 2}); err != nil || string(b) != `{"Item":"tea","N":2}` {
		t.Errorf("JSON: %s, %v", b, err)
	}
	if b, err := Bytes.Marshal([]byte("tea")); err != nil || string(b) != "tea" {
		t.Errorf("Bytes: %s, %v", b, err)
	}
	var o order
	const stored = "22" + "ff81" + "030101" + "056f72646572" + "01ff8200" + "0102" + "01044974656d" + "010c00" +
		"01014e" + "010400" + "0000" + "0a" + "ff82" + "0103746561" + "0104" + "00"
	if err := Gob.Unmarshal(unhex(stored), &o); err != nil || o != (order{"tea", 2}) {
		t.Errorf("Gob: %+v, %v", o, err)
	}
}
