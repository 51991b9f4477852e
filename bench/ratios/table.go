package main

import (
	"time"

	"github.com/coir-go/coir"
)

// A comparison is one row of the table: an operation of coir, and what a Go program does for the same purpose without
// coir.
//
// To add one, write a file with the two sides and add a row to table.
type comparison struct {
	name    string
	what    string  // coir's side
	against string  // the other side
	bound   float64 // the largest allowed ratio; 0 if there is no bound and the figure is only informative
	goal    float64 // the desired ratio
	held    float64 // if the bound is missed, the measured ratio: -hot uses it as the bound
	unit    string  // of the printed costs, for one operation
	ops     int     // operations in one turn of a round's loop; 0 means 1
	procs   int     // GOMAXPROCS for both sides; 0 leaves it as it is
	rounds  int     // rounds that count, unless -rounds says otherwise
	hot     bool    // measured by -hot
	allocs  float64 // allowed allocations of an operation on coir's side, for -hot

	// round is the minimum length of a round of one side, if the usual length is too short to include all costs.
	round time.Duration

	// Each side is made once, before the first round, and closed after the last.
	coir, other func() side
}

// A side is one of the two things compared. It has either a loop, which the
// harness calibrates and times, or a measure of its own.
type side struct {
	// loop performs the operation n times and returns when all are complete.
	loop func(n int)

	// measure does a fixed amount of work and returns the cost of one operation in the comparison's unit, and its
	// allocations.
	measure func() sample

	close func()
}

// A sample is the result of one round of one side.
type sample struct {
	Cost   float64 `json:"cost"`   // of one operation, in the comparison's unit
	Allocs float64 `json:"allocs"` // allocations of one operation
}

const (
	shortRounds = 30                    // of a comparison whose rounds last roundTime
	longRounds  = 12                    // of a comparison whose rounds last a second
	fewRounds   = 3                     // of a comparison that has hardly any noise
	roundTime   = 30 * time.Millisecond // of one side
)

// table lists the comparisons in the order in which they are run.
var table = []comparison{
	{
		name: "yield-limit", bound: 1.75, goal: 1.5, held: 2.2, unit: "ns", procs: 1, rounds: shortRounds, hot: true,
		what:    "a switch by Yield between two fibers on one worker",
		against: "one bare iter.Pull swap (half a next and yield round trip)",
		coir:    yieldCoir, other: yieldPull,
	},
	{
		name: "yield", bound: 1.1, goal: 0.9, unit: "ns", procs: 1, rounds: shortRounds,
		what:    "a switch by Yield between two fibers on one worker",
		against: "two goroutines under runtime.Gosched on one P",
		coir:    yieldCoir, other: yieldGosched,
	},
	{
		name: "spawn-join", bound: 0.7, goal: 0.45, held: 0.8, unit: "ns", rounds: shortRounds, hot: true, allocs: 1,
		what:    "in a fiber: a nursery, one empty child, joined",
		against: "go and sync.WaitGroup",
		coir:    spawnNursery, other: spawnWaitGroup,
	},
	{
		name: "spawn-join-wait", unit: "ns", rounds: shortRounds,
		what:    "in a fiber: one empty child of an open nursery, waited for",
		against: "go and sync.WaitGroup",
		coir:    spawnWait, other: spawnWaitGroup,
	},
	{
		name: "task", bound: 0.8, unit: "ns", rounds: shortRounds,
		what:    "in a fiber: an empty task of an open nursery, started and waited for",
		against: "go and a chan of one place for the result",
		coir:    taskCoir, other: taskChan,
	},
	{
		name: "spawn-join-errgroup", bound: 0.65, goal: 0.45, held: 0.75, unit: "ns", rounds: shortRounds, hot: true, allocs: 1,
		what:    "in a fiber: a nursery, one empty child, joined",
		against: "errgroup.Group, Go, Wait",
		coir:    spawnNursery, other: spawnErrgroup,
	},
	{
		name: "spawn-join-ants", bound: 0.6, goal: 0.4, unit: "ns", rounds: shortRounds,
		what:    "in a fiber: one empty child of an open nursery, waited for",
		against: "ants pool of GOMAXPROCS, Submit, sync.WaitGroup",
		coir:    spawnWait, other: spawnAnts,
	},
	{
		name: "spawn-join-pond", bound: 0.6, goal: 0.4, unit: "ns", rounds: shortRounds,
		what:    "in a fiber: one empty child of an open nursery, waited for",
		against: "pond pool of GOMAXPROCS, Submit, Task.Wait",
		coir:    spawnWait, other: spawnPond,
	},
	{
		name: "timer-arm-stop", bound: 0.35, goal: 0.2, unit: "ns", rounds: shortRounds, round: timerRound,
		what:    "arm a timer and stop it, a million outstanding",
		against: "time.AfterFunc and Stop, a million outstanding",
		coir:    armStopWheel, other: armStopAfterFunc,
	},
	{
		name: "timer-replace", unit: "ns", rounds: shortRounds, round: timerRound,
		what:    "stop the oldest of a million timers and arm a new one",
		against: "the same with Stop and time.AfterFunc",
		coir:    replaceWheel, other: replaceAfterFunc,
	},
	{
		name: "sleep-100k", bound: 1.2, goal: 1.0, unit: "ns", rounds: longRounds,
		what:    "processor time of a fiber that sleeps a random time to 1 s, 100,000 at once",
		against: "goroutines in time.Sleep, the same times",
		coir:    sleepFibers, other: sleepGoroutines,
	},
	{
		name: "parked-memory", bound: 1.2, goal: 1.13, unit: "B", rounds: fewRounds,
		what:    "bytes of a parked fiber, a million of them",
		against: "a goroutine parked on a channel",
		coir:    parkedIn("fiber"), other: parkedIn("goroutine"),
	},
	{
		name: "parked-memory-1k", unit: "B", rounds: fewRounds,
		what:    "bytes of a parked fiber with 1 KiB of locals, a million of them",
		against: "a goroutine with the same body",
		coir:    parkedIn("fiber-1k"), other: parkedIn("goroutine-1k"),
	},
	{
		name: "fork-join", bound: 0.9, goal: 0.7, held: 1.2, unit: "ns", ops: fibForks, rounds: shortRounds, hot: true, allocs: 5,
		what:    "a fork and join of fib, one half forked, one half in place",
		against: "goroutines and sync.WaitGroup, the same shape",
		coir:    forkFibers, other: forkGoroutines,
	},
	{
		name: "fork-join-wait", unit: "ns", ops: fibForks, rounds: shortRounds,
		what:    "a fork and join of fib in one open nursery, each child waited for",
		against: "goroutines and sync.WaitGroup, the same shape",
		coir:    forkWaits, other: forkGoroutines,
	},
	{
		name: "rendezvous", bound: 0.55, goal: 0.45, held: 0.62, unit: "ns", rounds: shortRounds, hot: true,
		what:    "a value from fiber to fiber, capacity 0",
		against: "unbuffered chan",
		coir:    fibersThrough(0, 1, 1), other: goroutinesThrough(0, 1, 1),
	},
	{
		name: "rendezvous-limit", bound: 3.2, goal: 2.5, held: 4.1, unit: "ns", procs: 1, rounds: shortRounds, hot: true,
		what:    "a value from fiber to fiber, capacity 0",
		against: "one bare iter.Pull swap",
		coir:    fibersThrough(0, 1, 1), other: yieldPull,
	},
	{
		name: "buffered-64", bound: 0.6, goal: 0.45, held: 0.77, unit: "ns", rounds: shortRounds, hot: true,
		what:    "a value from fiber to fiber, capacity 64",
		against: "chan of 64, one to one",
		coir:    fibersThrough(64, 1, 1), other: goroutinesThrough(64, 1, 1),
	},
	{
		name: "mpmc-4x4-128", bound: 0.75, goal: 0.55, unit: "ns", rounds: shortRounds, hot: true,
		what:    "a value from four fibers to four, capacity 128",
		against: "chan of 128, four to four",
		coir:    fibersThrough(128, 4, 4), other: goroutinesThrough(128, 4, 4),
	},
	{
		name: "pipeline-8", bound: 0.6, goal: 0.48, held: 0.67, unit: "ns", rounds: shortRounds, hot: true,
		what:    "a value through eight stages, a fiber each, capacity 0",
		against: "eight stages of unbuffered chan",
		coir:    pipelineFibers, other: pipelineGoroutines,
	},
	{
		name: "fan-in-1000", bound: 0.75, goal: 0.6, held: 0.8, unit: "ns", rounds: shortRounds, hot: true, round: crowdRound,
		what:    "a value from 1,000 fibers to one, capacity 0",
		against: "unbuffered chan",
		coir:    fibersThrough(0, 1000, 1), other: goroutinesThrough(0, 1000, 1),
	},
	{
		name: "select-2", bound: 0.65, goal: 0.5, unit: "ns", rounds: shortRounds, hot: true,
		what:    "Select over two channels of capacity 0, a sender each",
		against: "native select, unbuffered chan",
		coir:    fibersInto(2, 2, select2Coir), other: goroutinesInto(2, 2, select2Go),
	},
	{
		name: "select-8", bound: 0.68, goal: 0.5, unit: "ns", rounds: shortRounds, hot: true,
		what:    "Select over eight channels of capacity 0, a sender each",
		against: "native select, unbuffered chan",
		coir:    fibersInto(8, 8, select8Coir), other: goroutinesInto(8, 8, select8Go),
	},
	{
		name: "select-2-ready", unit: "ns", rounds: shortRounds,
		what:    "Select over two channels that are ready, and a send that refills",
		against: "native select, the same",
		coir:    fiberOver(2, ready2Coir), other: goroutineOver(2, ready2Go),
	},
	{
		name: "select-8-ready", unit: "ns", rounds: shortRounds,
		what:    "Select over eight channels that are ready, and a send that refills",
		against: "native select, the same",
		coir:    fiberOver(8, ready8Coir), other: goroutineOver(8, ready8Go),
	},
	{
		name: "select-priority", bound: 0.65, goal: 0.5, held: 0.7, unit: "ns", rounds: shortRounds, hot: true,
		what:    "SelectPriority over two channels of capacity 0, a sender each",
		against: "nested native selects, unbuffered chan",
		coir:    fibersInto(2, 2, priorityCoir), other: goroutinesInto(2, 2, priorityGo),
	},
	{
		name: "selector-1000", bound: 0.02, goal: 0.005, unit: "ns", rounds: shortRounds, round: crowdRound,
		what:    "an event of a Selector with 1,000 channels, one sender that goes round",
		against: "reflect.Select over 1,000, the same",
		coir:    fibersInto(1000, 1, selectorCoir), other: goroutinesInto(1000, 1, selectorGo),
	},
	{
		name: "selector-1000-busy", unit: "ns", rounds: shortRounds, round: crowdRound,
		what:    "an event of a Selector with 1,000 channels, a sender each",
		against: "reflect.Select over 1,000, the same",
		coir:    fibersInto(1000, 1000, selectorCoir), other: goroutinesInto(1000, 1000, selectorGo),
	},
	{
		name: "recv-timeout", bound: 0.25, goal: 0.2, unit: "ns", ops: pings, rounds: shortRounds, hot: true,
		what:    "RecvTimeout that waits for its value, in ping-pong",
		against: "select with time.NewTimer and Stop",
		coir:    fibersPing(timeoutCoir), other: goroutinesPing(timeoutGo),
	},
	{
		name: "recv-cancel", bound: 0.4, goal: 0.33, held: 0.47, unit: "ns", ops: pings, rounds: shortRounds, hot: true,
		what:    "Recv in a scope that can be cancelled, in ping-pong",
		against: "select with ctx.Done",
		coir:    fibersPing(cancelCoir), other: goroutinesPing(cancelGo),
	},
	{
		name: "unlimited-burst-chanqueue", bound: 0.4, goal: 0.2, unit: "ns", ops: burst, rounds: shortRounds,
		what:    "a value of a burst of 10,000 into an unbounded channel and out again",
		against: "chanqueue.ChanQueue",
		coir:    burstCoir, other: burstChanqueue,
	},
	{
		name: "unlimited-burst-chanx", bound: 0.4, goal: 0.2, unit: "ns", ops: burst, rounds: shortRounds,
		what:    "a value of a burst of 10,000 into an unbounded channel and out again",
		against: "chanx.UnboundedChan",
		coir:    burstCoir, other: burstChanx,
	},
	{
		name: "goroutines-both-ends", bound: 1.25, goal: 1.0, held: 1.5, unit: "ns", rounds: shortRounds, hot: true,
		what:    "a value from goroutine to goroutine through coir's channel, capacity 0",
		against: "unbuffered chan",
		coir:    goroutinesThroughCoir(0, 1, 1), other: goroutinesThrough(0, 1, 1),
	},
	{
		name: "native-computing", bound: 1.02, unit: "ns", rounds: longRounds,
		what:    "200 fibers that compute for 1 ms each",
		against: "goroutines that do the same",
		coir:    nativeFibers(native200x1ms, computes), other: nativeGoroutines(native200x1ms, computes),
	},
	{
		name: "native-100x5ms", bound: 2.0, goal: 1.2, unit: "ns", rounds: longRounds,
		what:    "100 fibers that block natively for 5 ms, undeclared",
		against: "goroutines that do the same",
		coir:    nativeFibers(native100x5ms, undeclared), other: nativeGoroutines(native100x5ms, undeclared),
	},
	{
		name: "native-1000x5ms", bound: 2.0, goal: 1.2, unit: "ns", rounds: longRounds,
		what:    "1,000 fibers that block natively for 5 ms, 20 times each, undeclared",
		against: "goroutines that do the same",
		coir:    nativeFibers(native1000x5ms, undeclared), other: nativeGoroutines(native1000x5ms, undeclared),
	},
	{
		name: "native-declared-1000x5ms", bound: 1.3, goal: 1.1, unit: "ns", rounds: longRounds,
		what:    "1,000 fibers that block natively for 5 ms, 20 times each, inside Blocking",
		against: "goroutines that do the same",
		coir:    nativeFibers(native1000x5ms, declared), other: nativeGoroutines(native1000x5ms, undeclared),
	},
	{
		name: "native-goroutine-1000x5ms", bound: 1.1, goal: 1, unit: "ns", rounds: longRounds,
		what:    "1000 children with WithGoroutine, each sleeps natively for 5 ms, 20 times",
		against: "goroutines and sync.WaitGroup",
		coir:    nativeFibers(native1000x5ms, undeclared, coir.WithGoroutine()),
		other:   nativeGoroutines(native1000x5ms, undeclared),
	},
	{
		name: "native-1000x1ms", bound: 2.5, goal: 1.2, unit: "ns", rounds: longRounds,
		what:    "1,000 fibers that block natively for 1 ms, 100 times each, undeclared",
		against: "goroutines that do the same",
		coir:    nativeFibers(native1000x1ms, undeclared), other: nativeGoroutines(native1000x1ms, undeclared),
	},
	{
		name: "native-declared-1000x1ms", bound: 1.5, goal: 1.2, unit: "ns", rounds: longRounds,
		what:    "1,000 fibers that block natively for 1 ms, 100 times each, inside Blocking",
		against: "goroutines that do the same",
		coir:    nativeFibers(native1000x1ms, declared), other: nativeGoroutines(native1000x1ms, undeclared),
	},
	{
		name: "wake-p50", unit: "µs", rounds: longRounds,
		what:    "the median delay of a wake by a busy task, all workers busy with tasks of 100 µs",
		against: "goroutines and chan, the same load",
		coir:    wakeFibers(fromTask, 0.5), other: wakeGoroutines(fromTask, 0.5),
	},
	{
		name: "wake-p99", bound: 1.0, goal: 0.5, unit: "µs", rounds: longRounds,
		what:    "the 99th percentile of the delay of a wake by a busy task, all workers busy with tasks of 100 µs",
		against: "goroutines and chan, the same load",
		coir:    wakeFibers(fromTask, 0.99), other: wakeGoroutines(fromTask, 0.99),
	},
	{
		name: "wake-p999", unit: "µs", rounds: longRounds,
		what:    "the 99.9th percentile of the delay of a wake by a busy task, all workers busy with tasks of 100 µs",
		against: "goroutines and chan, the same load",
		coir:    wakeFibers(fromTask, 0.999), other: wakeGoroutines(fromTask, 0.999),
	},
	{
		name: "wake-timer-p99", unit: "µs", rounds: longRounds,
		what:    "the 99th percentile of the delay of a wake by a fiber that sleeps, from the time it sleeps until",
		against: "goroutines, time.Sleep and chan, the same load",
		coir:    wakeFibers(fromTimer, 0.99), other: wakeGoroutines(fromTimer, 0.99),
	},
	{
		name: "wake-outside-p99", unit: "µs", rounds: longRounds,
		what:    "the 99th percentile of the delay of a wake by a goroutine, all workers busy with tasks of 100 µs",
		against: "goroutines and chan, the same load",
		coir:    wakeFibers(fromOutside, 0.99), other: wakeGoroutines(fromOutside, 0.99),
	},
	{
		name: "mutex", bound: 2, goal: 1.3, unit: "ns", rounds: shortRounds,
		what:    "locks.Mutex: lock and unlock by one fiber",
		against: "sync.Mutex",
		coir:    oneFiber(lockOurs), other: goroutinesDo(1, lockTheirs),
	},
	{
		name: "mutex-contended", bound: 0.6, goal: 0.4, unit: "ns", rounds: shortRounds,
		what:    "locks.Mutex: 100 fibers that yield while they hold it",
		against: "sync.Mutex and runtime.Gosched",
		coir:    fibersDo(100, lockAndYieldOurs), other: goroutinesDo(100, lockAndYieldTheirs),
	},
	{
		name: "mutex-100", goal: 2, unit: "ns", rounds: shortRounds,
		what:    "locks.Mutex: 100 fibers that do not yield",
		against: "sync.Mutex",
		coir:    fibersDo(100, lockOurs), other: goroutinesDo(100, lockTheirs),
	},
	{
		name: "rwmutex", bound: 2.5, goal: 1.5, unit: "ns", rounds: shortRounds,
		what:    "locks.RWMutex: a read lock and its unlock by one fiber",
		against: "sync.RWMutex",
		coir:    oneFiber(readOurs), other: goroutinesDo(1, readTheirs),
	},
	{
		name: "semaphore-uncontended", bound: 1.5, goal: 1, unit: "ns", rounds: shortRounds,
		what:    "locks.Semaphore: acquire and release by one fiber",
		against: "x/sync/semaphore",
		coir:    oneFiber(acquireOurs), other: goroutinesDo(1, acquireTheirs),
	},
	{
		name: "semaphore", bound: 0.65, goal: 0.5, unit: "ns", rounds: shortRounds,
		what:    "locks.Semaphore of 4: 20 fibers that yield while they hold a permit",
		against: "x/sync/semaphore and runtime.Gosched",
		coir:    fibersDo(20, acquireAndYieldOurs), other: goroutinesDo(20, acquireAndYieldTheirs),
	},
	{
		name: "pool", unit: "ns", rounds: shortRounds,
		what:    "coir.Pool of 8: Get and Put by one fiber",
		against: "chan of 8 that holds the free values, one goroutine",
		coir:    poolFibers(1, 8), other: freeList(1, 8),
	},
	{
		name: "pool-64", unit: "ns", rounds: shortRounds,
		what:    "coir.Pool of 64, the most whose borrowers are recorded: Get and Put by one fiber",
		against: "chan of 64 that holds the free values, one goroutine",
		coir:    poolFibers(1, 64), other: freeList(1, 64),
	},
	{
		name: "pool-65", unit: "ns", rounds: shortRounds,
		what:    "coir.Pool of 65, without a record of its borrowers: Get and Put by one fiber",
		against: "chan of 65 that holds the free values, one goroutine",
		coir:    poolFibers(1, 65), other: freeList(1, 65),
	},
	{
		name: "pool-goroutine", unit: "ns", rounds: shortRounds,
		what:    "coir.Pool of 8: Get and Put by one goroutine",
		against: "chan of 8 that holds the free values",
		coir:    poolGoroutine(8), other: freeList(1, 8),
	},
	{
		name: "pool-contended", unit: "ns", rounds: shortRounds,
		what:    "coir.Pool of 4: 20 fibers that yield while they have a value",
		against: "chan of 4 that holds the free values, and runtime.Gosched",
		coir:    poolFibers(20, 4), other: freeList(20, 4),
	},
	{
		name: "event", bound: 0.75, goal: 0.6, unit: "ns", rounds: shortRounds,
		what:    "coir.Event: set by one fiber while another waits",
		against: "close of a chan, made for it",
		coir:    eventOurs, other: eventTheirs,
	},
	{
		name: "cond", bound: 0.85, goal: 0.6, unit: "ns", rounds: shortRounds,
		what:    "coir.Cond: two fibers take turns",
		against: "sync.Cond",
		coir:    condOurs, other: condTheirs,
	},
	{
		name: "ticker", bound: 1, goal: 0.8, unit: "ns", rounds: longRounds,
		what:    "processor time of a tick of pace.Ticker, 200 of them, 2 ms each",
		against: "time.Ticker, the same periods",
		coir:    tickerFibers, other: tickerGoroutines,
	},
	{
		name: "limiter", bound: 1, goal: 0.8, unit: "ns", rounds: shortRounds,
		what:    "pace.Limiter.Wait in a fiber when there are tokens",
		against: "Limiter.Wait of golang.org/x/time/rate, in a context that can be cancelled",
		coir:    limiterFiber, other: limiterGoroutine,
	},
	{
		name: "limiter-try", unit: "ns", rounds: shortRounds,
		what:    "pace.Limiter.TryWaitN in a fiber when there are tokens",
		against: "Limiter.Allow of golang.org/x/time/rate",
		coir:    tryLimiter, other: tryRate,
	},
	{
		name: "broadcast-100", bound: 0.7, goal: 0.5, unit: "ns", rounds: shortRounds,
		what:    "pubsub.Broadcast: a value to 100 subscribers",
		against: "100 channels, one send after the other",
		coir:    broadcastOurs, other: broadcastTheirs,
	},
	{
		name: "ticket", bound: 0.35, held: 1.1, unit: "ns", rounds: shortRounds, hot: true, allocs: 1,
		what:    "a ticket opened, resolved by another fiber, waited for",
		against: "map[uint64]chan with ids 1, 2, 3, a mutex, a fresh chan",
		coir:    ticketFibers, other: ticketMap(number, false),
	},
	{
		name: "ticket-floor", unit: "ns", rounds: shortRounds,
		what:    "the id and the answer of a ticket through two channels, without a desk",
		against: "map[uint64]chan with ids 1, 2, 3, a mutex, a fresh chan",
		coir:    ticketChannels, other: ticketMap(number, false),
	},
	{
		name: "ticket-goroutine", bound: 0.8, held: 1.6, unit: "ns", rounds: shortRounds,
		what:    "a ticket opened, resolved by another goroutine, waited for",
		against: "map[uint64]chan with ids 1, 2, 3, a mutex, a fresh chan",
		coir:    ticketGoroutines, other: ticketMap(number, false),
	},
	{
		name: "stream-fused", bound: 1.5, goal: 1.2, unit: "ns", rounds: shortRounds,
		what:    "an int through stream.Map, Filter, Map and Reduce",
		against: "a loop that calls the same functions",
		coir:    streamFused, other: streamLoop,
	},
	{
		name: "stream-fused-inline", unit: "ns", rounds: shortRounds,
		what:    "an int through stream.Map, Filter, Map and Reduce",
		against: "a loop with the functions written into it, which the compiler inlines",
		coir:    streamFused, other: streamInline,
	},
	{
		name: "stream-fused-channels", bound: 0.05, goal: 0.03, unit: "ns", rounds: shortRounds,
		what:    "an int through stream.Map, Filter, Map and Reduce",
		against: "the same stages as goroutines with unbuffered channels",
		coir:    streamFused, other: streamChannels,
	},
	{
		name: "stream-fused-lo", unit: "ns", rounds: shortRounds,
		what:    "an int through stream.Map, Filter, Map and Reduce",
		against: "samber/lo, which makes a slice at each stage",
		coir:    streamFused, other: streamLo,
	},
	{
		name: "stream-fused-ro", unit: "ns", rounds: shortRounds,
		what:    "an int through stream.Map, Filter, Map and Reduce",
		against: "samber/ro",
		coir:    streamFused, other: streamRo,
	},
	{
		name: "stream-parallel", bound: 0.8, goal: 0.7, unit: "ns", rounds: shortRounds,
		what:    "stream.Parallel, eight at a time, a microsecond of work each",
		against: "eight workers, and a channel for each result, read in order",
		coir:    streamParallel, other: streamPool,
	},
	{
		name: "stream-batch", bound: 1.0, goal: 0.5, unit: "ns", rounds: shortRounds,
		what:    "stream.Batch of 100 elements or 10 ms",
		against: "a select over a channel of 100 and a timer",
		coir:    streamBatch, other: streamBatcher,
	},
	{
		name: "buffer-send", bound: 0.1, held: 0.2, unit: "ns", rounds: shortRounds,
		what:    "64 KiB from a pool through a channel to another fiber, which releases them",
		against: "a copy of them, in a slice from a sync.Pool, through a channel",
		coir:    bufferMoved, other: sliceSent(true),
	},
	{
		name: "buffer-send-slice", unit: "ns", rounds: shortRounds,
		what:    "64 KiB from a pool through a channel to another fiber, which releases them",
		against: "a slice from a sync.Pool through a channel, without a copy",
		coir:    bufferMoved, other: sliceSent(false),
	},
	{
		name: "buffer-get", bound: 1.2, unit: "ns", rounds: shortRounds,
		what:    "in a fiber: a buffer got from a pool, and released",
		against: "sync.Pool of []byte: Get and Put, which allocates",
		coir:    bufferGet(1), other: goroutinesDo(1, getSlices),
	},
	{
		name: "buffer-get-pointer", unit: "ns", rounds: shortRounds,
		what:    "in a fiber: a buffer got from a pool, and released",
		against: "sync.Pool of *[]byte: Get and Put",
		coir:    bufferGet(1), other: goroutinesDo(1, getPointers),
	},
	{
		name: "buffer-get-two", unit: "ns", rounds: shortRounds, procs: 2,
		what:    "two fibers, each gets a buffer from the same pool, and releases it",
		against: "sync.Pool of []byte: two goroutines",
		coir:    bufferGet(2), other: goroutinesDo(2, getSlices),
	},
	{
		name: "buffer-collect", unit: "us", rounds: fewRounds,
		what:    "processor time of a garbage collection with a million buffers of 1 KiB off the heap",
		against: "a million slices of 1 KiB",
		coir:    collectedIn("off"), other: collectedIn("slices"),
	},
	{
		name: "buffer-collect-heap", unit: "us", rounds: fewRounds,
		what:    "processor time of a garbage collection with a million buffers of 1 KiB in a region on the heap",
		against: "a million slices of 1 KiB",
		coir:    collectedIn("on"), other: collectedIn("slices"),
	},
	{
		name: "ticket-like", unit: "ns", rounds: shortRounds,
		what:    "a ticket opened, resolved by another fiber, waited for",
		against: "map[string]chan with random ids, a mutex, a fresh chan, and a select with ctx.Done",
		coir:    ticketFibers, other: ticketMap(secret, true),
	},
	{
		name: "ticket-like-goroutine", unit: "ns", rounds: shortRounds,
		what:    "a ticket opened, resolved by another goroutine, waited for",
		against: "map[string]chan with random ids, a mutex, a fresh chan, and a select with ctx.Done",
		coir:    ticketGoroutines, other: ticketMap(secret, true),
	},
	simRow("sim-pingpong", "sim.Run of a program: two fibers, 1,000 round trips, capacity 0", simulated, simPings),
	simRow("sim-pipeline", "sim.Run of a program: 100 values through eight stages, capacity 0", simulated, simPipeline),
	simRow("sim-select", "sim.Run of a program: 1,000 values from two senders, by Select", simulated, simSelects),
	simRow("sim-spawn", "sim.Run of a program: 1,000 nurseries of one child, one after the other", simulated, simSpawns),
	simRow("sim-crowd", "sim.Run of a program: 1,000 fibers at once, which send to one", simulated, simCrowd),
	simRow("sim-schedule", "a schedule of sim.Explore: three fibers, 15 operations", explored, simYields),
	simRow("sim-schedule-crowd", "a schedule of sim.Explore: 1,000 fibers at once, which send to one", explored, simCrowd),
	{
		name: "sim-run-small", bound: 20, goal: 5, unit: "ns", rounds: shortRounds,
		what:    "sim.Run of a program: three fibers, 15 operations",
		against: "the same on a runtime with one worker, made for it",
		coir:    simulated(simYields), other: onARuntimeOfItsOwn(simYields),
	},
}

// find returns the comparison with the name, or nil.
func find(name string) *comparison {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

// simRow compares a program in a simulation with the same program on a runtime.
func simRow(name, what string, in func(program) func() side, p program) comparison {
	return comparison{
		name: name, bound: 20, goal: 5, unit: "ns", procs: 1, rounds: shortRounds,
		what: what, against: "the same on a runtime with one worker",
		coir: in(p), other: onOneWorker(p),
	}
}
