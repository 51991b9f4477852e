package netio

import "errors"

// These are the errors of the system that a simulated connection returns.
var (
	errRefused      = errors.New("connection refused")
	errReset        = errors.New("connection reset by peer")
	errPipe         = errors.New("broken pipe")
	errAddrInUse    = errors.New("address already in use")
	errNoPort       = errors.New("cannot assign requested address")
	errNoFile       = errors.New("no such file or directory")
	errNotConnected = errors.New("transport endpoint is not connected")
)
