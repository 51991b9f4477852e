package replay

import (
	"slices"
	"testing"
)

func fields(b []byte) ([]byte, bool) {
	if len(b) == 0 {
		return nil, false
	}
	return b[1:], true
}

func TestTokensComeBack(t *testing.T) {
	for _, script := range [][]int{nil, {1}, {0, 0, 3, 0, 1}, append(make([]int, 3*mostZeros+5), 2)} {
		token := Token("x1.", []byte{7}, script)
		if token[:3] != "x1." {
			t.Errorf("the token is %.20s", token)
		}
		back, err := Parse(token[3:], fields)
		if err != nil || !slices.Equal(back, script) {
			t.Errorf("%d decisions of %d, %v", len(back), len(script), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(Token("", []byte{1}, []int{0, 2, 0, 0, 1}))
	f.Add("AYCAgICAgICAgAE")
	f.Fuzz(func(t *testing.T, letters string) {
		script, err := Parse(letters, fields)
		if err != nil {
			return
		}
		for len(script) > 0 && script[len(script)-1] == 0 { // a script continues with zeros, written or not
			script = script[:len(script)-1]
		}
		again, err := Parse(Token("", []byte{1}, script), fields)
		if err != nil || !slices.Equal(again, script) {
			t.Errorf("%v became %v, %v", script, again, err)
		}
	})
}

func TestShrinkFindsTheFewest(t *testing.T) {
	const length = 60
	runs := 0
	// The schedule fails if decisions 10 and 40 are 2 and 1, whatever the others are.
	run := func(script []int) Run {
		runs++
		r := Run{Steps: length, Decisions: make([]Decision, length)}
		for i := range r.Decisions {
			r.Decisions[i].Ways = 3
			if i < len(script) {
				r.Decisions[i].Way = script[i]
			}
		}
		r.Fails = r.Decisions[10].Way == 2 && r.Decisions[40].Way == 1
		return r
	}
	script := make([]int, length)
	for i := range script {
		script[i] = 1 + i%2
	}
	script[10], script[40] = 2, 1
	small := Shrink(run(script), run, 1_000_000, 1_000_000)
	want := make([]int, 41)
	want[10], want[40] = 2, 1
	if !slices.Equal(small, want) {
		t.Errorf("%v", small)
	}
	runs = 0
	Shrink(run(script), run, 0, 0)
	if runs > 5 {
		t.Errorf("%d runs, and no steps to spend", runs)
	}
}
