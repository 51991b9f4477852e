package remote

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/coir-go/coir/remote/internal/attempt"
)

// DeadLetter is a value that could not be processed: its codec could not decode it, it failed more often than
// [WithTries] allows, or a receiver rejected it. Dead letters are the values of a separate durable channel, with the
// codec [JSON]:
//
//	dead, err := remote.Durable[remote.DeadLetter](ctx, n, t, remote.DeadName("orders"), remote.DeadCapacity)
type DeadLetter struct {
	ID     ID // of the value
	Reason string
	Tries  int    // how often it was delivered
	Data   []byte // the encoded value
}

// DeadCapacity is the capacity of a channel of dead letters. While that channel is full, values stay in their own
// channel, and are delivered again.
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
	if err != nil {
		return fmt.Errorf("remote: store the dead letter of %v of %s: %w", m.ID, c.name, err)
	}
	c.count(func(st *Stats) { st.Dead++ })
	return nil
}
