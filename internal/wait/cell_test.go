package wait

// Cells, and the kit that keeps them: a cell is reused only for its own type, is never handed out twice, and comes back
// clean.

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coir-go/coir/internal/park"
)

type named int

func TestKindsAreTypes(t *testing.T) {
	kinds := map[string]Kind{
		"int": KindOf[int](), "named": KindOf[named](), "uint": KindOf[uint](), "*int": KindOf[*int](), "[]int": KindOf[[]int](),
		"any": KindOf[any](), "error": KindOf[error](), "struct{}": KindOf[struct{}](), "[0]int": KindOf[[0]int](), "func": KindOf[func()](),
	}
	for a, ka := range kinds {
		for b, kb := range kinds {
			if (ka == kb) != (a == b) {
				t.Errorf("the kinds of %s and %s are the same: %v", a, b, ka == kb)
			}
		}
	}
	if KindOf[named]() != kinds["named"] {
		t.Error("the kind of a type is not always the same")
	}
}

// A queue holds nodes. CellOf finds the cell of a node, with its value.
func TestCellOfItsNode(t *testing.T) {
	found(t, 7)
	found(t, "text")
	found(t, [3]any{1, nil, "x"})
	found(t, struct{}{})
}

func found[T comparable](t *testing.T, v T) {
	t.Helper()
	var q Queue
	s := newSleeper()
	c := &Cell[T]{Value: v}
	q.Push(&c.Node, &s.Parker, s.Arm())
	if got := CellOf[T](q.Shift()); got != c || got.Value != v {
		t.Errorf("put in %v, found %v", v, got.Value)
	}
}

// A caller that waits for one event asks for its cell again after the wait, and must get the same cell, however many
// cells were taken and put back before.
func TestSoloCellIsAlwaysTheSame(t *testing.T) {
	var k Kit
	one, other := SoloCell[int](&k, KindOf[int]()), SoloCell[string](&k, KindOf[string]())
	for i := range 5 {
		for range i {
			k.Put(&Get[int](&k, KindOf[int]()).Node)
		}
		taken := Get[int](&k, KindOf[int]())
		if SoloCell[int](&k, KindOf[int]()) != one || SoloCell[string](&k, KindOf[string]()) != other {
			t.Fatal("another cell")
		}
		if taken == one {
			t.Fatal("a cell for one wait has gone out for another")
		}
		k.Put(&taken.Node)
	}
}

func TestCellComesBackClean(t *testing.T) {
	var k Kit
	s := newSleeper()
	c := Get[int](&k, KindOf[int]())
	c.Index, c.Won, c.Parker = park.MaxIndex, true, &s.Parker
	k.Put(&c.Node)
	again := Get[int](&k, KindOf[int]())
	if again != c {
		t.Fatal("the kit had a cell, and has made another")
	}
	if c.Index != 0 || c.Won || c.Parker != nil || c.next != nil {
		t.Errorf("it comes back with index %d, marked %v, parker %p, next %p", c.Index, c.Won, c.Parker, c.next)
	}
}

// A kit does not keep all cells of a wait for very many events.
func TestKitKeepsAFew(t *testing.T) {
	var k Kit
	kind := KindOf[int]()
	cells := make([]*Cell[int], 10*keep)
	for i := range cells {
		cells[i] = Get[int](&k, kind)
	}
	for _, c := range cells {
		k.Put(&c.Node)
	}
	kept := 0
	for n := k.bin(kind).free; n != nil; n = n.next {
		kept++
	}
	if kept != keep || k.bin(kind).n != keep {
		t.Errorf("it keeps %d and counts %d, want %d", kept, k.bin(kind).n, keep)
	}
}

// Random gets and puts of three types, with waits for one event in between. No cell is handed out twice, or for another
// type, and the kit counts the cells that it keeps.
//
// Spec: PK-42 (a node is given back once, by what ended it)
func TestKitAgainstASet(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	var k Kit
	var q Queue
	s := newSleeper()
	kinds := []Kind{KindOf[int](), KindOf[string](), KindOf[struct{}]()}
	get := []func() *Node{
		func() *Node { return &Get[int](&k, kinds[0]).Node },
		func() *Node { return &Get[string](&k, kinds[1]).Node },
		func() *Node { return &Get[struct{}](&k, kinds[2]).Node },
	}
	var out []*Node
	for step := range 20_000 {
		switch i := rnd.IntN(len(kinds)); rnd.IntN(5) {
		case 0, 1:
			n := get[i]()
			if twice := slices.Contains(out, n); twice || n.kind != kinds[i] {
				t.Fatalf("seed %d, step %d: a cell is out twice (%v), or of another type (%v)", seed, step, twice, n.kind != kinds[i])
			}
			out = append(out, n)
		case 2, 3:
			if len(out) > 0 {
				at := rnd.IntN(len(out))
				n := out[at]
				out = slices.Delete(out, at, at+1)
				q.Push(n, &s.Parker, 0) // it was waited with
				q.Shift()
				k.Put(n)
			}
		case 4:
			one := SoloCell[int](&k, kinds[0])
			if slices.Contains(out, &one.Node) {
				t.Fatalf("seed %d, step %d: the cell for one wait is out", seed, step)
			}
			q.Push(&one.Node, &s.Parker, 0)
			q.Shift()
		}
	}
	for b := k.rest().bins; b != nil; b = b.next {
		kept := 0
		for n := b.free; n != nil; n = n.next {
			if kept++; n.kind != b.kind || kept > keep {
				t.Fatalf("seed %d: a cell is kept for another type, or there are too many", seed)
			}
		}
		if kept != b.n {
			t.Errorf("seed %d: it keeps %d and counts %d", seed, kept, b.n)
		}
	}
}
