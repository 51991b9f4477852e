package sched

// The tests check what a worker takes next, and what a thief takes from it. The workers do not run: only their queues
// are used.

import (
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/coir-go/coir/internal/xatomic"
)

// still returns a scheduler whose workers do not run, and that starts none.
func still(t testing.TB, workers int) (*Scheduler, []*Worker) {
	s := New(Config{Workers: workers, MaxWorkers: workers, Thunk: jobOf})
	t.Cleanup(s.monitor.stop) // the test may arm it, and it would start workers that run
	ws := make([]*Worker, workers)
	for i := range ws {
		ws[i] = &Worker{s: s, rand: uint32(i), every: globalEvery}
		s.add(ws[i])
		s.active.Add(1)
		s.enlist(ws[i])
	}
	return s, ws
}

// numbered returns a function that numbers tasks.
func numbered(ts []*Task) func(*Task) int {
	return func(t *Task) int { return slices.Index(ts, t) }
}

// The newest task runs next, and the others in order. After three in a row from the run-next place the ring's head gets
// its turn.
//
// Spec: SC-07 (the order in which a worker looks for work)
// Spec: SC-11 (run-next is served three times in a row at most)
func TestRunNextHasACap(t *testing.T) {
	_, ws := still(t, 1)
	w := ws[0]
	ts := tasks(30)
	number := numbered(ts)
	w.putBack(ts[0])
	w.push(ts[1])
	var got []int
	for i := 2; i < 10; i++ { // each task that runs readies another, like two that hand over to each other
		got = append(got, number(w.pick()))
		w.push(ts[i])
	}
	if !slices.Equal(got[:4], []int{1, 2, 3, 0}) {
		t.Fatalf("ran %v: the one that waited in the ring should have had its turn after three", got)
	}
	for w.pick() != nil {
	}
}

// A joining task first runs the ring's newest task if that is in its group, or is the task that it waits for. All other
// tasks are taken from the head.
//
// Spec: SC-07 (the order in which a worker looks for work)
func TestJoinRunsTheNewest(t *testing.T) {
	s, ws := still(t, 1)
	w := ws[0]
	ts := tasks(6)
	number := numbered(ts)
	var group, another byte
	s.group = func(t *Task) unsafe.Pointer {
		if t == ts[2] {
			return unsafe.Pointer(&another)
		}
		return unsafe.Pointer(&group)
	}
	for _, task := range ts[:5] {
		w.putBack(task)
	}
	got := []int{
		number(w.pickFor(nil, unsafe.Pointer(&group))), // 4
		number(w.pickFor(ts[3], nil)),
		number(w.pickFor(ts[0], nil)),                  // not the newest task, but the head
		number(w.pickFor(nil, unsafe.Pointer(&group))), // the newest is in another group
		number(w.pickFor(nil, nil)),
	}
	if !slices.Equal(got, []int{4, 3, 0, 1, 2}) {
		t.Fatalf("ran %v", got)
	}
	w.putBack(ts[0])
	w.push(ts[5])
	if i := number(w.pickFor(ts[0], nil)); i != 5 {
		t.Fatalf("ran %d: run-next comes first", i)
	}
	w.pick()
}

// However many tasks join and find their own child, the ring's oldest task gets its turn.
func TestJoinsDoNotStarve(t *testing.T) {
	_, ws := still(t, 1)
	w := ws[0]
	ts := tasks(ageEvery + 2)
	w.putBack(ts[0])
	for _, task := range ts[1:] {
		w.putBack(task)
		if w.pickFor(task, nil) == ts[0] {
			return
		}
	}
	t.Fatalf("the oldest has not run in %d joins", ageEvery+1)
}

// Spec: SC-13 (every 61st pick is global)
func TestGlobalHasItsTurn(t *testing.T) {
	s, ws := still(t, 1)
	w := ws[0]
	local := tasks(200)
	for _, task := range local {
		w.putBack(task)
	}
	outside := queued(1)
	s.global.push(outside...)
	for i := 1; ; i++ {
		if w.pick() == outside[0] {
			if i != globalEvery {
				t.Fatalf("pick %d, want %d", i, globalEvery)
			}
			return
		}
		if i > globalEvery {
			t.Fatal("not looked at")
		}
	}
}

// A push to a full ring moves the older half of the ring and the pushed task to the global queue. No task is lost.
//
// Spec: SC-05 (a full local queue spills half, and loses nothing)
// Spec: SC-06 (the global queue has no bound)
func TestOverflowLosesNothing(t *testing.T) {
	s, ws := still(t, 1)
	w := ws[0]
	ts := tasks(3*ringSize + 7)
	for _, task := range ts[:ringSize] {
		w.putBack(task)
	}
	if s.stats.overflows.Load() != 0 || s.global.n.Load() != 0 {
		t.Fatal("the ring overflowed before it was full")
	}
	w.putBack(ts[ringSize])
	if kept, spilled := w.ring.len(), s.global.n.Load(); kept != ringSize/2 || spilled != ringSize/2+1 {
		t.Fatalf("the ring kept %d and spilled %d, want %d and %d", kept, spilled, ringSize/2, ringSize/2+1)
	}
	for _, task := range ts[ringSize+1:] {
		w.putBack(task)
	}
	if w.ring.len() > ringSize {
		t.Fatal("the ring holds more than it can")
	}
	global := drainList(&s.global)
	if got := global[:ringSize/2+1]; !slices.Equal(got, append(slices.Clone(ts[:ringSize/2]), ts[ringSize])) {
		t.Error("what spilled first is not the older half of the ring and the task that was pushed")
	}
	seen := map[*Task]bool{}
	for _, out := range [][]*Task{drainRing(&w.ring), global} {
		for _, task := range out {
			if seen[task] {
				t.Fatal("a task came out twice")
			}
			seen[task] = true
		}
	}
	if len(seen) != len(ts) {
		t.Fatalf("%d of %d came out", len(seen), len(ts))
	}
}

// Spec: SC-12 (a run-next slot can be stolen)
// Spec: SC-15 (a thief takes half)
func TestThiefTakesHalfThenRunNext(t *testing.T) {
	s, ws := still(t, 2)
	thief, victim := ws[0], ws[1]
	thief.searching = true // the bound on searchers does not keep it from looking
	ts := tasks(11)
	for _, task := range ts[:10] {
		victim.putBack(task)
	}
	victim.push(ts[10])
	if got := thief.steal(); got != ts[0] {
		t.Fatal("not the oldest")
	}
	if got := drainRing(&thief.ring); !slices.Equal(got, ts[1:5]) {
		t.Fatalf("carried %d off, want 4 beside the one to run", len(got))
	}
	if victim.ring.len() != 5 {
		t.Fatalf("left %d", victim.ring.len())
	}
	drainRing(&victim.ring)
	if got := thief.steal(); got != ts[10] {
		t.Fatal("what was to run next was not stolen from a worker with an empty ring")
	}
	if thief.steal() != nil {
		t.Fatal("stole from empty queues")
	}
	if s.stats.stolen.Load() != 6 {
		t.Fatalf("counted %d", s.stats.stolen.Load())
	}
}

// A worker that has a request does not use its own queues until the base has served it. The tasks go where other
// workers find them.
//
// Spec: SC-38 (a retiring worker hands its queue over)
// Spec: SC-39 (retirement loses no fiber)
func TestDrainHandsEverythingOver(t *testing.T) {
	s, ws := still(t, 1)
	w := ws[0]
	ts := tasks(5)
	for _, task := range ts {
		w.push(task)
	}
	w.state.Store(held)
	if w.pick() != nil {
		t.Fatal("a held worker picked")
	}
	w.drain()
	if w.ring.len() != 0 || !w.next.empty() {
		t.Fatal("something was kept")
	}
	if got := drainList(&s.global); len(got) != len(ts) {
		t.Fatalf("handed over %d of %d", len(got), len(ts))
	}
}

// Numbers are taken in batches, and none is returned twice.
//
// Spec: FB-08 (a fiber id is never reused)
func TestIDsAreUnique(t *testing.T) {
	_, ws := still(t, 2)
	seen := map[uint64]bool{}
	for i := range 5 * idBatch {
		var w *Worker
		if i%3 > 0 {
			w = ws[i%3-1]
		}
		id := NewTaskID(w)
		if id == 0 || seen[id] {
			t.Fatalf("%d twice", id)
		}
		seen[id] = true
	}
}

// When GOMAXPROCS shrinks, surplus workers lose their places and hand over their queues, and surplus idle workers
// leave. When it grows, there is room for more workers. A scheduler with a fixed number of workers keeps it.
//
// Spec: SC-01 (workers are goroutines, GOMAXPROCS of them)
// Spec: SC-38 (a retiring worker hands its queue over)
func TestFollow(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	s, ws := still(t, 4)
	s.max = 8
	s.follows = true
	k := tasks(2)
	for _, w := range ws {
		w.sema = xatomic.NewSema()
	}
	ws[0].toRing(k[0])
	ws[1].toRing(k[1])
	s.mu.Lock()
	for _, w := range []*Worker{ws[3], ws[2]} {
		s.discharge(w, idle)
		w.announce()
	}
	s.mu.Unlock()

	runtime.GOMAXPROCS(1)
	s.follow()
	if n := s.active.Load(); n != 1 {
		t.Errorf("%d workers are active", n)
	}
	if ws[0].state.Load() != held || ws[1].state.Load() != running || ws[0].hasWork() || s.global.n.Load() != 1 {
		t.Error("a worker above the number keeps its place, or its queue")
	}
	if s.idlers != 1 || !ws[2].leaving || ws[3].leaving {
		t.Error("idle workers above the number do not leave")
	}
	runtime.GOMAXPROCS(6)
	s.follow()
	if n := s.target.Load(); n != 6 {
		t.Errorf("up to %d workers", n)
	}
	if !ws[0].back() || s.active.Load() != 2 {
		t.Error("a worker that had lost its place does not take one that is free")
	}
	runtime.GOMAXPROCS(20)
	s.follow()
	if n := s.target.Load(); n != 8 {
		t.Errorf("up to %d workers, more than there may be", n)
	}
	if s := New(Config{Workers: 3, MaxWorkers: 8}); s.follows || s.target.Load() != 3 {
		t.Error("follows, though it has a number of its own")
	}
}

// A worker gets the smallest number that no worker has, so that workers that come and go do not share a part of the
// clock.
func TestNumbersAreUsedAgain(t *testing.T) {
	s, ws := still(t, 3)
	for i, w := range ws {
		w.number = uint32(2 * i)
	}
	for i, want := range []uint32{1, 3, 5} {
		if n := s.newNumber(); n != want {
			t.Fatalf("worker %d has number %d, not %d", 3+i, n, want)
		}
		s.add(&Worker{s: s, number: want})
	}
	s.remove(ws[1])
	if n := s.newNumber(); n != 2 {
		t.Fatalf("a worker with number 2 has left, and the next has %d", n)
	}
}
