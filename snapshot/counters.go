package snapshot

// Counter is a number of an [Object] that only grows.
type Counter struct {
	Name  string // as in JSON
	Words string // what it counts: "sent", "dead letters"
	Value uint64
	// Main is set for the counters that texts show together if one of them is not 0. They show others only if they are
	// not 0.
	Main bool
}

// Counters returns the counters of the object: always all of them, in the same order. Texts, the page of package
// inspect and metrics show what is here.
func (o *Object) Counters() []Counter {
	return []Counter{
		{"sent", "sent", o.Sent, true},
		{"received", "received", o.Received, true},
		{"dropped", "dropped", o.Dropped, false},
		{"gaveUp", "waits given up", o.GaveUp, false},
		{"restarts", "restarts", o.Restarts, false},
		{"redelivered", "redelivered", o.Redelivered, false},
		{"dead", "dead letters", o.Dead, false},
	}
}
