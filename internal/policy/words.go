package policy

// The words for waits, which reports and snapshots share.

// Waits returns what a fiber waits for in the operation, in words that follow "waits". name is the name of its object.
func (o *Op) Waits(name string) string {
	switch o.Kind {
	case Send, SendAsync:
		if o.Verb != nil {
			return o.Verb.Waits + " " + name
		}
		return "to send to " + name
	case Recv, RecvAsync:
		if o.Verb != nil {
			return o.Verb.Waits + " " + name
		}
		return "to receive from " + name
	case Wait:
		return "for " + name + " to end"
	case Join:
		return "for its children to end"
	case Go:
		return "for a place in its nursery"
	case Select:
		return "for one of the cases of a selector"
	case Leave:
		return "for the other side of " + name + " to be gone"
	case Use:
		if name == "" {
			return o.Verb.Waits
		}
		return o.Verb.Waits + " " + name
	}
	return "for time to pass"
}

// Ends returns what another fiber must do to the object to end the wait, or "".
func (o *Op) Ends() string {
	switch o.Kind {
	case Send, SendAsync:
		if o.Verb != nil {
			return o.Verb.Ends
		}
		return "receive from"
	case Recv, RecvAsync:
		if o.Verb != nil {
			return o.Verb.Ends
		}
		return "send to or close"
	case Use:
		return o.Verb.Ends
	}
	return ""
}
