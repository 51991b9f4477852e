//go:build !coirinvariants

package invariant

// Enabled reports whether checks are compiled in.
const Enabled = false

// Check does nothing in this build. Guard a call with expensive arguments with Enabled.
func Check(bool, string, ...any) {}

// Flag takes no room in this build. Guard its use with Enabled.
type Flag struct{}

// Swap does nothing in this build.
func (*Flag) Swap(bool) bool { return false }

// Loans records nothing in this build. Guard its use with Enabled.
type Loans struct{}

// Lend does nothing in this build.
func (*Loans) Lend(any) {}

// GiveBack returns true in this build.
func (*Loans) GiveBack(any) bool { return true }
