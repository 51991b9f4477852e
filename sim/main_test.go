package sim

// Tests that run very many schedules are left out of short runs, and of builds that check invariants: those look at the stack on every
// switch, and sim does little but switch.

import (
	"flag"
	"os"
	"testing"

	"github.com/coir-go/coir/internal/invariant"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if (testing.Short() || invariant.Enabled) && flag.Lookup("test.skip").Value.String() == "" {
		_ = flag.Set("test.skip", "Corpus|DPOR|Exhaustive|Own|Uniform|Random|PCT|Speed|Allocates|Year|TenThousand|SameSeed|EachFailure|Fewest|Trace|Orders")
	}
	os.Exit(m.Run())
}
