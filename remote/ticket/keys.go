package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"sync"
	"sync/atomic"
)

// Keys is a ring of numbered secret keys that sign tokens. All replicas must have the same ring. [NewKeys] makes it,
// and any number of desks may use it.
//
// To rotate the keys, first add the new key in all replicas, then use it in all of them, and remove the old key when
// the last token that it signed has expired.
type Keys struct {
	mu    sync.Mutex // held while the ring is changed
	state atomic.Pointer[ring]
}

// ring is a state of Keys. It does not change.
type ring struct {
	keys  map[byte]*key
	signs byte
}

// key is one key. It keeps idle states of the hash, because setting up a new one takes as long as using it.
type key struct {
	secret []byte
	idle   sync.Pool // of *mac
}

// mac is a state of the hash, with room for a sum.
type mac struct {
	hash.Hash
	sum [sha256.Size]byte
}

// minSecret is the least length of a secret, in bytes: as many as the strength of the hash needs.
const minSecret = 32

// NewKeys returns a ring with one key, which signs new tokens. The secret must have at least 32 bytes, and must be
// random.
func NewKeys(id byte, secret []byte) (*Keys, error) {
	k := new(Keys)
	k.state.Store(&ring{keys: map[byte]*key{}, signs: id})
	if err := k.Add(id, secret); err != nil {
		return nil, err
	}
	return k, nil
}

// Add adds a key, so that tokens signed with it are accepted. It fails if the secret is shorter than 32 bytes, or if
// another key has the number.
func (k *Keys) Add(id byte, secret []byte) error {
	if len(secret) < minSecret {
		return fmt.Errorf("ticket: key %d has %d bytes: it must have at least %d", id, len(secret), minSecret)
	}
	secret = append([]byte(nil), secret...)
	return k.change(func(r *ring) error {
		if old := r.keys[id]; old != nil {
			if !hmac.Equal(old.secret, secret) {
				return fmt.Errorf("ticket: there is another key %d: give the new key another number", id)
			}
			return nil
		}
		r.keys[id] = &key{secret: secret}
		return nil
	})
}

// Use makes the key with the number sign new tokens.
func (k *Keys) Use(id byte) error {
	return k.change(func(r *ring) error {
		if r.keys[id] == nil {
			return fmt.Errorf("ticket: unknown key %d: add it first, in all replicas", id)
		}
		r.signs = id
		return nil
	})
}

// Remove removes a key: tokens signed with it are refused from now on. Remove fails if the key signs new tokens.
func (k *Keys) Remove(id byte) error {
	return k.change(func(r *ring) error {
		if r.signs == id {
			return fmt.Errorf("ticket: key %d signs new tokens: use another key first", id)
		}
		delete(r.keys, id)
		return nil
	})
}

// change replaces the ring by a changed copy.
func (k *Keys) change(f func(r *ring) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.state.Load()
	if old == nil {
		return errors.New("ticket: use of Keys that were not made by NewKeys")
	}
	r := &ring{keys: maps.Clone(old.keys), signs: old.signs}
	if err := f(r); err != nil {
		return err
	}
	k.state.Store(r)
	return nil
}

// String returns a description without secrets.
func (k *Keys) String() string {
	r := k.state.Load()
	return fmt.Sprintf("ticket.Keys(%d keys, %d signs)", len(r.keys), r.signs)
}

// GoString returns the same as String.
func (k *Keys) GoString() string { return k.String() }

// sign writes the key and the MAC of a token.
func (k *Keys) sign(b *[tokenLen]byte, audience []byte) {
	r := k.state.Load()
	b[1] = r.signs
	r.keys[r.signs].with(b, audience, func(sum []byte) { copy(b[headLen:], sum) })
}

// check reports whether the MAC of a token is correct.
func (k *Keys) check(b *[tokenLen]byte, audience []byte) (ok bool) {
	key := k.state.Load().keys[b[1]]
	if key == nil {
		return false
	}
	key.with(b, audience, func(sum []byte) { ok = hmac.Equal(sum, b[headLen:]) })
	return ok
}

// with calls f with the MAC of the head of a token and the audience.
func (k *key) with(b *[tokenLen]byte, audience []byte, f func(sum []byte)) {
	m, ok := k.idle.Get().(*mac)
	if !ok {
		m = &mac{Hash: hmac.New(sha256.New, k.secret)}
	}
	m.Reset()
	m.Write(b[:headLen]) // never fails; the head has a fixed length, so head and audience cannot be confused
	m.Write(audience)
	f(m.Sum(m.sum[:0])[:macLen])
	k.idle.Put(m)
}
