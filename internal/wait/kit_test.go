package wait

// What a kit keeps between waits.

import (
	"testing"

	"github.com/coir-go/coir/internal/park"
)

// TestKitKeepsItsCellsThroughAWaitForOneThing: a wait for one thing, between waits for many, costs the kit no cell; the next
// wait for many allocates nothing.
//
// Spec: CH-49
func TestKitKeepsItsCellsThroughAWaitForOneThing(t *testing.T) {
	const cases = 8
	var k Kit
	var q Queue
	var p park.Parker
	kind := KindOf[int]()
	var cells [cases]*Cell[int]
	turn := func() {
		for i := range cells {
			cells[i] = Get[int](&k, kind)
		}
		for _, c := range cells {
			k.Put(&c.Node)
		}
		one := Peek[int](&k, kind)
		q.Push(&one.Node, &p, 1)
		if got := q.Shift(); got != &one.Node {
			t.Fatal("the queue has lost the cell")
		}
	}
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("a turn allocates %g times", n)
	}
}
