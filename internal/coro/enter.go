//go:build race || coirtrampoline

package coro

// Slot is what Enter returns: Next passes control. It gives these switchers the shape of the default one, see slot.go,
// where writing a transfer out in parts pays.
type Slot struct {
	Next  func() (struct{}, bool)
	Yield func(struct{}) bool // not used here
	Odd   bool
	to    *Coro
}

// Enter is the first part of Transfer; the caller does the last, by Next of what it returns.
//
//go:norace
func (c *Coro) Enter(to *Coro) *Slot {
	c.slot.to = to
	if c.slot.Next == nil {
		c.slot.Odd = true
		c.slot.Next = func() (v struct{}, ok bool) {
			Transfer(c, c.slot.to)
			return v, true
		}
	}
	return &c.slot
}

// Via returns s: Transfer does all there is to do.
//
//go:norace
func (c *Coro) Via(s *Slot) *Slot { return s }
