package coir

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// A head is read as it was written, and the bytes after it are left.
func TestTokenHeads(t *testing.T) {
	for _, h := range []TokenHead{
		{},
		{Seed: 1, Hash: 5},
		{Alone: true, Seed: math.MaxUint64, Racing: 1<<racingBits - 1, Faults: math.MaxUint32, Hash: math.MaxUint32},
		{Seed: 127, Racing: 5, Faults: 1, Hash: 128},
	} {
		var want []byte
		for _, n := range []uint64{h.Seed, h.Racing | uint64(h.Faults)<<racingBits, uint64(h.Hash)} {
			want = binary.AppendUvarint(want, n)
		}
		b := h.Numbers()
		if !bytes.Equal(b, want) {
			t.Errorf("%+v has the bytes %x, want %x", h, b, want)
		}
		var got TokenHead
		letters, ok := got.CutPrefix(h.Prefix() + "rest")
		if !ok || letters != "rest" || got.Alone != h.Alone {
			t.Errorf("%+v: the prefix %s is read as %+v, %q, %v", h, h.Prefix(), got, letters, ok)
		}
		if rest, ok := got.Parse(append(b, 7, 8)); !ok || got != h || !bytes.Equal(rest, []byte{7, 8}) {
			t.Errorf("%+v is read as %+v, with %x after it, %v", h, got, rest, ok)
		}
		for i := range b {
			if _, ok := new(TokenHead).Parse(b[:i]); ok {
				t.Errorf("%x is taken for a head", b[:i])
			}
		}
	}
}

// What no head has is refused.
func TestTokenHeadsThatAreDamaged(t *testing.T) {
	for _, text := range []string{"", "c", "c1", "C1.x", "c2.x", "f2.x", " c1."} {
		if _, ok := new(TokenHead).CutPrefix(text); ok {
			t.Errorf("%q is taken for a token", text)
		}
	}
	long := bytes.Repeat([]byte{0xff}, 9)
	for _, b := range [][]byte{
		append(append(bytes.Clone(long), 2), 0, 0),         // a seed of more than 64 bits
		append(append(bytes.Clone(long), 0x81), 0, 0, 0),   // the same
		append([]byte{0, 0}, 0xff, 0xff, 0xff, 0xff, 0x10), // a hash of more than 32 bits
	} {
		if _, ok := new(TokenHead).Parse(b); ok {
			t.Errorf("%x is taken for a head", b)
		}
	}
}
