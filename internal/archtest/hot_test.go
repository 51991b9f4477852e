package archtest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// hot lists the functions on the fast paths of a channel, of a select and of a yield, and what each of them may call. A
// function that is no longer inlined shows as a call that is not listed, and so does a call that is new. A shorter
// list, of what must be inlined, would not show a new call of a function that is too large to be inlined; and most
// calls here are of such functions, for cases that are rare.
//
// What Go's own functions do has a word, which is the same in each release: see hotWords. The second lock of a function
// is "another lock", and the second reading of a clock "another clock". Allocations that are made once and kept are
// listed. Calls of the runtime that grow a stack, mark a pointer or panic are not listed, nor is the slow path of an
// unlock. A call through an interface or a function value is "indirect". The type of the values is T.
//
// Before you list a call, make sure that the common case does not reach it; and if it does, measure.
var hot = map[string][]string{
	// A user's calls: Send, Recv and Select are inlined.
	"main.send":   {"coir.(*Chan[T]).send"},
	"main.recv":   {"coir.(*Chan[T]).recv"},
	"main.choose": {"coir.choose"},
	"main.yield":  {"coir.Yield"},

	// Operations of a fiber.
	"coir.(*Chan[T]).send": {
		"coir.(*Chan[T]).sendAny", "coir.(*Chan[T]).sendFailed", "coir.(*Chan[T]).sendGuest",
		"coir.(*Fiber).armTimer", "coir.(*Fiber).armedStill", "coir.(*Fiber).changeScope",
		"coir.(*Fiber).stopTimer", "coir.(*Fiber).yieldBudget", "coir.(*scope).linkMayBeDone", "indirect",
		"internal/channel.(*Chan[T]).Put", "internal/coro.G.abi0", "internal/sched.(*Task).BeginPark",
		"internal/sched.(*Worker).Ready", "internal/sched.(*Worker).settle", "internal/wait.SoloCell[T]", "lock",
	},
	"coir.(*Chan[T]).recv": {
		"coir.(*Chan[T]).recvAny", "coir.(*Chan[T]).recvFailed", "coir.(*Chan[T]).recvGuest",
		"coir.(*Fiber).armTimer", "coir.(*Fiber).armedStill", "coir.(*Fiber).changeScope",
		"coir.(*Fiber).stopTimer", "coir.(*Fiber).yieldBudget", "coir.(*scope).linkMayBeDone", "indirect",
		"internal/channel.(*Chan[T]).Take", "internal/coro.G.abi0", "internal/sched.(*Task).BeginPark",
		"internal/sched.(*Worker).Ready", "internal/sched.(*Worker).settle", "internal/wait.SoloCell[T]", "lock",
	},
	"coir.Yield": {
		"coir.(*scope).linkMayBeDone", "coir.yieldAny", "indirect", "internal/coro.G.abi0",
		"internal/sched.(*Task).BeginYield", "internal/sched.(*Worker).settle",
	},
	"coir.choose": {
		"coir.(*Case).done", "coir.(*Fiber).beginFew", "coir.(*Fiber).beginSelect", "coir.(*Fiber).endFew",
		"coir.(*Fiber).endSelect", "coir.(*Fiber).stepSelect", "coir.(*Fiber).tellEnding", "coir.chooseAny",
		"indirect", "internal/coro.G.abi0", "internal/hide.Pointer.abi0", "internal/sched.(*Task).BeginPark",
		"internal/sched.(*Worker).settle",
	},

	// Operations of a goroutine.
	"coir.(*Chan[T]).sendGuest": {
		"clock", "coir.(*Chan[T]).sendAny", "coir.(*core).resultErr", "coir.(*guest).enter",
		"coir.isPlainGoroutine", "indirect", "internal/channel.(*Chan[T]).Finish",
		"internal/channel.(*Chan[T]).Put", "internal/park.(*Guest).ArmParked", "internal/wait.SoloCell[T]", "lock",
		"native channel", "sync.(*Pool).Get", "sync.(*Pool).Put",
	},
	"coir.(*Chan[T]).recvGuest": {
		"clock", "coir.(*Chan[T]).recvAny", "coir.(*core).resultErr", "coir.(*guest).enter",
		"coir.isPlainGoroutine", "indirect", "internal/channel.(*Chan[T]).Finish",
		"internal/channel.(*Chan[T]).Take", "internal/park.(*Guest).ArmParked", "internal/wait.SoloCell[T]",
		"lock", "native channel", "sync.(*Pool).Get", "sync.(*Pool).Put",
	},
	"coir.isPlainGoroutine":            {"indirect", "internal/sched.Current"},
	"internal/sched.Current":           {"internal/coro.G.abi0", "internal/sched.current"},
	"internal/park.(*Guest).Ready":     {"internal/park.(*Guest).checkHome", "native channel"},
	"internal/park.(*Guest).ArmParked": {"internal/park.(*Guest).settleAnew"},

	// What runs under a channel's lock.
	"internal/channel.(*Chan[T]).Put": {
		"indirect", "internal/channel.(*Core).changed", "internal/channel.(*times).note",
		"internal/wait.(*Node).Claim",
	},
	"internal/channel.(*Chan[T]).Take": {
		"indirect", "internal/channel.(*Chan[T]).keep", "internal/channel.(*Core).changed",
		"internal/channel.(*times).note", "internal/wait.(*Node).Claim",
	},
	"internal/wait.(*Node).Claim":   {"internal/park.(*Parker).Claim"},
	"internal/park.(*Parker).Claim": {"indirect"},
	"internal/park.(*Parker).Wake":  {"indirect", "internal/park.(*Parker).Claim"},

	// A select.
	"coir.(*Fiber).beginFew": {
		"coir.(*Case).tryPlain", "coir.(*Fiber).waitFew", "coir.(*Fiber).yieldBudget", "coir.(*scope).doneSlow",
		"coir.notMade", "coir.pickFew", "internal/sched.(*Worker).Ready", "lock",
	},
	"coir.(*Fiber).waitFew": {
		"allocation", "coir.(*Case).tryPlain", "coir.(*Fiber).arm", "coir.(*Fiber).armedStill",
		"coir.(*Fiber).endFew", "coir.(*Fiber).yieldBudget", "coir.(*scratch).grown", "coir.(*scratch).newNode",
		"coir.pickFew", "indirect", "internal/channel.LockAll", "internal/channel.UnlockAll",
		"internal/sched.(*Worker).Ready",
	},
	"coir.(*Fiber).endFew": {
		"allocation", "indirect", "internal/channel.(*Core).WithdrawCase", "internal/wait.(*Kit).Put",
	},
	"coir.pickFew":          {"internal/wait.(*Kit).Turn", "math/bits.OnesCount"},
	"coir.(*Case).tryPlain": {"indirect"},
	"coir.(*Fiber).beginSelect": {
		"allocation", "coir.(*Fiber).arm", "coir.(*Fiber).armTimer", "coir.(*Fiber).armedStill",
		"coir.(*Fiber).endSelect", "coir.(*Fiber).leavePlace", "coir.(*Fiber).tellSelect",
		"coir.(*Fiber).yieldBudget", "coir.(*scope).doneSlow", "coir.(*scratch).publish", "coir.(*scratch).try",
		"internal/sched.(*Worker).Ready",
	},
	"coir.(*Fiber).endSelect": {
		"allocation", "coir.(*Fiber).stopTimer", "coir.(*Fiber).takePlace", "coir.(*Fiber).tellSelect",
		"coir.(*scratch).withdraw",
	},
	"coir.(*Fiber).arm": {"coir.(*Fiber).changeScope"},
	"coir.(*scratch).try": {
		"coir.(*Case).try", "coir.(*scratch).findReady", "coir.(*scratch).grown", "coir.(*scratch).lockAll",
		"coir.(*scratch).pick", "coir.aftermath.do", "internal/channel.UnlockAll", "lock",
	},
	"coir.(*scratch).findReady":  {"coir.(*Case).happened", "coir.notMade"},
	"coir.(*scratch).pick":       {"indirect", "internal/wait.(*Kit).Turn"},
	"coir.(*scratch).lockAll":    {"internal/channel.LockAll"},
	"internal/channel.LockAll":   {"internal/channel.heapSort", "lock"},
	"internal/channel.UnlockAll": {},
	"coir.(*scratch).publish": {
		"coir.(*scratch).newNode", "coir.(*scratch).subscribe", "coir.readySelectors", "indirect",
		"internal/channel.UnlockAll",
	},
	"coir.(*scratch).withdraw": {
		"indirect", "internal/channel.(*Core).WithdrawCase", "internal/wait.(*Kit).Put", "type assertion",
	},
	"coir.(*Case).try":  {"coir.(*takeCase).try", "indirect"},
	"coir.(*Case).done": {"coir.(*Timer).take", "coir.(*core).resultErr", "indirect", "type assertion"},
	"internal/channel.(*port[T]).Send": {
		"allocation", "internal/channel.(*Chan[T]).Displace", "internal/channel.(*Chan[T]).Put",
	},
	"internal/channel.(*port[T]).Recv": {"internal/channel.(*Chan[T]).Take"},
	"internal/channel.(*port[T]).Publish": {
		"internal/channel.(*Chan[T]).PublishRecv", "internal/channel.(*Chan[T]).PublishSend",
	},
	"internal/channel.(*port[T]).Finish":      {"internal/channel.(*Chan[T]).Finish"},
	"internal/channel.(*Chan[T]).PublishSend": {"internal/channel.(*Core).waits"},
	"internal/channel.(*Chan[T]).PublishRecv": {"internal/channel.(*Core).waits"},
	"internal/channel.(*Chan[T]).Finish":      {"internal/channel.(*Core).Withdraw"},
	"internal/channel.(*Core).WithdrawCase":   {"internal/wait.(*Queue).Withdraw", "lock"},
	"internal/wait.(*Queue).Withdraw":         {},

	// The switch, and the queues of a worker.
	"internal/sched.(*Task).BeginPark": {
		"indirect", "internal/coro.viaStandIn", "internal/sched.(*Worker).successor",
	},
	"internal/sched.(*Task).BeginYield": {
		"internal/coro.viaStandIn", "internal/sched.(*Worker).pick", "internal/sched.(*list).pop", "runtime.mcall",
	},
	"internal/sched.(*Worker).settle": {
		"internal/sched.(*Worker).putBack", "internal/sched.(*Worker).readyLate", "internal/sched.(*ring).push",
	},
	"internal/sched.(*Worker).successor": {"internal/sched.(*Worker).pick"},
	"internal/sched.(*Worker).pick":      {"indirect", "internal/sched.(*Worker).glance"},
	"internal/sched.(*Worker).Ready": {
		"indirect", "internal/sched.(*Worker).offer", "internal/sched.(*Worker).toRing",
	},
	"internal/sched.(*Worker).push": {
		"indirect", "internal/sched.(*Scheduler).inject", "internal/sched.(*Worker).offer",
		"internal/sched.(*Worker).toRing",
	},
	"internal/sched.(*Worker).toRing": {"internal/sched.(*Worker).overflow", "internal/sched.(*ring).push"},
	"internal/sched.(*Worker).offer":  {"internal/sched.(*Scheduler).wake"},
	"internal/sched.(*ring).push":     {},
}

// hotCalls returns the calls in a disassembly, by function: each once, in order.
func hotCalls(disassembly string) map[string][]string {
	calls := make(map[string][]string)
	function := ""
	for line := range strings.Lines(disassembly) {
		if m := hotText.FindStringSubmatch(line); m != nil {
			function = hotName(m[1])
			calls[function] = []string{}
		} else if m := hotCall.FindStringSubmatch(line); m != nil {
			callee := "indirect"
			if m[1] != "" {
				callee = hotName(m[1])
			}
			if (callee == "lock" || callee == "clock") && slices.Contains(calls[function], callee) {
				callee = "another " + callee
			}
			if !hotFree.MatchString(callee) && !slices.Contains(calls[function], callee) {
				calls[function] = append(calls[function], callee)
			}
		}
	}
	for _, c := range calls {
		slices.Sort(c)
	}
	return calls
}

var (
	hotText = regexp.MustCompile(`^TEXT (\S+)\(SB\)`)
	hotCall = regexp.MustCompile(`\sCALL\s+(?:(\S+)\(SB\)|\S+)`)
	hotFree = regexp.MustCompile(`^runtime\.(morestack|gcWriteBarrier|panic|goPanic|gopanic|wb|duff)|` +
		`^(internal/)?sync\.\(\*Mutex\)\.unlockSlow$`)

	// hotWords has words for what Go's own functions do, whose names differ from release to release.
	hotWords = []struct {
		word  string
		names *regexp.Regexp
	}{
		{"lock", regexp.MustCompile(`^(internal/)?sync\.\(\*Mutex\)\.lockSlow$`)},
		{"allocation", regexp.MustCompile(`^runtime\.(newobject|mallocgc|makeslice|growslice|convT|concatstring)\w*$`)},
		{"clock", regexp.MustCompile(`^time\.(Now|Since|Until|now|runtimeNano|runtimeNow)$|^runtime\.(nanotime|walltime)`)},
		{"native channel", regexp.MustCompile(`^runtime\.(chanrecv|chansend|selectnb|selectgo)\w*$`)},
		{"map", regexp.MustCompile(`^(runtime\.map|internal/runtime/maps\.)`)},
		{"type assertion", regexp.MustCompile(`^runtime\.(typeAssert|assertE2I)\w*$`)},
	}
)

// hotName shortens the name of a symbol, or returns the word for it.
func hotName(symbol string) string {
	const root = "github.com/coir-go/coir"
	symbol = strings.ReplaceAll(symbol, root+"/", "")
	symbol = strings.ReplaceAll(symbol, root+".", "coir.")
	symbol = strings.ReplaceAll(symbol, "go.shape.int", "T")
	for _, w := range hotWords {
		if w.names.MatchString(symbol) {
			return w.word
		}
	}
	return symbol
}

// TestHotFunctionsCallNothingNew checks that the functions on the fast paths call only listed functions, in a program
// outside the module: generic code is compiled there, and the bodies of other packages' functions may not be available.
func TestHotFunctionsCallNothingNew(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("elsewhere atomics may be calls")
	}
	program := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("testdata", "user")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dump, err := exec.Command("go", "tool", "objdump", "-s", `coir-go/coir|^main\.`, program).Output()
	if err != nil {
		t.Fatal(err)
	}
	calls := hotCalls(string(dump))
	for _, function := range slices.Sorted(maps.Keys(hot)) {
		got, found := calls[function]
		if !found {
			t.Errorf("%s is not in the program: was it renamed or inlined? Then change the list hot in "+
				"internal/archtest/hot_test.go", function)
			continue
		}
		var news []string
		for _, c := range got {
			if !slices.Contains(hot[function], c) {
				news = append(news, c)
			}
		}
		if len(news) > 0 {
			t.Errorf("%s calls what it did not call before, or what was inlined:\n\t%s\n"+
				"Run `go build -gcflags=-m` to see what is inlined. If the common case does not reach the call, its list in "+
				"internal/archtest/hot_test.go is now:\n\t%q: {\"%s\"},",
				function, strings.Join(news, "\n\t"), function, strings.Join(got, `", "`))
		}
		for _, c := range hot[function] {
			// Another compiler may inline more.
			if strings.HasPrefix(runtime.Version(), "go1.26") && runtime.GOARCH == "amd64" && !slices.Contains(got, c) {
				t.Errorf("%s no longer calls %s: take it off the list hot in internal/archtest/hot_test.go", function, c)
			}
		}
	}
}

// hotCalls reads direct calls and calls through a register, as amd64 and arm64 show them.
func TestHotCalls(t *testing.T) {
	got := hotCalls(`TEXT github.com/coir-go/coir.(*Chan[go.shape.int]).Send(SB) /somewhere/chan.go
  chan.go:1	0x1	e89801fcff	CALL sync/atomic.(*Uint64).Load(SB)
  chan.go:2	0x2	e89801fcff	CALL sync/atomic.(*Uint64).Load(SB)
  chan.go:3	0x3	e89801fcff	CALL runtime.newobject(SB)
  chan.go:3	0x3	e89801fcff	CALL runtime.gcWriteBarrier2(SB)
  chan.go:3	0x3	e89801fcff	CALL runtime.mallocgcSmallScanNoHeaderSC5(SB)
  chan.go:4	0x4	ffd2		CALL DX
  chan.go:5	0x5	e89801fcff	CALL internal/sync.(*Mutex).lockSlow(SB)
  chan.go:6	0x6	e89801fcff	CALL internal/sync.(*Mutex).unlockSlow(SB)
  chan.go:7	0x7	e89801fcff	CALL internal/sync.(*Mutex).lockSlow(SB)
  chan.go:8	0x8	e89801fcff	CALL time.Since(SB)
TEXT github.com/coir-go/coir/internal/sched.(*Task).Leave(SB) /somewhere/task.go
  task.go:1	0x1	97ffb5a4	CALL github.com/coir-go/coir/internal/wait.SoloCell[go.shape.int](SB)
  task.go:2	0x2	d63f0080	CALL (R4)
TEXT runtime.main(SB) /somewhere/proc.go
  proc.go:1	0x1	c3		RET
`)
	want := map[string][]string{
		"coir.(*Chan[T]).Send":         {"allocation", "another lock", "clock", "indirect", "lock", "sync/atomic.(*Uint64).Load"},
		"internal/sched.(*Task).Leave": {"indirect", "internal/wait.SoloCell[T]"},
		"runtime.main":                 {},
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
