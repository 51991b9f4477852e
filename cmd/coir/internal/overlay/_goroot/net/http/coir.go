package http

import _ "unsafe" // for go:linkname

// coirRun returns the number of the schedule that the caller belongs to, or 0; see package syscall.
//
//go:linkname coirRun
func coirRun() uint32

// coirForget forgets connections that were made in an earlier schedule: nothing reads from them or writes to them any
// more. A transport may be global, as the default one is. No other goroutine runs meanwhile.
//
//go:norace
func (t *Transport) coirForget() {
	run := coirRun()
	if run == t.coirRun || run == 0 {
		return
	}
	t.coirRun = run
	t.closeIdle, t.idleConn, t.idleConnWait, t.idleLRU = false, nil, nil, connLRU{}
	t.connsPerHost, t.connsPerHostWait, t.dialsInProgress = nil, nil, wantConnQueue{}
}
