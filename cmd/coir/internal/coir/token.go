package coir

// TokenHead is the part of a token before the decisions. A token says how to run a schedule again. It is a prefix,
// followed by the numbers of the head and the decisions, in base64: see package replay, which encodes the decisions.
// The head has the faults that could happen, because they decide which operations ask for a decision: so a schedule can
// be repeated without -faults.
type TokenHead struct {
	Alone  bool   // the schedule had a process of its own
	Seed   uint64 // see Config
	Racing uint64 // see Config; less than 1<<racingBits
	Faults uint32 // see Config
	Hash   uint32 // the last bits of the hash of what the schedule did: see Outcome
}

// The prefixes of tokens: alonePrefix if Alone is set, and otherwise tokenPrefix. CutPrefix needs prefixes of the same
// length.
const (
	tokenPrefix = "c1."
	alonePrefix = "f1."
)

// TokenPrefixes names the prefixes in errors.
const TokenPrefixes = tokenPrefix + " or " + alonePrefix

// racingBits is the number of bits for Racing, in the number that also has the faults.
const racingBits = 8

// Prefix returns the prefix of the token.
func (h *TokenHead) Prefix() string {
	if h.Alone {
		return alonePrefix
	}
	return tokenPrefix
}

// CutPrefix sets Alone, and returns the token without its prefix. It reports whether the token has a prefix.
func (h *TokenHead) CutPrefix(text string) (letters string, ok bool) {
	if len(text) < len(tokenPrefix) {
		return "", false
	}
	prefix, letters := text[:len(tokenPrefix)], text[len(tokenPrefix):]
	h.Alone = prefix == alonePrefix
	return letters, h.Alone || prefix == tokenPrefix
}

// Numbers returns the numbers of the head in the form of the token.
func (h *TokenHead) Numbers() (b []byte) {
	for _, n := range [...]uint64{h.Seed, h.Racing | uint64(h.Faults)<<racingBits, uint64(h.Hash)} {
		for ; n >= 0x80; n >>= 7 { // as binary.AppendUvarint, which this package cannot import
			b = append(b, byte(n)|0x80)
		}
		b = append(b, byte(n))
	}
	return b
}

// Parse sets the numbers of the head from the bytes of a token, and returns the bytes after them. It reports whether
// they are valid.
func (h *TokenHead) Parse(b []byte) (rest []byte, ok bool) {
	var how, hash uint64
	for _, to := range [...]*uint64{&h.Seed, &how, &hash} {
		if *to, b, ok = number(b); !ok {
			return nil, false
		}
	}
	h.Racing, h.Faults, h.Hash = how&(1<<racingBits-1), uint32(how>>racingBits), uint32(hash)
	return b, how>>racingBits>>32 == 0 && hash>>32 == 0
}

// number reads a number, and returns the bytes after it.
func number(b []byte) (n uint64, rest []byte, ok bool) {
	for i, c := range b {
		if i == 9 && c > 1 {
			return 0, nil, false // more than 64 bits
		}
		if n |= uint64(c&0x7f) << (7 * i); c < 0x80 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
