package sim

import (
	"os"
	"testing"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/soak"
)

// The size of the tests. They are smaller with -short, and in builds in which a switch of fibers costs ten times as
// much (the race detector) or fifty times (invariants and pure Go, which read the stack at each switch), because sim
// does little else than switch. A test with a number of schedules takes that from scaled. A large test without such a
// number calls large, which skips it and says so.

// sized returns full when soaking, and normal otherwise.
func sized(normal, full int) int {
	if soak.On() {
		return full
	}
	return normal
}

// slowBuild reports whether a switch of fibers costs many times what it does in a release.
func slowBuild() bool { return race.Enabled || verySlowBuild() }

// verySlowBuild reports the slowest builds; .ci/arm64 names the emulator.
func verySlowBuild() bool {
	return invariant.Enabled || !coro.Assembly || os.Getenv("COIR_EMULATOR") != ""
}

// scaled returns how many of n schedules to run in this build: all, a fifth under the race detector, a twentieth in
// even slower builds.
func scaled(n int) int {
	switch {
	case soak.On():
		return n
	case verySlowBuild():
		return max(1, n/20)
	case race.Enabled:
		return max(1, n/5)
	}
	return n
}

// onceInCI skips, in a short run, a test that does not depend on the build: one run of CI is not short.
func onceInCI(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is the same in every build")
	}
}

// large skips a test that takes too long in a short run of a slow build, and says what is not tested.
func large(t *testing.T, what string) {
	t.Helper()
	if slowBuild() && testing.Short() && !soak.On() {
		t.Skip("too large for a short run of this build: " + what)
	}
}
