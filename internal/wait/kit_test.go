package wait

// What a kit keeps between waits.

import (
	"testing"

	"github.com/coir-go/coir/internal/park"
)

// After a wait for one event or for many, a kit drops cells with large values and keeps the others.
func TestKitKeepsNoLargeCell(t *testing.T) {
	type small [keepSize]byte
	type large [keepSize + 1]byte
	var k Kit
	one, other := SoloCell[small](&k, KindOf[small]()), SoloCell[large](&k, KindOf[large]())
	if SoloCell[large](&k, KindOf[large]()) != other {
		t.Error("the cell of a wait that has not ended is gone")
	}
	Done[small](&k, KindOf[small]())
	Done[large](&k, KindOf[large]())
	k.Put(&Get[large](&k, KindOf[large]()).Node)
	if b := k.bin(KindOf[large]()); b.solo != nil || b.free != nil {
		t.Error("the kit keeps a large cell")
	}
	if SoloCell[small](&k, KindOf[small]()) != one {
		t.Error("the kit has let go of a small cell")
	}
}

// TestKitKeepsItsCellsThroughAWaitForOneThing: a wait for one event, between waits for many, costs the kit no cell; the
// next wait for many allocates nothing.
//
// Spec: CH-49 (a blocking operation allocates nothing)
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
		one := SoloCell[int](&k, kind)
		q.Push(&one.Node, &p, 1)
		if got := q.Shift(); got != &one.Node {
			t.Fatal("the queue has lost the cell")
		}
	}
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("a turn allocates %g times", n)
	}
}
