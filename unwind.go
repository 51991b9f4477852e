package coir

// A user's function may panic, or call Goexit, while others are left to call: handlers of values that were not
// delivered, and functions passed to OnDone of a promise. These are called before the stack is unwound further.

// callAll calls step until it returns false. step calls user code: if it panics or calls Goexit, callAll makes the
// remaining calls before the panic or Goexit continues to the caller. Panics of the remaining calls are dropped.
// callAll does not recover the first panic, so its stack is intact for a caller that recovers it.
func callAll(step func() bool) {
	more := true
	defer func() {
		for more {
			more = callRest(step)
		}
	}()
	for more {
		more = step()
	}
}

// callRest makes the remaining calls of step during a panic or a Goexit. It reports whether another panic stopped it.
func callRest(step func() bool) (stopped bool) {
	more := true
	defer func() {
		stopped = more && recover() != nil
		for more && !stopped { // a Goexit cannot be stopped, but this call can continue
			more = callRest(step)
		}
	}()
	for more {
		more = step()
	}
	return false
}
