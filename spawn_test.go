package coir_test

// The costs of a fiber: the allocations of a switch and of a spawn, and the stacks of the fiber and its spawner.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
)

// TestSwitchAndSpawnAllocations checks that a switch does not allocate, that a spawn allocates only the fiber, and that
// the first child of a nursery is allocated together with the nursery.
func TestSwitchAndSpawnAllocations(t *testing.T) {
	// Spec: FB-31 (a switch allocates nothing, a spawn at most once)
	if raceEnabled || invariant.Enabled {
		t.Skip("the checks of this build allocate")
	}
	asking := false
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		if asking = fewest(func() { _ = coir.Self(ctx) }) > 0; asking {
			return nil
		}
		yield := func() { _ = coir.Yield(ctx) }
		stop := false
		other := n.Go("other", func(ctx context.Context) error {
			for !stop {
				_ = coir.Yield(ctx)
			}
			return nil
		})
		yield()
		if perSwitch := fewest(yield); perSwitch > 0 {
			t.Errorf("two switches allocate %v times, want 0", perSwitch)
		}
		stop = true
		if err := other.Wait(ctx); err != nil {
			return err
		}
		if perSpawn := fewest(func() { _ = n.Go("child", noop).Wait(ctx) }); perSpawn > 1 {
			t.Errorf("a spawn and a join allocate %v times, want 1", perSpawn)
		}
		if perSpawn := fewest(func() { _ = n.Go("child", noop, coir.WithIndex(7)).Wait(ctx) }); perSpawn > 1 {
			t.Errorf("a spawn with an index and a join allocate %v times, want 1", perSpawn)
		}
		one := func(_ context.Context, n *coir.Nursery) error {
			n.Go("child", noop)
			return nil
		}
		if perRun := fewest(func() { _ = coir.Run(ctx, one) }); perRun > 1 {
			t.Errorf("a nursery with one child allocates %v times, want 1", perRun)
		}
		return nil
	}, nil)
	if asking {
		t.Skip("without assembly, finding out who calls allocates")
	}
}

func noop(context.Context) error { return nil }

// fewest returns how often f allocates. Allocations of others come and go; those of f are there each time.
func fewest(f func()) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector would empty pools
	n := testing.AllocsPerRun(200, f)
	for range 4 {
		n = min(n, testing.AllocsPerRun(200, f))
	}
	return n
}

// TestDeepStack: a fiber's stack grows like a goroutine's, without any setting.
func TestDeepStack(t *testing.T) {
	const depth = 100_000
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		f := n.Go("deep", func(ctx context.Context) error {
			if got := descend(ctx, depth); got != depth {
				t.Errorf("counted %d frames, want %d", got, depth)
			}
			return nil
		})
		return f.Wait(ctx)
	}, nil)
}

// descend uses a stack of depth frames, and switches at the bottom of it.
//
//go:noinline
func descend(ctx context.Context, depth int) int {
	var local [8]int
	if depth == 0 {
		_ = coir.Yield(ctx)
		return 0
	}
	local[depth%8] = 1
	return descend(ctx, depth-1) + local[depth%8]
}

// endless recurses until the stack reaches its limit.
//
//go:noinline
func endless(n int) int {
	var local [64]int
	local[n%64] = endless(n + 1) //nolint:staticcheck // on purpose
	return local[n%64] + 1
}

const overflowVar = "COIR_TEST_OVERFLOW"

// TestStackOverflowIsFatal: a fiber whose stack reaches its limit ends the process with Go's own report, which names
// the function. It is not a panic: no recover, no Run and no exit code of coir intervenes.
func TestStackOverflowIsFatal(t *testing.T) {
	// Spec: FB-33 (stack overflow is fatal, as Go's is)
	if os.Getenv(overflowVar) == "1" {
		overflow()
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := itself(ctx, "-test.run=^TestStackOverflowIsFatal$")
	cmd.Env = append(os.Environ(), overflowVar+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text := string(out)
	if err == nil || exit.ExitCode() != 2 {
		t.Errorf("the process ended with %v, want exit code 2", err)
	}
	for _, want := range []string{"goroutine stack exceeds", "fatal error: stack overflow", "coir_test.endless("} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(text, "recovered") {
		t.Error("a deferred function recovered from a stack overflow")
	}
	if t.Failed() {
		t.Logf("%.4000s", text)
	}
}

// overflow runs in a separate process. It must not return.
func overflow() {
	debug.SetMaxStack(1 << 20)
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("endless", func(context.Context) error {
			defer func() {
				if recover() != nil {
					println("recovered")
				}
			}()
			endless(0)
			return nil
		})
		return nil
	})
}

// TestFiberOutlivesItsSpawner: a fiber that a goroutine spawned continues with its arguments when the goroutine, and
// its stack, are gone.
func TestFiberOutlivesItsSpawner(t *testing.T) {
	// Spec: FB-13 (a fiber outlives the spawning call)
	const fibers = 100
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		gate := coir.NewChan[struct{}](0)
		all := make(chan *coir.Fiber, fibers)
		var spawners sync.WaitGroup
		for i := range fibers {
			spawners.Go(func() {
				local := [16]int{i, 1, 2, 3}
				all <- n.Go("outlives", func(ctx context.Context) error {
					_, err := gate.Recv(ctx)
					if want := [16]int{i, 1, 2, 3}; local != want {
						t.Errorf("fiber %d sees %v, want %v", i, local, want)
					}
					return err
				})
			})
		}
		blocking(ctx, spawners.Wait)
		close(all)
		runtime.GC() // the stacks of the spawners may be reused
		for range fibers {
			if err := gate.Send(ctx, struct{}{}); err != nil {
				return err
			}
		}
		for f := range all {
			if err := f.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}
