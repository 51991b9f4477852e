package report

import "testing"

// In the second schedule the children of an actor begin in another order, beside one that the first schedule lacks.
func TestAnActorHasOneNumberInAllSchedules(t *testing.T) {
	known := Births{}
	add := known.Schedule()
	main := add(0, "main")
	a, b, again := add(main, "a"), add(main, "b"), add(main, "a")
	child := add(b, "a")

	add = known.Schedule()
	if n := add(0, "main"); n != main {
		t.Errorf("main is %d, and was %d", n, main)
	}
	for _, c := range []struct {
		parent int
		how    string
		want   int
	}{{main, "b", b}, {b, "a", child}, {main, "a", a}, {main, "a", again}} {
		if n := add(c.parent, c.how); n != c.want {
			t.Errorf("%q of %d is %d, and was %d", c.how, c.parent, n, c.want)
		}
	}
	if n := add(main, "c"); n != len(known) || n != 6 {
		t.Errorf("the new one is %d of %d", n, len(known))
	}
}
