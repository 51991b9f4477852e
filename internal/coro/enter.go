//go:build race || coirtrampoline

package coro

// Slot is the result of Enter: Next passes control. It gives these switchers the same API as the default one, where a
// transfer in parts is faster: see slot.go.
type Slot struct {
	Next  func() (struct{}, bool)
	Yield func(struct{}) bool // not used here
	Odd   bool
	to    *Coro
}

// Enter is the first part of Transfer; the caller completes it by calling Next of the result.
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

// Via returns s: only the default switcher needs it.
//
//go:norace
func (c *Coro) Via(s *Slot) *Slot { return s }
