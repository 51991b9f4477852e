package http

import (
	"fmt"
	_ "unsafe" // for go:linkname
)

// coirRun returns the number of the schedule that the caller belongs to, or 0; see package syscall.
//
//go:linkname coirRun
func coirRun() uint32

// coirTraces reports whether the trace of the schedule is kept for a report.
//
//go:linkname coirTraces
func coirTraces() bool

// coirRole sets the name of the calling goroutine in the report.
//
//go:linkname coirRole
func coirRole(name string)

// coirNote sets the text that the report shows for the last step of the calling goroutine, or for its next step.
//
//go:linkname coirNote
func coirNote(text string, next bool)

// coirPolls sets whether the calling goroutine only polls from now on, and returns the previous setting.
//
//go:linkname coirPolls
func coirPolls(polls bool) (before bool)

// coirSelf returns the number of the calling goroutine, or 0.
//
//go:linkname coirSelf
func coirSelf() uint32

// coirServes records for the report that a goroutine of the transport made its last step on behalf of goroutine id, and
// reads and writes for id from now on.
//
//go:linkname coirServes
func coirServes(id uint32)

// coirPanicking returns the value of the panic for which the calling deferred function runs, or nil. It returns nil
// outside of a schedule.
//
//go:linkname coirPanicking
func coirPanicking() any

// coirRecovers records that the server will recover the panic of the calling goroutine, which handles a request.
//
//go:linkname coirRecovers
func coirRecovers(request, text string)

// coirBegins is called when a connection begins to write a request.
//
//go:norace
func (pc *persistConn) coirBegins(req *transportRequest) {
	pc.coirOn = req.coirOn
	coirServes(pc.coirOn)
}

// coirReads is called after a read from a connection.
//
//go:norace
func (pc *persistConn) coirReads() { coirServes(pc.coirOn) }

// coirRoundTrip calls roundTrip, and adds notes for the report.
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

// coirHandles sets the name of the calling goroutine, which is about to call a handler. A defer statement calls the
// function that it returns when the handler has returned or panics. The servers of HTTP/1 and HTTP/2 recover a panic of
// a handler, and log all but ErrAbortHandler.
func coirHandles(req *Request) (handled func()) {
	what := req.Method + " " + req.URL.EscapedPath()
	if coirTraces() {
		coirRole("handler " + what)
		coirNote("handler "+what, false)
	}
	return func() {
		if v := coirPanicking(); v != nil && v != ErrAbortHandler {
			coirRecovers(what, fmt.Sprint(v))
		}
	}
}

// coirForget removes connections of an earlier schedule, which can no longer be used, from a transport. A transport may
// be global, as the default one is. No other goroutine runs meanwhile.
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
