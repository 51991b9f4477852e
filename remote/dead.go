package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote/internal/attempt"
	"github.com/coir-go/coir/remote/internal/trouble"
)

// DeadLetter is a value that could not be processed: its codec could not decode it, it failed more often than
// [WithTries] allows, or a receiver rejected it. [Chan.AllDead] lists the dead letters of a channel, and [Chan.Revive]
// sends the value of one again. A program that reacts to each dead letter receives from their channel, which is durable
// and has the codec [JSON]:
//
//	dead, err := remote.Durable[remote.DeadLetter](ctx, n, t, remote.DeadName("orders"), remote.DeadCapacity)
//
// The end that stores a dead letter also logs it as a warning, with the channel, the ID, the number of deliveries and
// the reason, but not the value: see [WithLogger]. An end logs the first 10 dead letters, and then at most one every 10
// seconds. That warning has the number of dead letters that were not logged since the previous one; Stats.Dead counts
// all of them. Values that cannot become dead letters, because there is no room, are logged in the same way.
type DeadLetter struct {
	ID     ID // of the value
	Reason string
	Tries  int    // how often it was delivered
	Data   []byte // the encoded value
}

// DeadCapacity is the capacity of a channel of dead letters. While that channel is full, values stay in their own
// channel, and receivers get them again, after growing delays, however often they were delivered. So a value that fails
// can still succeed; one that cannot be decoded waits for room. The end logs a warning, and shows snapshots and metrics
// as its trouble that the dead letters are full. List them with [Chan.AllDead], and remove or revive some.
const DeadCapacity = 1000

// DeadName returns the name of the channel for the dead letters of the given channel.
func DeadName(channel string) string { return channel + ".dead" }

// bury stores a dead letter. It uses the ID of the value, so that a repeated bury stores the dead letter once.
func (c *Chan[T]) bury(ctx context.Context, d Delivery, reason string) error {
	m := d.Msg()
	data, err := json.Marshal(DeadLetter{m.ID, reason, d.Tries(), m.Data})
	if err == nil {
		dead := Msg{ID: m.ID, Data: data}
		err = attempt.Repeat(ctx, 0, func(ctx context.Context) error { return c.t.Publish(ctx, DeadName(c.name), dead) })
	}
	if errors.Is(err, ErrFull) {
		c.noteDead(DeadCapacity)
		c.logDead(ctx, &c.sight.fulls, "remote: no room for a dead letter, so the value is delivered again: "+
			"list the dead letters with AllDead, and remove or revive some", d, reason)
	}
	if err != nil {
		return fmt.Errorf("remote: store the dead letter of %v of %s: %w", m.ID, c.name, err)
	}
	c.sight.deadFull.Clear()
	c.count(func(st *Stats) { st.Dead++ })
	c.logDead(ctx, &c.sight.logs, "remote: a value became a dead letter", d, reason)
	return nil
}

// askDead asks the broker whether the dead letters are full.
func (c *Chan[T]) askDead(ctx context.Context) error {
	n, err := c.t.Len(ctx, DeadName(c.name))
	if err == nil {
		c.noteDead(n)
	}
	return err
}

// noteDead notes how many dead letters are stored. If they are full, that is the trouble of the end.
func (c *Chan[T]) noteDead(n int) {
	if n < DeadCapacity {
		c.sight.deadFull.Clear()
		return
	}
	c.sight.deadFull.Set(fmt.Sprintf("the dead letters of %s are full (%d of %d): list them with AllDead, and remove or "+
		"revive some", c.name, n, DeadCapacity))
}

// The rate of warnings about dead letters.
const (
	logFirst = 10               // warnings at once
	logEvery = 10 * time.Second // for each further one
)

// rate limits warnings of one kind about the dead letters of an end. It is a bucket of logFirst tokens.
type rate struct {
	begun   bool
	full    time.Duration // when all tokens are there again
	skipped int           // events since the last warning
}

// take takes a token. It reports whether there was one, and the number of events without one since the last.
func (r *rate) take(now time.Duration) (skipped int, ok bool) {
	if !r.begun || r.full < now {
		r.begun, r.full = true, now
	}
	if r.full+logEvery > now+logFirst*logEvery {
		r.skipped++
		return 0, false
	}
	r.full += logEvery
	skipped, r.skipped = r.skipped, 0
	return skipped, true
}

// logDead logs a warning about a dead letter.
func (c *Chan[T]) logDead(ctx context.Context, r *rate, text string, d Delivery, reason string) {
	log := c.set.logger
	if log == nil {
		if c.sight.silent {
			return
		}
		log = slog.Default()
	}
	c.sight.mu.Lock()
	skipped, ok := r.take(coir.Now(ctx))
	c.sight.mu.Unlock()
	if !ok {
		return
	}
	attrs := []slog.Attr{
		slog.String("channel", c.name), slog.String("id", d.Msg().ID.String()), slog.Int("tries", d.Tries()),
		slog.String("reason", trouble.Cut(reason)),
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int("notLogged", skipped))
	}
	log.LogAttrs(ctx, slog.LevelWarn, text, attrs...)
}
