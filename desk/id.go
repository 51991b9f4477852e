package desk

import (
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// ID identifies a ticket, inside and outside of the program. It has 128 bits: the ticket's slot, and a random number,
// so it cannot be guessed.
//
// IDs are comparable and can be keys of a map. No ticket has the zero ID.
type ID struct {
	// Spec: TK-06 (an id cannot be guessed or replayed)

	//	 63       48 47   42 41            22 21             0
	//	+-----------+-------+----------------+----------------+
	//	|   desk    | shard |      slot      |   generation   |
	//	+-----------+-------+----------------+----------------+
	//
	// The generation is at least 1. A slot whose generations are used up is not reused, so no two tickets of a desk
	// have the same locator.
	locator uint64
	nonce   uint64
}

const (
	generationBits = 22
	slotBits       = 20
	shardBits      = 6
	deskBits       = 64 - shardBits - slotBits - generationBits

	maxGeneration = 1<<generationBits - 1
	maxSlots      = 1 << slotBits
	maxShards     = 1 << shardBits
)

func locate(desk uint16, shard int, slot, generation uint32) uint64 {
	return uint64(desk)<<(64-deskBits) | uint64(shard)<<(slotBits+generationBits) |
		uint64(slot)<<generationBits | uint64(generation)
}

func (id ID) desk() uint16 { return uint16(id.locator >> (64 - deskBits)) }

func (id ID) shard() int { return int(id.locator >> (slotBits + generationBits) & (maxShards - 1)) }

func (id ID) slot() uint32 { return uint32(id.locator >> generationBits & (maxSlots - 1)) }

func (id ID) generation() uint32 { return uint32(id.locator & maxGeneration) }

// sameNonce reports whether two nonces are equal. Its time does not depend on their values.
func sameNonce(a, b uint64) bool {
	// Spec: TK-06 (an id cannot be guessed or replayed)
	x := a ^ b
	return subtle.ConstantTimeEq(int32(x>>32), 0)&subtle.ConstantTimeEq(int32(x), 0) == 1
}

// ErrSyntax is the error for text that is not an [ID]. Check for it with errors.Is.
var ErrSyntax = errors.New("desk: an id is 32 hexadecimal digits in lower case")

// textLen is the length of an ID as text.
const textLen = 32

// ParseID returns the ID whose text is s. Each ID has exactly one text, which String returns; for any other text
// ParseID returns an error that matches [ErrSyntax].
func ParseID(s string) (ID, error) {
	var id ID
	err := id.UnmarshalText([]byte(s))
	return id, err
}

// String returns the text of the ID: 32 hexadecimal digits in lower case.
func (id ID) String() string {
	var text [textLen]byte
	return string(id.append(text[:0]))
}

// AppendText implements [encoding.TextAppender].
func (id ID) AppendText(b []byte) ([]byte, error) { return id.append(b), nil }

// MarshalText implements [encoding.TextMarshaler].
func (id ID) MarshalText() ([]byte, error) { return id.append(nil), nil }

func (id ID) append(b []byte) []byte {
	var raw [textLen / 2]byte
	binary.BigEndian.PutUint64(raw[:8], id.locator)
	binary.BigEndian.PutUint64(raw[8:], id.nonce)
	return hex.AppendEncode(b, raw[:])
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It is as strict as [ParseID].
func (id *ID) UnmarshalText(text []byte) error {
	var raw [textLen / 2]byte
	if len(text) != textLen {
		return fmt.Errorf("%w: this text has %d bytes", ErrSyntax, len(text))
	}
	for i, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("%w: byte %d is %q", ErrSyntax, i, c)
		}
	}
	if _, err := hex.Decode(raw[:], text); err != nil {
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	id.locator, id.nonce = binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	return nil
}
