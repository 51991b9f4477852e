package http

import _ "unsafe" // for go:linkname

// coirRun returns the number of the schedule that the caller belongs to, or 0; see package syscall.
//
//go:linkname coirRun
func coirRun() uint32

// coirTraces reports whether there will be a report of the schedule.
//
//go:linkname coirTraces
func coirTraces() bool

// coirRole names the calling goroutine in the report.
//
//go:linkname coirRole
func coirRole(name string)

// coirNote is the text that stands in the report for the last step of the calling goroutine, or for the next one.
//
//go:linkname coirNote
func coirNote(text string, next bool)

// coirPolls says whether the calling goroutine only polls from now on, and returns what was said before.
//
//go:linkname coirPolls
func coirPolls(polls bool) (before bool)

// coirSelf returns the number of the calling goroutine, or 0.
//
//go:linkname coirSelf
func coirSelf() uint32

// coirServes says in the report on whose behalf a goroutine of the transport did its last step, and reads and writes
// from now on.
//
//go:linkname coirServes
func coirServes(id uint32)

// coirBegins is called when a connection begins to write a request.
//
//go:norace
func (pc *persistConn) coirBegins(req *transportRequest) {
	pc.coirOn = req.coirOn
	coirServes(pc.coirOn)
}

// coirReads is called after a connection was read.
//
//go:norace
func (pc *persistConn) coirReads() { coirServes(pc.coirOn) }

// coirRoundTrip is roundTrip with notes.
func (t *Transport) coirRoundTrip(req *Request) (*Response, error) {
	if req == nil || req.URL == nil {
		return t.roundTrip(req)
	}
	what := valueOrDefault(req.Method, "GET") + " " + valueOrDefault(req.URL.EscapedPath(), "/")
	coirNote("client "+what+" -> "+req.URL.Host, true)
	resp, err := t.roundTrip(req)
	if err != nil {
		coirNote("client "+what+": "+err.Error(), false)
	} else {
		coirNote("client "+what+" <- "+resp.Status, false)
	}
	return resp, err
}

// coirHandles names a goroutine that calls a handler.
func coirHandles(req *Request) {
	if coirTraces() {
		what := req.Method + " " + req.URL.EscapedPath()
		coirRole("handler " + what)
		coirNote("handler "+what, false)
	}
}

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
