package ticket_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
)

const audience = "payments/webhook"

// secret returns a key for tests.
func secret(id byte) []byte { return bytes.Repeat([]byte{id}, 32) }

func newKeys(t testing.TB) *ticket.Keys {
	t.Helper()
	keys, err := ticket.NewKeys(1, secret(1))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// within runs f with a nursery, which is cancelled when f has returned.
func within(t testing.TB, f func(ctx context.Context, n *coir.Nursery) error) {
	t.Helper()
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		defer n.Cancel(nil)
		return f(ctx, n)
	})
	if err != nil {
		t.Error(err)
	}
}

// some runs f with a desk and a token of an open ticket.
func some(t testing.TB, f func(d *ticket.Desk[string], token ticket.Token)) {
	t.Helper()
	within(t, func(ctx context.Context, n *coir.Nursery) error {
		d, err := ticket.New[string](ctx, n, memory.New().Node("a"), audience, newKeys(t))
		if err != nil {
			return err
		}
		defer d.Close()
		tk, err := d.Open(ctx, time.Hour)
		if err != nil {
			return err
		}
		f(d, tk.Token(ticket.RightResolve))
		return nil
	})
}

// A token has one text, and ParseToken accepts no other.
func TestTokenText(t *testing.T) {
	some(t, func(d *ticket.Desk[string], token ticket.Token) {
		text := token.Reveal()
		if raw, err := base64.RawURLEncoding.DecodeString(text); err != nil || len(raw) != 42 || len(text) != 56 {
			t.Errorf("%d characters, %d bytes, %v", len(text), len(raw), err)
		}
		same, err := ticket.ParseToken(text)
		if err != nil || same.Reveal() != text || d.Check(same, ticket.RightResolve) != nil {
			t.Error(err)
		}
		for _, other := range []string{
			"", text[:55], text + "A", text + "=", text + "\n", "\n" + text[1:], text[:55] + "\n",
			text[:28] + "\r\n" + text[30:], text[:52] + "\r\n\r\n", " " + text[1:], text[:55] + "=",
			text[:54] + "==", text[:55] + "+", text[:55] + "/", "B" + text[1:],
		} {
			if _, err := ticket.ParseToken(other); !errors.Is(err, ticket.ErrToken) {
				t.Errorf("%q is read: %v", other, err)
			}
		}
		if (ticket.Token{}).Reveal() != "" || d.Check(ticket.Token{}, 0) == nil {
			t.Error("the zero token is accepted")
		}
	})
}

// Only Reveal shows the secret of a token, however it is printed.
func TestTokenIsRedacted(t *testing.T) {
	some(t, func(_ *ticket.Desk[string], token ticket.Token) {
		type request struct {
			ID     int
			Token  ticket.Token
			hidden ticket.Token
		}
		req := request{1, token, token}
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%o"} {
			fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", token, req, &req)
		}
		fmt.Fprintln(&out, token, req, []ticket.Token{token}, map[string]ticket.Token{"token": token})
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("callback", "token", token, "request", req, "pointer", &req)
		}
		data, err := json.Marshal(req)
		if err != nil {
			t.Error(err)
		}
		out.Write(data)
		text := token.Reveal()
		raw, _ := base64.RawURLEncoding.DecodeString(text)
		mac := raw[26:]
		for _, secret := range []string{
			text, string(mac), fmt.Sprintf("%x", mac[:4]), fmt.Sprintf("%X", mac[:4]),
			strings.Trim(fmt.Sprint(mac[:4]), "[]"), base64.RawURLEncoding.EncodeToString(mac)[:8],
		} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%q is shown in:\n%s", secret, out.String())
			}
		}
		if !strings.Contains(out.String(), "ticket.Token(") {
			t.Errorf("the ticket is not named:\n%s", out.String())
		}
	})
}

// Keys rotate: a token that was signed with an old key is valid until that key is removed. Keys show no secret.
func TestKeysRotate(t *testing.T) {
	keys := newKeys(t)
	within(t, func(ctx context.Context, n *coir.Nursery) error {
		d, err := ticket.New[string](ctx, n, memory.New().Node("a"), audience, keys)
		if err != nil {
			return err
		}
		tk, err := d.Open(ctx, time.Hour)
		if err != nil {
			return err
		}
		old := tk.Token(ticket.RightResolve)
		if keys.Use(2) == nil || keys.Remove(1) == nil || keys.Add(1, secret(9)) == nil || keys.Add(3, secret(3)[1:]) == nil {
			t.Error("a mistake is accepted")
		}
		if err := errors.Join(keys.Add(1, secret(1)), keys.Add(2, secret(2)), keys.Use(2)); err != nil {
			t.Error(err)
		}
		fresh := tk.Token(ticket.RightResolve)
		if old.Reveal() == fresh.Reveal() {
			t.Error("the new key does not sign")
		}
		if err := errors.Join(d.Check(old, ticket.RightResolve), d.Check(fresh, ticket.RightResolve)); err != nil {
			t.Error(err)
		}
		if err := keys.Remove(1); err != nil {
			t.Error(err)
		}
		if err := d.Check(old, ticket.RightResolve); !errors.Is(err, ticket.ErrToken) {
			t.Errorf("a token of a key that was removed: %v", err)
		}
		if err := d.Check(fresh, ticket.RightResolve); err != nil {
			t.Error(err)
		}
		return nil
	})
	for _, text := range []string{fmt.Sprint(keys), fmt.Sprintf("%#v", keys), fmt.Sprintf("%+v", keys)} {
		if !strings.HasPrefix(text, "ticket.Keys(1 keys, 2 signs)") {
			t.Error(text)
		}
	}
}

// valid holds the parts of a service of two replicas whose tokens are attacked: open tickets, and tokens that must not
// be accepted in any form.
type valid struct {
	desk    *ticket.Desk[string]
	texts   []string // tokens of open tickets
	allowed map[string]bool
	foreign []string // well formed, but of another audience or key, or without the right
}

// newValid opens the tickets. It then closes the desks, which does not affect the check of a token. The keys are
// random, because a fuzzer runs several processes: the desks of one must refuse the tokens of another.
func newValid(t testing.TB) *valid {
	t.Helper()
	v := &valid{allowed: map[string]bool{}}
	within(t, func(ctx context.Context, n *coir.Nursery) error {
		broker, both := memory.New(), ticket.RightResolve|ticket.RightReject
		secret := make([]byte, 32)
		_, _ = crand.Read(secret) // never fails
		keys, err := ticket.NewKeys(1, secret)
		if err != nil {
			return err
		}
		secret[0]++
		others, err := ticket.NewKeys(1, secret)
		if err != nil {
			return err
		}
		for i, x := range []struct {
			audience string
			keys     *ticket.Keys
			rights   ticket.Right
		}{
			{audience, keys, ticket.RightResolve},
			{audience, keys, both},
			{audience + "/", keys, both}, // foreign from here on
			{audience, others, both},
			{audience, keys, ticket.RightReject},
		} {
			d, err := ticket.New[string](ctx, n, broker.Node(fmt.Sprint(i)), x.audience, x.keys)
			if err != nil {
				return err
			}
			if i == 0 {
				v.desk = d
			}
			for range 8 {
				tk, err := d.Open(ctx, time.Hour)
				if err != nil {
					return err
				}
				if text := tk.Token(x.rights).Reveal(); i < 2 {
					v.texts = append(v.texts, text)
					v.allowed[text] = true
				} else {
					v.foreign = append(v.foreign, text)
				}
			}
		}
		return nil
	})
	return v
}

// any returns the text of one of the tokens.
func (v *valid) any(r *rand.Rand) string {
	if i := r.IntN(len(v.texts) + len(v.foreign)); i < len(v.texts) {
		return v.texts[i]
	}
	return v.foreign[r.IntN(len(v.foreign))]
}

// derive returns a text made from valid tokens by a few changes.
func (v *valid) derive(r *rand.Rand) string {
	text := v.any(r)
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	for range 1 + r.IntN(2) {
		switch i := r.IntN(len(raw)); r.IntN(10) {
		case 0, 1: // one bit
			raw[i] ^= 1 << r.IntN(8)
		case 2: // one byte
			raw[i] = byte(r.Uint32())
		case 3: // the head of one and the tail of another
			other, _ := base64.RawURLEncoding.DecodeString(v.any(r))
			raw = append(raw[:i:i], other[i:]...)
		case 4: // a later expiry
			raw[20+r.IntN(5)]++
		case 5: // more rights, another key, another version, another node
			raw[[...]int{25, 1, 0, 2, 3}[r.IntN(5)]] ^= byte(1 + r.IntN(3))
		case 6: // another slot or generation
			raw[12+r.IntN(8)] ^= byte(1 + r.IntN(255))
		case 7: // two bytes change places
			j := r.IntN(len(raw))
			raw[i], raw[j] = raw[j], raw[i]
		case 8: // a MAC of zeros, or cut
			clear(raw[26+r.IntN(16):])
		case 9: // another owner
			raw[4+r.IntN(8)] ^= byte(1 + r.IntN(255))
		}
	}
	text = base64.RawURLEncoding.EncodeToString(raw)
	switch i := r.IntN(len(text)); r.IntN(12) {
	case 0: // one character
		text = text[:i] + string("ABCxyz019-_+/= \n\r"[r.IntN(17)]) + text[i+1:]
	case 1:
		text = text[:i]
	case 2:
		text += "="
	case 3:
		text = text[:i] + "\n" + text[i:]
	case 4:
		text = v.any(r)
	}
	return text
}

// accepts reports whether the text is accepted as a token that may resolve a ticket.
func (v *valid) accepts(text string) bool {
	token, err := ticket.ParseToken(text)
	return err == nil && v.desk.Check(token, ticket.RightResolve) == nil
}

// No text that is derived from valid tokens is accepted, except the texts of valid tokens. With COIR_SOAK=1 the test
// derives 10 million texts.
func TestDerivedTokensAreRefused(t *testing.T) {
	tries := 100_000
	if soak.On() {
		tries = 10_000_000
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	v := newValid(t)
	accepted := 0
	for range tries {
		text := v.derive(r)
		if ok := v.accepts(text); ok != v.allowed[text] {
			t.Fatalf("seed %d: %q is accepted: %v", seed, text, ok)
		} else if ok {
			accepted++
		}
	}
	t.Logf("%d tries; %d of them were texts of valid tokens", tries, accepted)
	if accepted == 0 {
		t.Error("not even a valid token is accepted")
	}
}

// Reveal returns the same text that ParseToken has accepted, and no text of a fuzzer is a valid token.
func FuzzParseToken(f *testing.F) {
	v := newValid(f)
	for _, text := range append(v.texts, v.foreign...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ticket.ParseToken(text)
		if err != nil {
			if !errors.Is(err, ticket.ErrToken) {
				t.Error(err)
			}
			return
		}
		if token.Reveal() != text {
			t.Errorf("%q is read as %q", text, token.Reveal())
		}
		if v.accepts(text) != v.allowed[text] {
			t.Errorf("%q is accepted", text)
		}
	})
}

// counting is a transport that counts its messages.
type counting struct {
	remote.Transport
	sent *int
}

func (c counting) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	*c.sent++
	return c.Transport.Request(ctx, subject, data)
}

func (c counting) Publish(ctx context.Context, queue string, m remote.Msg) error {
	*c.sent++
	return c.Transport.Publish(ctx, queue, m)
}

func (c counting) Tell(subject string, data []byte) {
	*c.sent++
	c.Transport.Tell(subject, data)
}

// Checking a token sends no message, and neither does an answer whose token is refused.
func TestCheckSendsNothing(t *testing.T) {
	within(t, func(ctx context.Context, n *coir.Nursery) error {
		broker, sent := memory.New(), 0
		owner, err := ticket.New[string](ctx, n, broker.Node("owner"), audience, newKeys(t))
		if err != nil {
			return err
		}
		other, err := ticket.New[string](ctx, n, counting{broker.Node("other"), &sent}, audience, newKeys(t))
		if err != nil {
			return err
		}
		tk, err := owner.Open(ctx, time.Hour)
		if err != nil {
			return err
		}
		token := tk.Token(ticket.RightResolve)
		text := token.Reveal()
		for range 1000 {
			forged, err := ticket.ParseToken(text[:55] + string("ABCDEFGH"[rand.IntN(8)]))
			if err != nil || forged.Reveal() == text {
				continue
			}
			if _, err := other.Resolve(ctx, forged, "key", "evil"); !errors.Is(err, ticket.ErrToken) {
				t.Errorf("forged: %v", err)
			}
			if _, err := other.Reject(ctx, token, "key", "evil"); !errors.Is(err, ticket.ErrToken) {
				t.Errorf("without the right: %v", err)
			}
			if err := other.Check(token, ticket.RightResolve); err != nil {
				t.Error(err)
			}
		}
		if sent != 0 || other.Stats().InvalidTokens == 0 {
			t.Errorf("%d messages, %+v", sent, other.Stats())
		}
		if out, err := other.Resolve(ctx, token, "key", "good"); out != ticket.OutcomeDone || err != nil {
			t.Error(out, err)
		}
		if sent != 1 || other.Stats().Forwarded != 1 {
			t.Errorf("%d messages, %+v", sent, other.Stats())
		}
		return nil
	})
}
