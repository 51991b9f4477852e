package nats

// CheckAgain looks again at what the servers promise, as the transport does from time to time.
func (t *Transport) CheckAgain() { t.checkAgain() }
