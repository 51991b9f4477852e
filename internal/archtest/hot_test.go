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

// hot lists the functions on the short paths of a channel, and what each of them may call. A function that was inlined
// and is not any more shows as a call that is not listed. So does an allocation, which is a call of the runtime.
//
// Calls of the runtime that grow a stack, mark a pointer or panic are not listed. A call through an interface or a
// function value is listed as "indirect". The type of the values is T.
//
// After a change on purpose, the test prints the new list of a function.
var hot = map[string][]string{
	"coir.(*Chan[T]).Send": {
		"coir.(*Chan[T]).beginSend", "coir.(*Chan[T]).endSend", "coir.(*Chan[T]).sendSlow", "coir.(*Fiber).step",
		"coir.(*core).opErr", "coir.ownFiber", "indirect", "internal/sched.(*Task).Leave",
		"internal/sched.(*Worker).settle",
	},
	"coir.(*Chan[T]).Recv": {
		"coir.(*Chan[T]).beginRecv", "coir.(*Chan[T]).endRecv", "coir.(*Chan[T]).recvSlow", "coir.(*Fiber).step",
		"coir.(*core).opErr", "coir.ownFiber", "indirect", "internal/sched.(*Task).Leave",
		"internal/sched.(*Worker).settle",
	},
	"coir.(*Chan[T]).beginSend": {
		"coir.(*Chan[T]).endSend", "coir.(*Chan[T]).overrun", "coir.(*Chan[T]).publishSend", "coir.(*Chan[T]).put",
		"coir.(*Fiber).arm", "coir.(*Fiber).armTimer", "coir.(*Fiber).spent", "coir.(*Fiber).went",
		"coir.(*core).countFailed", "coir.(*core).passed", "coir.(*scope).doneSlow", "indirect",
		"internal/park.(*Parker).Disarm", "internal/sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).unlockSlow",
		"internal/wait.Peek[T]", "runtime.ifaceeq",
	},
	"coir.(*Chan[T]).beginRecv": {
		"coir.(*Chan[T]).endRecv", "coir.(*Chan[T]).publishRecv", "coir.(*Chan[T]).take", "coir.(*Fiber).arm",
		"coir.(*Fiber).armTimer", "coir.(*Fiber).went", "coir.(*core).countFailed", "coir.(*core).passed",
		"coir.(*scope).doneSlow", "indirect", "internal/park.(*Parker).Disarm", "internal/sync.(*Mutex).lockSlow",
		"internal/sync.(*Mutex).unlockSlow", "internal/wait.Peek[T]", "runtime.ifaceeq",
	},
	"coir.(*Chan[T]).put": {
		"coir.(*chanTimes).note", "coir.(*watchers).tell", "indirect", "internal/wait.(*Node).Claim",
	},
	"coir.(*Chan[T]).take": {
		"coir.(*chanTimes).note", "coir.(*watchers).tell", "indirect", "internal/wait.(*Node).Claim",
	},
	"coir.(*Chan[T]).publishSend":  {"coir.(*watchers).tell", "indirect"},
	"coir.(*Chan[T]).publishRecv":  {"coir.(*watchers).tell", "indirect"},
	"coir.(*Chan[T]).endSend":      {"coir.(*Chan[T]).leave", "indirect", "internal/wait.Peek[T]", "runtime.ifaceeq"},
	"coir.(*Chan[T]).endRecv":      {"coir.(*Chan[T]).leave", "indirect", "internal/wait.Peek[T]", "runtime.ifaceeq"},
	"coir.(*core).passed":          {"coir.(*Fiber).went", "indirect", "internal/sync.(*Mutex).unlockSlow"},
	"coir.ownFiber":                {"internal/coro.G.abi0"},
	"coir.(*Fiber).step":           {"coir.(*contextList).look", "indirect", "internal/sched.(*Task).Yield"},
	"coir.(*Fiber).arm":            {"coir.(*Fiber).waitUnder", "internal/park.(*Parker).Arm"},
	"internal/sched.(*Task).Leave": {"indirect", "internal/coro.viaStandIn", "internal/sched.(*Worker).successor"},
	"internal/sched.(*Worker).settle": {
		"internal/park.(*Parker).Commit", "internal/sched.(*Task).Ready", "internal/sched.(*Worker).putBack",
	},
	"internal/sched.(*Worker).pick": {"indirect", "internal/sched.(*list).pop"},
	"internal/sched.(*Worker).push": {
		"indirect", "internal/sched.(*Scheduler).inject", "internal/sched.(*Worker).offer",
		"internal/sched.(*Worker).toRing",
	},
	"internal/sched.(*Task).Ready": {
		"indirect", "internal/sched.(*Scheduler).inject", "internal/sched.(*Worker).push",
	},
	"internal/sched.(*Task).Yield": {
		"indirect", "internal/coro.viaStandIn", "internal/sched.(*Worker).pick", "internal/sched.(*Worker).settle",
		"internal/sched.(*list).pop", "runtime.mcall",
	},
	"internal/wait.(*Node).Claim":    {"internal/park.(*Parker).Claim"},
	"coir.Yield":                     {"coir.yieldSlow", "internal/coro.G.abi0", "internal/sched.(*Task).Yield"},
	"internal/park.(*Parker).Arm":    {"sync/atomic.(*Uint64).Load", "sync/atomic.(*Uint64).Store"},
	"internal/park.(*Parker).Commit": {"sync/atomic.(*Uint64).CompareAndSwap", "sync/atomic.(*Uint64).Load"},
	"internal/park.(*Parker).Claim": {
		"indirect", "sync/atomic.(*Uint64).CompareAndSwap", "sync/atomic.(*Uint64).Load",
	},
	"internal/park.(*Parker).Wake": {"indirect", "internal/park.(*Parker).Claim"},
}

// hotCalls are the calls that a disassembly shows, by function: each once, in order.
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
	hotFree = regexp.MustCompile(`^runtime\.(morestack|gcWriteBarrier|panic|goPanic|gopanic|wb|duff)`)
)

// hotName shortens the name of a symbol.
func hotName(symbol string) string {
	const root = "github.com/coir-go/coir"
	symbol = strings.ReplaceAll(symbol, root+"/", "")
	symbol = strings.ReplaceAll(symbol, root+".", "coir.")
	return strings.ReplaceAll(symbol, "go.shape.int", "T")
}

// The functions on the short paths call what they are meant to call, in a program outside the module: generic code is
// compiled there, and the bodies of other packages' functions may not be at hand.
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
	dump, err := exec.Command("go", "tool", "objdump", "-s", "coir-go/coir", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	calls := hotCalls(string(dump))
	for _, function := range slices.Sorted(maps.Keys(hot)) {
		got, found := calls[function]
		if !found {
			t.Errorf("%s is not in the program: was it renamed or inlined?", function)
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
				"If it should, its list is now:\n\t%q: {\"%s\"},",
				function, strings.Join(news, "\n\t"), function, strings.Join(got, `", "`))
		}
		for _, c := range hot[function] {
			// Another compiler may inline more.
			if strings.HasPrefix(runtime.Version(), "go1.26") && runtime.GOARCH == "amd64" && !slices.Contains(got, c) {
				t.Errorf("%s no longer calls %s: take it off the list", function, c)
			}
		}
	}
}

// What is read out of a disassembly: one call each, direct and through a register, as amd64 and arm64 show them.
func TestHotCalls(t *testing.T) {
	got := hotCalls(`TEXT github.com/coir-go/coir.(*Chan[go.shape.int]).Send(SB) /somewhere/chan.go
  chan.go:1	0x1	e89801fcff	CALL sync/atomic.(*Uint64).Load(SB)
  chan.go:2	0x2	e89801fcff	CALL sync/atomic.(*Uint64).Load(SB)
  chan.go:3	0x3	e89801fcff	CALL runtime.newobject(SB)
  chan.go:3	0x3	e89801fcff	CALL runtime.gcWriteBarrier2(SB)
  chan.go:4	0x4	ffd2		CALL DX
TEXT github.com/coir-go/coir/internal/sched.(*Task).Leave(SB) /somewhere/task.go
  task.go:1	0x1	97ffb5a4	CALL github.com/coir-go/coir/internal/wait.Peek[go.shape.int](SB)
  task.go:2	0x2	d63f0080	CALL (R4)
TEXT runtime.main(SB) /somewhere/proc.go
  proc.go:1	0x1	c3		RET
`)
	want := map[string][]string{
		"coir.(*Chan[T]).Send":         {"indirect", "runtime.newobject", "sync/atomic.(*Uint64).Load"},
		"internal/sched.(*Task).Leave": {"indirect", "internal/wait.Peek[T]"},
		"runtime.main":                 {},
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
