package ticket

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/coir-go/coir/remote/memory"
)

// Tokens are with providers when a replica is replaced by one of another version, and answers are in the store. So
// their bytes do not change: see TestEncodingsArePinned of package remote.
func TestEncodingsArePinned(t *testing.T) {
	keys, err := NewKeys(1, []byte("the key of Monday, with 32 bytes"))
	if err != nil {
		t.Fatal(err)
	}
	d := &Desk[string]{audience: []byte("payments/webhook"), keys: keys, owner: 9, ctx: t.Context(), t: memory.New().Node("a")}
	token := newToken(7, 0x0102030405060708, 3, 4, time.Unix(0x0102030405, 0), RightResolve|RightReject)
	keys.sign(token.bytes(), d.audience)
	sum := sha256.Sum256([]byte("event 1"))
	value := answer[string]{token: token, key: keyHash(sum[:16]), data: []byte(`"paid"`)}
	reason := answer[string]{token: token, key: keyHash(sum[:16]), data: []byte("no"), reject: true}
	replies := ""
	for _, r := range []reply{
		replyDone, replyDuplicate, replyEnded, replyExpired, replyInvalid, replyAgain, replyUnread,
	} {
		replies += string(rune(r))
	}
	const (
		text = "AQEABwECAwQFBgcIAAAAAwAAAAQBAgMEBQNBKdvIzJi_tnm8X60fH_nU"
		head = "01" + "01" + "0007" + "0102030405060708" + "00000003" + "00000004" + "0102030405" + "03"
		mac  = "4129dbc8cc98bfb679bc5fad1f1ff9d4"
		key  = "fb378474af5953bec611fcb2602c5b61"
	)
	for _, p := range []struct{ what, got, want string }{
		{"a token", token.Reveal(), text},
		{"the bytes of a token", hex.EncodeToString(token.bytes()[:]), head + mac},
		{"an answer with a value", hex.EncodeToString(value.message()), head + mac + "76" + key + "227061696422"},
		{"an answer with an error", hex.EncodeToString(reason.message()), head + mac + "65" + key + "6e6f"},
		{"the ID of a stored answer", messageID(value.message()).String(), "8ca11cd58c0441af4b334f94d6112c84"},
		{"replies", replies, "ydextan"},
		{"the subject of an owner", ownerSubject(7, 0x0102030405060708), "ticket.7.jv30clup820"},
		{"the queue of the store", d.storeName(), "tickets.payments/webhook"},
	} {
		if p.got != p.want {
			t.Errorf("%s:\n\t%s, was\n\t%s", p.what, p.got, p.want)
		}
	}
	old, err := ParseToken(text)
	if err != nil || old.owner() != 0x0102030405060708 || old.slot() != 3 || old.generation() != 4 || old.node() != 7 {
		t.Fatalf("%v, %v", old, err)
	}
	if d.check(old, RightReject) != nil {
		t.Error("an old token is refused")
	}
	a, problem := d.parse(value.message())
	if problem != 0 || a.reject || a.key != value.key || string(a.data) != `"paid"` {
		t.Errorf("an old answer: %+v, %c", a, problem)
	}
}
