// Package bubble finds out in which bubble of testing/synctest the calling goroutine runs.
//
// A goroutine belongs to the bubble that it was started in. So do the channels and timers that it makes, and sync.Cond
// does not wake across the border. Using such an object from the wrong side is not a panic but a fatal error, which
// ends the process. So what coir keeps between two calls (a runtime with its workers, a clock with its Go timer) and
// what it blocks goroutines with (a guest) must know its bubble.
//
// The standard library has no public function for this, and the linker forbids the use of its private one. Two
// documented or visible effects remain:
//
//   - time.Now has no monotonic reading in a bubble. That costs one look at the clock, some 50 ns, and says that there
//     is a bubble, not which.
//   - The first line of a stack dump names the bubble by its number, which is never used twice. That costs
//     microseconds, and is asked only in a bubble.
//
// 50 ns are a tenth of a rendezvous between two goroutines. So this package looks only in a test binary: only
// synctest.Test makes bubbles, and it needs a *testing.T.
package bubble

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// ID is the number of a bubble. The zero value means outside of all bubbles.
type ID uint64

// Possible reports whether this process may have bubbles. It is set before main and never changes.
var Possible = isTest(os.Args, debug.ReadBuildInfo)

// isTest reports whether this is a test binary, by the path that go test gives the main package. A binary without build
// information counts as one.
func isTest(args []string, info func() (*debug.BuildInfo, bool)) bool {
	for _, a := range args {
		if strings.HasPrefix(a, "-test.") {
			return true
		}
	}
	bi, ok := info()
	return !ok || bi.Path == "" || strings.HasSuffix(bi.Path, ".test")
}

// Explored has methods that the overlay of coir test adds to a type of the runtime; it is nil elsewhere. They return
// the caller's bubble, which coir test hides from stack dumps, and tell it the fiber that the calling goroutine runs,
// for reports. waits is called when all goroutines wait.
var Explored, _ = any((*runtime.Func)(nil)).(interface {
	CoirBubble() uint64
	CoirFiber(name string, id uint64, waits func() (text string, holders []uint64))
})

// Simulates tells coir test that the calling test explores schedules by itself, as package sim does. Then coir test
// ends the schedule here, and runs the test as go test does. Elsewhere it does nothing.
//
//go:norace
func Simulates() {
	if x, ok := any((*runtime.Func)(nil)).(interface{ CoirSimulates() }); ok { // of its overlay
		x.CoirSimulates()
	}
}

// Here returns the bubble of the calling goroutine.
//
//go:norace
func Here() ID {
	if !Possible {
		return 0
	}
	return here()
}

//go:noinline
//go:norace
func here() ID {
	if Explored != nil {
		return ID(Explored.CoirBubble())
	}
	if now := time.Now(); now != now.Round(0) { // Round(0) strips the monotonic reading
		return 0
	}
	return read()
}

// Outside reports whether the calling goroutine is not in the given bubble.
//
//go:norace
func Outside(home ID) bool { return Possible && here() != home }

// read finds the number in "goroutine 17 [running, synctest bubble 3]:". There is none if the machine's clock is so
// wrong that time.Now never has a monotonic reading.
//
//go:norace
func read() ID {
	var buf [128]byte
	return parse(&buf, runtime.Stack(buf[:], false))
}

// parse uses no other package, because the race detector follows their code into goroutines whose creation is hidden
// from it.
//
//go:norace
func parse(buf *[128]byte, n int) (id ID) {
	const mark = "synctest bubble "
	for i := 0; i+len(mark) <= n && buf[i] != ']' && buf[i] != '{'; i++ { // then come labels, which may be any text
		j := 0
		for j < len(mark) && buf[i+j] == mark[j] {
			j++
		}
		if j < len(mark) {
			continue
		}
		for i += j; i < n && '0' <= buf[i] && buf[i] <= '9'; i++ {
			id = id*10 + ID(buf[i]-'0')
		}
		return id
	}
	return 0
}

// String returns a phrase for messages: "in synctest bubble 3", or "outside of all synctest bubbles" for 0.
func (id ID) String() string {
	if id == 0 {
		return "outside of all synctest bubbles"
	}
	return "in synctest bubble " + strconv.FormatUint(uint64(id), 10)
}
