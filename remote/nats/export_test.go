package nats

// CheckAgain checks again what the servers promise, as the transport does from time to time.
func (t *Transport) CheckAgain() { t.checkAgain() }

// CheckSoon makes the transport check again what the servers promise, as it does after a reconnect.
func (t *Transport) CheckSoon() { t.reconnected <- struct{}{} }
