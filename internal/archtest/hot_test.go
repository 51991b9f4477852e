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
// function that is no longer inlined shows as a call that is not listed. So does an allocation, which is a call of the
// runtime. Allocations that are made once and kept are listed.
//
// Calls of the runtime that grow a stack, mark a pointer or panic are not listed. A call through an interface or a
// function value is listed as "indirect". The type of the values is T.
//
// After an intended change, copy the new list that the test prints.
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
		"coir.(*Fiber).stopTimer", "coir.(*Fiber).yieldBudget",
		"coir.(*scope).linkMayBeDone", "indirect", "internal/channel.(*Chan[T]).Put", "internal/coro.G.abi0",
		"internal/sched.(*Task).BeginPark", "internal/sched.(*Worker).Ready", "internal/sched.(*Worker).settle",
		"internal/sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).unlockSlow", "internal/wait.SoloCell[T]",
	},
	"coir.(*Chan[T]).recv": {
		"coir.(*Chan[T]).recvAny", "coir.(*Chan[T]).recvFailed", "coir.(*Chan[T]).recvGuest",
		"coir.(*Fiber).armTimer", "coir.(*Fiber).armedStill", "coir.(*Fiber).changeScope",
		"coir.(*Fiber).stopTimer", "coir.(*Fiber).yieldBudget",
		"coir.(*scope).linkMayBeDone", "indirect", "internal/channel.(*Chan[T]).Take", "internal/coro.G.abi0",
		"internal/sched.(*Task).BeginPark", "internal/sched.(*Worker).Ready", "internal/sched.(*Worker).settle",
		"internal/sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).unlockSlow", "internal/wait.SoloCell[T]",
	},
	"coir.Yield": {
		"coir.(*scope).linkMayBeDone", "coir.yieldAny", "indirect", "internal/coro.G.abi0",
		"internal/sched.(*Task).BeginYield", "internal/sched.(*Worker).settle",
	},
	"coir.choose": {
		"coir.(*Case).done", "coir.(*Fiber).beginFew", "coir.(*Fiber).beginSelect", "coir.(*Fiber).endFew",
		"coir.(*Fiber).endSelect", "coir.(*Fiber).stepSelect", "coir.(*Fiber).tellEnding", "coir.chooseAny", "indirect",
		"internal/coro.G.abi0",
		"internal/hide.Pointer.abi0", "internal/sched.(*Task).BeginPark", "internal/sched.(*Worker).settle",
	},

	// Operations of a goroutine.
	"coir.(*Chan[T]).sendGuest": {
		"coir.(*Chan[T]).sendAny", "coir.(*core).resultErr", "coir.(*guest).enter", "time.Since",
		"coir.isPlainGoroutine", "indirect",
		"internal/channel.(*Chan[T]).Finish", "internal/channel.(*Chan[T]).Put", "internal/park.(*Guest).ArmParked",
		"internal/sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).unlockSlow", "internal/wait.SoloCell[T]",
		"runtime.chanrecv1", "sync.(*Pool).Get", "sync.(*Pool).Put",
	},
	"coir.(*Chan[T]).recvGuest": {
		"coir.(*Chan[T]).recvAny", "coir.(*core).resultErr", "coir.(*guest).enter", "time.Since",
		"coir.isPlainGoroutine", "indirect",
		"internal/channel.(*Chan[T]).Finish", "internal/channel.(*Chan[T]).Take", "internal/park.(*Guest).ArmParked",
		"internal/sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).unlockSlow", "internal/wait.SoloCell[T]",
		"runtime.chanrecv1", "sync.(*Pool).Get", "sync.(*Pool).Put",
	},
	"coir.isPlainGoroutine":            {"indirect", "internal/sched.Current"},
	"internal/sched.Current":           {"internal/coro.G.abi0", "internal/sched.current"},
	"internal/park.(*Guest).Ready":     {"internal/park.(*Guest).checkHome", "runtime.chansend1"},
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
		"coir.notMade", "coir.pickFew", "internal/sched.(*Worker).Ready", "internal/sync.(*Mutex).lockSlow",
		"internal/sync.(*Mutex).unlockSlow",
	},
	"coir.(*Fiber).waitFew": {
		"coir.(*Case).tryPlain", "coir.(*Fiber).arm", "coir.(*Fiber).armedStill", "coir.(*Fiber).endFew",
		"coir.(*Fiber).yieldBudget", "coir.(*scratch).grown", "coir.(*scratch).newNode", "coir.pickFew", "indirect",
		"internal/channel.LockAll", "internal/channel.UnlockAll", "internal/sched.(*Worker).Ready", "runtime.newobject",
	},
	"coir.(*Fiber).endFew": {
		"indirect", "internal/channel.(*Core).WithdrawCase", "internal/wait.(*Kit).Put", "runtime.newobject",
	},
	"coir.pickFew":          {"internal/wait.(*Kit).Turn", "math/bits.OnesCount"},
	"coir.(*Case).tryPlain": {"indirect"},
	"coir.(*Fiber).beginSelect": {
		"coir.(*Fiber).arm", "coir.(*Fiber).armTimer", "coir.(*Fiber).armedStill", "coir.(*Fiber).endSelect",
		"coir.(*Fiber).leavePlace", "coir.(*Fiber).tellSelect", "coir.(*Fiber).yieldBudget", "coir.(*scope).doneSlow",
		"coir.(*scratch).publish", "coir.(*scratch).try", "internal/sched.(*Worker).Ready", "runtime.newobject",
	},
	"coir.(*Fiber).endSelect": {
		"coir.(*Fiber).stopTimer", "coir.(*Fiber).takePlace", "coir.(*Fiber).tellSelect", "coir.(*scratch).withdraw",
		"runtime.newobject",
	},
	"coir.(*Fiber).arm": {"coir.(*Fiber).changeScope"},
	"coir.(*scratch).try": {
		"coir.(*Case).try", "coir.(*scratch).findReady", "coir.(*scratch).grown", "coir.(*scratch).lockAll",
		"coir.(*scratch).pick", "coir.aftermath.do", "internal/channel.UnlockAll", "internal/sync.(*Mutex).lockSlow",
		"internal/sync.(*Mutex).unlockSlow",
	},
	"coir.(*scratch).findReady":  {"coir.(*Case).happened", "coir.notMade"},
	"coir.(*scratch).pick":       {"indirect", "internal/wait.(*Kit).Turn"},
	"coir.(*scratch).lockAll":    {"internal/channel.LockAll"},
	"internal/channel.LockAll":   {"internal/channel.heapSort", "internal/sync.(*Mutex).lockSlow"},
	"internal/channel.UnlockAll": {"internal/sync.(*Mutex).unlockSlow"},
	"coir.(*scratch).publish": {
		"coir.(*scratch).newNode", "coir.(*scratch).subscribe", "coir.readySelectors", "indirect",
		"internal/channel.UnlockAll",
	},
	"coir.(*scratch).withdraw": {
		"indirect", "internal/channel.(*Core).WithdrawCase", "internal/wait.(*Kit).Put", "runtime.typeAssert",
	},
	"coir.(*Case).try":  {"coir.(*takeCase).try", "indirect"},
	"coir.(*Case).done": {"coir.(*Timer).take", "coir.(*core).resultErr", "indirect", "runtime.typeAssert"},
	"internal/channel.(*port[T]).Send": {
		"internal/channel.(*Chan[T]).Displace", "internal/channel.(*Chan[T]).Put", "runtime.newobject",
	},
	"internal/channel.(*port[T]).Recv": {"internal/channel.(*Chan[T]).Take"},
	"internal/channel.(*port[T]).Publish": {
		"internal/channel.(*Chan[T]).PublishRecv", "internal/channel.(*Chan[T]).PublishSend",
	},
	"internal/channel.(*port[T]).Finish":      {"internal/channel.(*Chan[T]).Finish"},
	"internal/channel.(*Chan[T]).PublishSend": {"internal/channel.(*Core).waits"},
	"internal/channel.(*Chan[T]).PublishRecv": {"internal/channel.(*Core).waits"},
	"internal/channel.(*Chan[T]).Finish":      {"internal/channel.(*Core).Withdraw"},
	"internal/channel.(*Core).WithdrawCase": {
		"internal/sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).unlockSlow", "internal/wait.(*Queue).Withdraw",
	},
	"internal/wait.(*Queue).Withdraw": {},

	// The switch, and the queues of a worker.
	"internal/sched.(*Task).BeginPark": {"indirect", "internal/coro.viaStandIn", "internal/sched.(*Worker).successor"},
	"internal/sched.(*Task).BeginYield": {
		"internal/coro.viaStandIn", "internal/sched.(*Worker).pick", "internal/sched.(*list).pop", "runtime.mcall",
	},
	"internal/sched.(*Worker).settle": {
		"internal/sched.(*Worker).putBack", "internal/sched.(*Worker).readyLate", "internal/sched.(*ring).push",
	},
	"internal/sched.(*Worker).successor": {"internal/sched.(*Worker).pick"},
	"internal/sched.(*Worker).pick":      {"indirect", "internal/sched.(*Worker).glance"},
	"internal/sched.(*Worker).Ready":     {"indirect", "internal/sched.(*Worker).offer", "internal/sched.(*Worker).toRing"},
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
	// From Go 1.27 on there is a function for each size of a small object.
	hotAlloc = regexp.MustCompile(`^runtime\.mallocgc\w+$`)
	hotFree  = regexp.MustCompile(`^runtime\.(morestack|gcWriteBarrier|panic|goPanic|gopanic|wb|duff)`)
)

// hotName shortens the name of a symbol.
func hotName(symbol string) string {
	const root = "github.com/coir-go/coir"
	symbol = strings.ReplaceAll(symbol, root+"/", "")
	symbol = strings.ReplaceAll(symbol, root+".", "coir.")
	symbol = strings.ReplaceAll(symbol, "go.shape.int", "T")
	return hotAlloc.ReplaceAllString(symbol, "runtime.newobject")
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
				"Run `go build -gcflags=-m` to see what is inlined. If it should be so, its list in "+
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
TEXT github.com/coir-go/coir/internal/sched.(*Task).Leave(SB) /somewhere/task.go
  task.go:1	0x1	97ffb5a4	CALL github.com/coir-go/coir/internal/wait.SoloCell[go.shape.int](SB)
  task.go:2	0x2	d63f0080	CALL (R4)
TEXT runtime.main(SB) /somewhere/proc.go
  proc.go:1	0x1	c3		RET
`)
	want := map[string][]string{
		"coir.(*Chan[T]).Send":         {"indirect", "runtime.newobject", "sync/atomic.(*Uint64).Load"},
		"internal/sched.(*Task).Leave": {"indirect", "internal/wait.SoloCell[T]"},
		"runtime.main":                 {},
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
