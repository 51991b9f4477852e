//go:build coirmutants

package mutant_test

import (
	"regexp"
	"testing"

	"github.com/coir-go/coir/internal/mutant"
)

// bufMutants break the rules of package buf, each at least once. The name begins with the rule, and Test is one that
// cites it.
var bufMutants = []mutant.Mutant{
	{
		Name: "BU-01: the sender's Buf stays valid", File: "buf/move.go", Test: "TestSendHandsOver",
		Edits: []string{"	if err := deliver(to); err != nil {\n", "	s.init(b.gen)\n	if err := deliver(b); err != nil {\n"},
	},
	{
		Name: "BU-02: a send that fails does not give the buffer back", File: "buf/move.go",
		Test: "TestFailedSendKeepsTheBuffer",
		Edits: []string{
			"		if o := s.restore(next, b.gen); o != done {\n			to.misused(\"HandOver\", o)\n		}\n", "",
		},
	},
	{
		Name: "BU-02: a checked region does not give the buffer back", File: "buf/check.go",
		Test: "TestFailedSendKeepsTheBuffer",
		Edits: []string{
			"	if o := s.restore(next, b.gen); o != done {\n		to.misused(\"HandOver\", o)\n	}\n", "",
		},
	},
	{
		Name: "BU-03: a hand-over copies the bytes", File: "buf/move.go", Test: "TestSendHandsOver",
		Edits: []string{
			"	if err := deliver(to); err != nil {\n",
			"	if c, err := to.Clone(); err == nil {\n		to = c\n	}\n	if err := deliver(to); err != nil {\n",
		},
	},
	{
		Name: "BU-04: a slice reaches into the next buffer", File: "buf/buf.go", Test: "TestSlicesStayWithinTheirBuffer",
		Edits: []string{"	if i < 0 || j < i || j > b.Cap() {\n", "	if i < 0 || j < i || j > b.Cap()+1 {\n"},
	},
	{
		Name: "BU-05: Bytes of a stale Buf", File: "buf/buf.go", Test: "TestCorpusIsCaught",
		Edits: []string{"	if !b.valid() {\n		b.misused(\"Bytes\", stale)\n	}\n", ""},
	},
	{
		Name: "BU-05: a slice that was kept is not looked for", File: "buf/check.go", Test: "TestCorpusIsCaught",
		Edits: []string{"slices.IndexFunc(m.bytes, func(c byte) bool { return c != poison }); i >= 0 {\n", "-1; i >= 0 {\n"},
	},
	{
		Name: "BU-06: the last owner of a shared buffer does not give it back", File: "buf/buf.go", Test: "TestShare",
		Edits: []string{"	if extra.Load() == 0 {\n		return true\n	}\n", "	if extra.Load() == 0 {\n		return false\n	}\n"},
	},
	{
		Name: "BU-06: Close forgets the buffers that are lent", File: "buf/pool.go", Test: "TestRegionEndsWithItsLastBuffer",
		Edits: []string{"	return len(p.slots) - int(p.retired.Load())\n", "	return 0 * int(p.retired.Load())\n"},
	},
	{
		Name: "BU-07: a Buf is encoded as nothing", File: "buf/encode.go", Test: "TestBufIsNotEncoded",
		Edits: []string{
			"MarshalJSON() ([]byte, error) { return nil, errEncode }\n",
			"MarshalJSON() ([]byte, error) { return []byte(\"{}\"), nil }\n",
		},
	},
	{
		Name: "BU-08: a hand-over is not counted", File: "buf/move.go", Test: "TestUndeliveredBuffersGoBack",
		Edits: []string{"	p.moved.Add(1)\n", ""},
	},
	{
		Name: "BU-08: a copy is not counted", File: "buf/buf.go", Test: "TestAppendGrows",
		Edits: []string{"	b.in.pool.copied.Add(1)\n", ""},
	},
	{
		Name: "BU-08: a failed hand-over is not counted", File: "buf/move.go", Test: "TestFailedSendKeepsTheBuffer",
		Edits: []string{"		p.cancelled.Add(1)\n", ""},
	},
	{
		Name: "BU-09: a buffer comes with the bytes of its last owner", File: "buf/pool.go", Test: "TestPoolLendsAgain",
		Edits: []string{"p.slots[i].generation(), slot: i}", "p.slots[i].generation(), slot: i, len: uint32(p.size)}"},
	},
	{
		Name: "BU-09: a caller that does not wait overtakes those that do", File: "buf/pool.go",
		Test:  "TestReleasedBuffersGoToTheWaiters",
		Edits: []string{"	if p.slow++; p.slow == 1 && !p.always {\n", "	if p.slow++; false {\n"},
	},
	{
		Name: "BU-10: undelivered buffers are lost", File: "buf/chan.go", Test: "TestUndeliveredBuffersGoBack",
		Edits: []string{"		b.in.pool.aborted.Add(1)\n		b.Release()\n", "		b.in.pool.aborted.Add(1)\n"},
	},
	{
		Name: "BU-11: a second answer is accepted, and lost", File: "desk/desk.go", Test: "TestTicketAnsweredByABuffer",
		Edits: []string{
			"	t, err := d.take(id, resolved)\n	if err != nil {\n		return err\n	}\n",
			"	t, err := d.take(id, resolved)\n	if err != nil {\n		return nil\n	}\n",
		},
	},
}

func TestMutantsOfBufAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tests once for each mutant")
	}
	suite := mutant.Suite{
		Mutants: bufMutants,
		Parts:   7,
		Args: func(m mutant.Mutant) []string {
			return []string{"-timeout=2m", "-failfast", "-run=^" + m.Test + "$", "./buf"}
		},
		Found: regexp.MustCompile(`(?s)--- FAIL: (\w+).*?\n\s+(\w+_test\.go:\d+: [^\n]*)`),
		Tell:  func(groups []string) string { return "by " + groups[1] + ": " + groups[2] },
		Ends:  []string{"panic:"},
	}
	suite.Run(t)
}
