// Package bubble finds out in which bubble of testing/synctest the calling goroutine runs.
//
// A goroutine belongs to the bubble in which it was started. So do the channels and timers that it makes, and a
// sync.Cond does not wake goroutines of another bubble. Using such an object from another bubble is not a panic but a
// fatal error, which ends the process. So the objects that coir keeps between two calls (a runtime with its workers, a
// clock with its Go timer), and those on which it blocks goroutines (guests), must know their bubble.
//
// The standard library has no public function for this, and the linker forbids the use of its private one. Two
// documented or visible effects remain:
//
//   - time.Now has no monotonic reading in a bubble. Reading the clock takes some 50 ns, and shows that there is a
//     bubble, but not which one.
//   - The first line of a stack dump has the number of the bubble, which is never used twice. A dump takes
//     microseconds, and is made only in a bubble.
//
// 50 ns is a tenth of a rendezvous between two goroutines. So this package checks only in a test binary: only
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

// ID is the number of a bubble. The zero value means outside all bubbles.
type ID uint64

// Possible reports whether this process may have bubbles. It is set before main and never changes.
var Possible = isTest(os.Args, debug.ReadBuildInfo)

// isTest reports whether this is a test binary, by its arguments or by the path that go test gives the main package. A
// binary without build information counts as one.
func isTest(args []string, info func() (*debug.BuildInfo, bool)) bool {
	for _, a := range args {
		if strings.HasPrefix(a, "-test.") {
			return true
		}
	}
	bi, ok := info()
	return !ok || bi.Path == "" || strings.HasSuffix(bi.Path, ".test")
}

// Explored has the methods that the overlay of coir test adds to a type of the runtime; it is nil elsewhere. CoirBubble
// returns the caller's bubble, which coir test hides from stack dumps. CoirFiber names the fiber that the calling
// goroutine runs, for reports; coir test calls waits when all goroutines wait.
var Explored, _ = any((*runtime.Func)(nil)).(interface {
	CoirBubble() uint64
	CoirFiber(name string, id uint64, waits func() (text string, holders []uint64))
})

// Simulates tells coir test that the calling test explores schedules by itself, as package sim does. Then coir test
// ends the schedule here, and runs the test as go test does. Elsewhere it does nothing.
//
//go:norace
func Simulates() {
	if x, ok := any((*runtime.Func)(nil)).(interface{ CoirSimulates() }); ok { // a method that the overlay adds
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

// parse uses no other package, because the race detector would see the code of another package in goroutines whose
// start is hidden from it.
//
//go:norace
func parse(buf *[128]byte, n int) (id ID) {
	const mark = "synctest bubble "
	for i := 0; i+len(mark) <= n && buf[i] != ']' && buf[i] != '{'; i++ { // labels follow, which may be any text
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
