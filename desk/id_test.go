package desk_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coir-go/coir/desk"
)

var (
	_ encoding.TextMarshaler   = desk.ID{}
	_ encoding.TextAppender    = desk.ID{}
	_ encoding.TextUnmarshaler = (*desk.ID)(nil)
)

func TestTextOfAnID(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	id := open(t, t.Context(), d).ID()
	for _, text := range []string{
		"", "0", id.String()[1:], id.String() + "0", " " + id.String()[1:], strings.ToUpper(id.String()[:31]) + "A",
		"0x" + id.String()[2:], strings.Repeat("g", 32), strings.Repeat("é", 16), "+" + id.String()[1:],
	} {
		if _, err := desk.ParseID(text); !errors.Is(err, desk.ErrSyntax) {
			t.Errorf("ParseID(%q): %v", text, err)
		}
	}
	b, err := json.Marshal(map[string]desk.ID{"id": id})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]desk.ID
	if err := json.Unmarshal(b, &back); err != nil || back["id"] != id {
		t.Errorf("%s: %v, %v", b, back, err)
	}
	if (desk.ID{}).String() != strings.Repeat("0", 32) {
		t.Error("the text of the zero ID")
	}
}

// Each text that ParseID accepts is the only text of its ID.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"", "00112233445566778899aabbccddeeff", "00112233445566778899AABBCCDDEEFF", "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := desk.ParseID(s)
		if err != nil {
			if !errors.Is(err, desk.ErrSyntax) || id != (desk.ID{}) {
				t.Errorf("%v, %v", id, err)
			}
			return
		}
		if id.String() != s {
			t.Errorf("%q is taken for %v", s, id)
		}
		if err := desk.New[int](desk.WithName("x")).Resolve(id, 1); err == nil {
			t.Errorf("%q resolves a ticket of a desk that has none", s)
		}
	})
}

// Descriptions and errors of desks and tickets may be logged, so they do not show an id.
//
// Spec: TK-06 (an id cannot be guessed or replayed)
func TestTextsDoNotShowIDs(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	tk := open(t, t.Context(), d)
	texts := []string{d.String(), tk.String(), fmt.Sprint(tk), fmt.Sprint(d.Stats())}
	if err := d.Resolve(tk.ID(), 1); err != nil {
		t.Fatal(err)
	}
	others := desk.New[int](desk.WithName("others"))
	for _, err := range []error{
		d.Resolve(tk.ID(), 2), d.Reject(tk.ID(), errors.New("again")), others.Resolve(tk.ID(), 3),
	} {
		if err == nil {
			t.Fatal("completed twice")
		}
		texts = append(texts, err.Error())
	}
	for _, text := range append(texts, tk.String()) {
		if id := tk.ID().String(); strings.Contains(text, id) || strings.Contains(text, id[16:]) {
			t.Errorf("%q shows the id", text)
		}
	}
}

// Random ids, ids similar to those of open and ended tickets, and ids of another desk resolve nothing: ten million of
// them under make soak.
//
// Spec: TK-05 (ids do not collide)
// Spec: TK-06 (an id cannot be guessed or replayed)
// Spec: TK-07 (an id is valid at its own Desk)
func TestForgedIDsResolveNothing(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	d, other := desk.New[int](desk.WithName("replies")), desk.New[int](desk.WithName("others"))
	var ids []desk.ID
	given := map[desk.ID]bool{}
	for i := range 1000 {
		tk := open(t, t.Context(), d)
		if i%2 == 0 {
			tk.Cancel()
		}
		ids = append(ids, tk.ID(), open(t, t.Context(), other).ID())
		given[tk.ID()] = true
	}
	const digits = "0123456789abcdef"
	n, tried := sized(20_000, 200_000, 10_000_000), uint64(0)
	for range n {
		text := []byte(ids[rnd.IntN(len(ids))].String())
		switch rnd.IntN(4) {
		case 0: // random digits
			for i := range text {
				text[i] = digits[rnd.IntN(16)]
			}
		case 1: // a different nonce
			for i := 16; i < 32; i++ {
				text[i] = digits[rnd.IntN(16)]
			}
		case 2: // a few digits differ
			for range 1 + rnd.IntN(3) {
				text[rnd.IntN(32)] = digits[rnd.IntN(16)]
			}
		case 3: // the locator of one id and the nonce of another
			copy(text[16:], ids[rnd.IntN(len(ids))].String()[16:])
		}
		id, err := desk.ParseID(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if given[id] {
			continue
		}
		tried++
		if err := d.Resolve(id, 1); !errors.Is(err, desk.ErrUnknown) && !errors.Is(err, desk.ErrForeign) {
			t.Fatalf("seed %d: forged id %v: %v", seed, id, err)
		}
	}
	if s := d.Stats(); s.Open != 500 || s.Unknown+s.Foreign != tried || s.Foreign == 0 || s.Unknown == 0 {
		t.Errorf("seed %d: after %d tries: %+v", seed, tried, s)
	}
	d.FailAll(errLost)
	other.FailAll(errLost)
}

// No ID is issued twice, and the ID of an ended ticket never completes a later one.
//
// Spec: TK-05 (ids do not collide)
// Spec: TK-15 (an old id never reaches a new ticket)
func TestOldIDsReachNothing(t *testing.T) {
	d := desk.New[int](desk.WithName("replies"))
	seen := map[string]bool{}
	var old []desk.ID
	for range sized(2_000, 20_000, 200_000) {
		tk := open(t, t.Context(), d)
		locator := tk.ID().String()[:16]
		if seen[locator] {
			t.Fatalf("the locator %s was given out twice", locator)
		}
		seen[locator] = true
		for _, id := range old {
			if err := d.Resolve(id, 1); err == nil {
				t.Fatal("an old id has resolved a ticket")
			}
		}
		tk.Cancel()
		if old = append(old, tk.ID()); len(old) > 200 { // a slot is reused when 64 others have been freed
			old = old[1:]
		}
	}
}
