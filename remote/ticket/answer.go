package ticket

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/attempt"
)

// How an answer finds its ticket.
//
// A replica that gets an answer checks the token. If the ticket is its own, it completes the ticket. Otherwise it
// forwards the answer to the owner, whose number is in the token: each desk serves one subject. A request that fails is
// repeated, which is safe because the owner recognizes the idempotency key. If a few attempts do not reach the owner,
// the answer is stored in a queue that all replicas share, and that all of them empty: see store.go. A replica that is
// cut off from the broker cannot store it either, and tries until the context ends.

// Outcome is the outcome of an answer that was accepted.
type Outcome byte

// The outcomes.
const (
	OutcomeNone      Outcome = iota // there was an error
	OutcomeDone                     // this answer has completed the ticket
	OutcomeDuplicate                // another answer with this key, or an earlier attempt of this one, completed it
	OutcomeStored                   // it is stored, and passed on if the owner can be reached before the ticket expires
)

// String returns the outcome as text.
func (o Outcome) String() string {
	switch o {
	case OutcomeNone:
		return "none"
	case OutcomeDone:
		return "done"
	case OutcomeDuplicate:
		return "duplicate"
	case OutcomeStored:
		return "stored"
	}
	return fmt.Sprintf("Outcome(%d)", byte(o))
}

// answer is an answer on its way to a ticket.
type answer[T any] struct {
	token  Token
	key    keyHash
	reject bool
	value  T      // in the replica that got the answer
	data   []byte // the encoded value, or the reason
}

// Resolve completes the ticket of a token with v, in whichever replica the ticket is open. The idempotency key
// identifies the event that the answer is about, such as the number that the provider gives to an event. If the same
// event is reported again, the outcome is [OutcomeDuplicate]. The key must not be empty.
//
// The error is [ErrToken] or [ErrExpired] if the token is refused, before any message is sent, and [ErrEnded] if the
// ticket has ended in another way. It is [remote.ErrFull] if the owner cannot be reached and the store is full. While
// neither the owner nor the store can be reached, Resolve tries again until ctx ends, and then returns the error of
// ctx, which also says what is known about the owner and the broker. That error also matches [remote.ErrUnknown] if an
// attempt may have succeeded. After any error except the first three, Resolve may be called again with the same key.
//
// A duplicate is recognized until the ticket expires, or until 65,536 other tickets of its owner have ended after it.
// Then it is refused with ErrExpired or ErrEnded.
func (d *Desk[T]) Resolve(ctx context.Context, token Token, key string, v T) (Outcome, error) {
	return d.answer(ctx, token, RightResolve, key, &answer[T]{value: v})
}

// Reject completes the ticket of a token with an error that contains the reason: the ticket's wait returns
// [remote.ErrRejected]. Reject returns the same as [Desk.Resolve].
func (d *Desk[T]) Reject(ctx context.Context, token Token, key, reason string) (Outcome, error) {
	return d.answer(ctx, token, RightReject, key, &answer[T]{reject: true, data: []byte(reason)})
}

func (d *Desk[T]) answer(ctx context.Context, token Token, r Right, key string, a *answer[T]) (Outcome, error) {
	if err := d.Check(token, r); err != nil {
		return OutcomeNone, err
	}
	if key == "" {
		return OutcomeNone, errors.New("ticket: the idempotency key is empty: an answer needs one that identifies its event")
	}
	sum := sha256.Sum256([]byte(key))
	a.token, a.key = token, keyHash(sum[:len(keyHash{})])
	if token.owner() == d.owner {
		return d.completeHere(ctx, a)
	}
	if !a.reject {
		var err error
		if a.data, err = d.codec.Marshal(a.value); err != nil {
			return OutcomeNone, fmt.Errorf("ticket: answer %v: the codec cannot encode the value: %w", token, err)
		}
	}
	out, err := d.forward(ctx, a.message(), token)
	if err != nil {
		return OutcomeNone, fmt.Errorf("ticket: answer %v: %w", token, err)
	}
	return out, nil
}

// completeHere completes a ticket of this desk, and waits while another answer with the same key completes it.
func (d *Desk[T]) completeHere(ctx context.Context, a *answer[T]) (Outcome, error) {
	for {
		switch d.complete(a) {
		case replyDone:
			return OutcomeDone, nil
		case replyDuplicate:
			return OutcomeDuplicate, nil
		case replyAgain:
			if err := coir.Sleep(ctx, againTime); err != nil {
				return OutcomeNone, err
			}
		default:
			return OutcomeNone, ErrEnded
		}
	}
}

// complete completes a ticket of this desk with an answer whose token has been checked. It does not wait.
func (d *Desk[T]) complete(a *answer[T]) reply {
	id, c := d.slots.claim(a.token.slot(), a.token.generation(), a.key)
	switch c {
	case won:
	case pending:
		return replyAgain
	case duplicate:
		return replyDuplicate
	default:
		return replyEnded
	}
	var err error
	if a.reject {
		err = d.local.Reject(id, fmt.Errorf("%w: %s", remote.ErrRejected, a.data))
	} else {
		err = d.local.Resolve(id, a.value)
	}
	if err != nil { // the ticket has expired or was cancelled after it was claimed
		return replyEnded
	}
	return replyDone
}

// The messages to an owner, and its replies.
//
//	token 42 | kind 1 | key 16 | value or reason
const messageHead = tokenLen + 1 + len(keyHash{})

const (
	kindResolve = 'v'
	kindReject  = 'e'
)

// reply is the reply of an owner.
type reply byte

const (
	replyDone      reply = 'y'
	replyDuplicate reply = 'd'
	replyEnded     reply = 'e'
	replyExpired   reply = 'x'
	replyInvalid   reply = 't'
	replyAgain     reply = 'a'
	replyUnread    reply = 'n' // the owner cannot decode the value
)

func ownerSubject(node uint16, owner uint64) string {
	return "ticket." + strconv.Itoa(int(node)) + "." + strconv.FormatUint(owner, 36)
}

func (a *answer[T]) message() []byte {
	m := make([]byte, 0, messageHead+len(a.data))
	m = append(m, a.token.bytes()[:]...)
	if a.reject {
		m = append(m, kindReject)
	} else {
		m = append(m, kindResolve)
	}
	m = append(m, a.key[:]...)
	return append(m, a.data...)
}

// parse reads a message, and checks its token.
func (d *Desk[T]) parse(m []byte) (a answer[T], problem reply) {
	if len(m) < messageHead || m[tokenLen] != kindResolve && m[tokenLen] != kindReject {
		return a, replyInvalid
	}
	a.token = tokenOf((*[tokenLen]byte)(m))
	a.reject = m[tokenLen] == kindReject
	a.key = keyHash(m[tokenLen+1:])
	a.data = m[messageHead:]
	right := RightResolve
	if a.reject {
		right = RightReject
	}
	switch err := d.Check(a.token, right); {
	case errors.Is(err, ErrExpired):
		return a, replyExpired
	case err != nil:
		return a, replyInvalid
	}
	return a, 0
}

// serveRequest is called with the request of another replica to complete a ticket.
func (d *Desk[T]) serveRequest(m []byte) []byte {
	a, problem := d.parse(m)
	if problem == 0 {
		problem = d.completeData(&a)
	}
	return []byte{byte(problem)}
}

// completeData completes a ticket with an answer whose value is still encoded.
func (d *Desk[T]) completeData(a *answer[T]) reply {
	if a.token.owner() != d.owner {
		return replyInvalid
	}
	if !a.reject && d.codec.Unmarshal(a.data, &a.value) != nil {
		return replyUnread
	}
	return d.complete(a)
}

// The attempts to reach an owner.
const (
	askTimes  = 3                    // attempts before the answer is stored
	againTime = 5 * time.Millisecond // wait before the second attempt
)

// forward passes an answer to the owner of its ticket, or stores it.
func (d *Desk[T]) forward(ctx context.Context, m []byte, token Token) (Outcome, error) {
	doubt := false // an attempt may have succeeded, or may still succeed
	wait := againTime
	var last error // of asking the owner
	for range askTimes {
		out, err := d.ask(ctx, m, token)
		if err == nil {
			d.count.forwarded.Add(1)
		}
		if err == nil || !attempt.Open(err) {
			return out, attempt.Doubt(doubt, err) // an earlier attempt may have had another result
		}
		doubt = doubt || errors.Is(err, remote.ErrUnknown)
		last = notReached(token, err)
		if ended := coir.Sleep(ctx, wait); ended != nil {
			return OutcomeNone, attempt.Doubt(doubt, fmt.Errorf("%w: %w", last, ended))
		}
		wait *= 4
	}
	if err := d.store(ctx, m); err != nil {
		return OutcomeNone, attempt.Doubt(doubt, fmt.Errorf("%v; and the answer cannot be stored: %w", last, err))
	}
	d.count.stored.Add(1)
	return OutcomeStored, nil
}

// notReached returns the error of an attempt that has not reached the owner of a ticket.
func notReached(token Token, err error) error {
	what := "does not answer: it is busy, or cut off, or has just ended"
	if errors.Is(err, remote.ErrUnavailable) {
		what = "cannot be reached: it has ended, or it or this process has lost its connection"
	}
	return fmt.Errorf("the owner, on node %d, %s: %w", token.node(), what, err)
}

// ask asks the owner once.
func (d *Desk[T]) ask(ctx context.Context, m []byte, token Token) (Outcome, error) {
	var out []byte
	err := attempt.Within(ctx, attempt.Short, func(ctx context.Context) (err error) {
		out, err = d.t.Request(ctx, ownerSubject(token.node(), token.owner()), m)
		return err
	})
	if err != nil {
		return OutcomeNone, err
	}
	if len(out) != 1 {
		return OutcomeNone, fmt.Errorf("%w: the owner's answer cannot be read: %.20q", remote.ErrUnknown, out)
	}
	switch reply(out[0]) {
	case replyDone:
		return OutcomeDone, nil
	case replyDuplicate:
		return OutcomeDuplicate, nil
	case replyEnded:
		return OutcomeNone, ErrEnded
	case replyExpired:
		return OutcomeNone, ErrExpired
	case replyInvalid:
		return OutcomeNone, ErrToken
	case replyUnread:
		return OutcomeNone, errors.New("the owner cannot decode the value")
	}
	return OutcomeNone, fmt.Errorf("%w: the owner is about to complete the ticket", remote.ErrUnknown)
}

// messageID returns the ID of a stored answer, made from its token, kind and key.
func messageID(m []byte) remote.ID {
	h := sha256.Sum256(m[:messageHead])
	return remote.ID{Sender: binary.BigEndian.Uint64(h[:]), Seq: binary.BigEndian.Uint64(h[8:])}
}
