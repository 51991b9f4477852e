package ticket

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Token lets an outside party complete a ticket. Its text has 56 characters, which need no escape in a URL, a header or
// JSON. A token is a secret: send it in a header or a body rather than in a URL, because others log URLs.
//
// A Token hides its secret: packages fmt, log/slog and encoding/json get a text that only names the ticket.
// [Token.Reveal] returns the secret, and [ParseToken] reads it.
type Token struct {
	// The bytes, in order:
	//
	//	version 1 | key 1 | node 2 | owner 8 | slot 4 | generation 4 | expiry 5 | rights 1 | MAC 16
	//
	// 42 bytes are 56 characters of base64 without a spare bit, so each token has one text. The MAC is the first half of
	// HMAC-SHA256 of the bytes before it and of the audience, which is not in the token. The owner is random for each
	// Desk, so a process never accepts a token of the process that it replaces.
	//
	// The field is a pointer to a pointer, because package fmt prints unexported fields of a struct without calling their
	// methods. For a Token in a struct of a program, fmt would print the bytes, or, with a verb that does not fit, the
	// bytes behind a single pointer. With a pointer to a pointer it prints an address.
	at **[tokenLen]byte
}

// tokenOf returns a token with the bytes.
func tokenOf(b *[tokenLen]byte) Token { return Token{&b} }

// bytes returns the bytes, or nil for the zero Token.
func (t Token) bytes() *[tokenLen]byte {
	if t.at == nil {
		return nil
	}
	return *t.at
}

const (
	tokenVersion = 1
	headLen      = 26
	macLen       = 16
	tokenLen     = headLen + macLen
	textLen      = 56
)

// Right says what a token allows: one of the rights, or several of them combined.
type Right byte

// The rights.
const (
	RightResolve Right = 1 << iota // to complete the ticket with a value
	RightReject                    // to complete it with an error

	allRights = RightResolve | RightReject
)

// The reasons to refuse a token. Compare with errors.Is.
var (
	// ErrToken means that the token is not valid for this audience: it is misspelled or forged, it is signed with a key
	// that is not in the ring, it is meant for another audience, or it lacks the right. The error does not say which of
	// these.
	ErrToken = errors.New("ticket: the token is not valid here")
	// ErrExpired means that the time of the ticket is up.
	ErrExpired = errors.New("ticket: the token has expired")
)

// ParseToken reads a text that [Token.Reveal] has returned. It checks only the form. The error is [ErrToken].
func ParseToken(text string) (Token, error) {
	if len(text) != textLen {
		return Token{}, ErrToken
	}
	b := new([tokenLen]byte)
	if n, err := base64.RawURLEncoding.Strict().Decode(b[:], []byte(text)); err != nil || n != tokenLen {
		return Token{}, ErrToken // n is less if there are line breaks, which the decoder skips
	}
	t := tokenOf(b)
	if !t.canonical() {
		return Token{}, ErrToken
	}
	return t, nil
}

// canonical reports whether the token has parts that newToken can write.
func (t Token) canonical() bool {
	b := t.bytes()
	return b != nil && b[0] == tokenVersion && t.rights() != 0 && t.rights()&^allRights == 0
}

// Reveal returns the text of the token, with its secret, for the party that completes the ticket. It is empty for the
// zero Token.
func (t Token) Reveal() string {
	b := t.bytes()
	if b == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func (t Token) node() uint16 { return binary.BigEndian.Uint16(t.bytes()[2:]) }

func (t Token) owner() uint64 { return binary.BigEndian.Uint64(t.bytes()[4:]) }

func (t Token) slot() uint32 { return binary.BigEndian.Uint32(t.bytes()[12:]) }

func (t Token) generation() uint32 { return binary.BigEndian.Uint32(t.bytes()[16:]) }

// expiry returns the time, in whole seconds, at which the token expires.
func (t Token) expiry() time.Time {
	b := t.bytes()
	return time.Unix(int64(b[20])<<32|int64(binary.BigEndian.Uint32(b[21:])), 0)
}

func (t Token) rights() Right { return Right(t.bytes()[25]) }

// newToken returns a token whose key and MAC are not written yet.
func newToken(node uint16, owner uint64, slot, generation uint32, expiry time.Time, rights Right) Token {
	b := new([tokenLen]byte)
	b[0] = tokenVersion
	binary.BigEndian.PutUint16(b[2:], node)
	binary.BigEndian.PutUint64(b[4:], owner)
	binary.BigEndian.PutUint32(b[12:], slot)
	binary.BigEndian.PutUint32(b[16:], generation)
	s := expiry.Unix()
	b[20] = byte(s >> 32)
	binary.BigEndian.PutUint32(b[21:], uint32(s))
	b[25] = byte(rights)
	return tokenOf(b)
}

// String returns a text for logs. It names the ticket, and does not contain the secret.
func (t Token) String() string {
	if t.at == nil {
		return "ticket.Token()"
	}
	return fmt.Sprintf("ticket.Token(%016x-%d.%d)", t.owner(), t.slot(), t.generation())
}

// GoString returns the same as String.
func (t Token) GoString() string { return t.String() }

// Format implements [fmt.Formatter]: each verb prints the same as String.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue implements [slog.LogValuer]. The value is that of String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText implements [encoding.TextMarshaler]. The text is that of String, so that a token in a value that is
// logged as JSON stays a secret. ParseToken refuses this text.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
