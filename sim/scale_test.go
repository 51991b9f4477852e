package sim

import (
	"os"
	"testing"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/race"
)

// How much the tests run, in one place. Two things make them smaller, and neither silently leaves out a test: -short,
// and builds in which a switch of fibers costs ten times as much (the race detector) or fifty times (invariants, which
// look at the stack on every switch, and pure Go, which asks for it to know who runs): sim does little but switch. What
// has a number of schedules takes it from scaled; what has none, and is large, says so by large and is skipped by name.

// soaking reports whether tests run at their full size.
func soaking() bool { return os.Getenv("COIR_SOAK") == "1" }

// sized returns full when soaking, and normal otherwise.
func sized(normal, full int) int {
	if soaking() {
		return full
	}
	return normal
}

// slowBuild reports whether a switch of fibers costs many times what it does in a release.
func slowBuild() bool { return race.Enabled || verySlowBuild() }

// verySlowBuild: .ci/arm64 names the emulator.
func verySlowBuild() bool {
	return invariant.Enabled || !coro.Assembly || os.Getenv("COIR_EMULATOR") != ""
}

// scaled returns how many of n schedules to run in this build: all, a fifth under the race detector, a twentieth where
// it is even slower.
func scaled(n int) int {
	switch {
	case soaking():
		return n
	case verySlowBuild():
		return max(1, n/20)
	case race.Enabled:
		return max(1, n/5)
	}
	return n
}

// onceInCI skips, in a short run, what does not depend on the build: CI has one run that is not short.
func onceInCI(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is the same in every build")
	}
}

// large skips what takes too long in a short run of a slow build, and says what is not tested.
func large(t *testing.T, what string) {
	t.Helper()
	if slowBuild() && testing.Short() && !soaking() {
		t.Skip("too large for a short run of this build: " + what)
	}
}
