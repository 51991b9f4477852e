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

// Token is what an outside party completes a ticket with. Its text has 56 characters, which need no escape in a URL, a
// header or JSON. A token is a secret: prefer a header or a body to a URL, which others log.
//
// A Token does not show its secret by itself: package fmt, package log/slog and package encoding/json get a text that
// only names the ticket. [Token.Reveal] returns the secret, and [ParseToken] reads it.
type Token struct {
	// The bytes, from the first on:
	//
	//	version 1 | key 1 | node 2 | owner 8 | slot 4 | generation 4 | expiry 5 | rights 1 | MAC 16
	//
	// 42 bytes are 56 characters of base64 without a spare bit, so each token has one text. The MAC is the first half of
	// HMAC-SHA256 of the bytes before it and of the audience, which is not in the token. The owner is random for each
	// Desk, so no token of a process that has ended is one of its successor.
	//
	// It is a pointer to a pointer, because package fmt prints unexported fields of a struct without their methods: of a
	// Token in a struct of a program it would print the bytes, or, for a verb that does not fit, those that a pointer
	// points to. So it prints an address.
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

// Right is what a token allows: one of the rights, or several of them combined.
type Right byte

// The rights.
const (
	RightResolve Right = 1 << iota // to complete the ticket with a value
	RightReject                    // to complete it with an error

	allRights = RightResolve | RightReject
)

// The reasons for which a token is refused. Compare with errors.Is.
var (
	// ErrToken means that the token is not one of this audience: it is misspelled or forged, signed with a key that is
	// not in the ring, meant for another audience, or lacks the right. The error does not say which.
	ErrToken = errors.New("ticket: the token is not valid here")
	// ErrExpired means that the time of the ticket is up.
	ErrExpired = errors.New("ticket: the token has expired")
)

// ParseToken reads the text of a token, which [Token.Reveal] has returned. It checks the form only. The error is
// [ErrToken].
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

// canonical reports whether the parts have values that a token can have.
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

// expiry returns the second at whose begin the token expires.
func (t Token) expiry() time.Time {
	b := t.bytes()
	return time.Unix(int64(b[20])<<32|int64(binary.BigEndian.Uint32(b[21:])), 0)
}

func (t Token) rights() Right { return Right(t.bytes()[25]) }

// newToken returns a token without key and MAC.
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

// String returns a text for logs, which names the ticket and does not have the secret.
func (t Token) String() string {
	if t.at == nil {
		return "ticket.Token()"
	}
	return fmt.Sprintf("ticket.Token(%016x-%d.%d)", t.owner(), t.slot(), t.generation())
}

// GoString returns what String returns.
func (t Token) GoString() string { return t.String() }

// Format implements [fmt.Formatter]: each verb prints what String returns.
func (t Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue implements [slog.LogValuer], with what String returns.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText implements [encoding.TextMarshaler], with what String returns: a token that is part of a value that is
// logged as JSON stays a secret. ParseToken refuses it.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
