package report

import (
	"fmt"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		names string
		most  int
		want  string
	}{
		{"", 3, ""},
		{"main", 3, "main"},
		{"w[0] w[1]", 3, "w[0], w[1]"},
		{"main w[0] w[1] w[2] w[4] w[5]", 8, "main, w[0..2], w[4], w[5]"},
		{"p.go:8_(9) p.go:8_(10) p.go:8_(11)", 3, "p.go:8 (9..11)"},
		{"w#1 w#2 w#3", 3, "w#1..3"},
		{"w[01] w[02] w[03]", 3, "w[01], w[02], w[03]"},
		{"w1 w2 w3 w4", 2, "w1, w2 and 2 more"},
		{"a w[7] w[8] w[9] b c", 2, "a, w[7..9] and 2 more"},
	} {
		names := strings.Fields(c.names)
		for i := range names {
			names[i] = strings.ReplaceAll(names[i], "_", " ")
		}
		if got := Names(names, c.most); got != c.want {
			t.Errorf("%s: got %s, want %s", c.names, got, c.want)
		}
	}
}

func TestCrowds(t *testing.T) {
	key := func(s string) string { return strings.Trim(s[:1], "_") }
	crowds := Crowds(strings.Fields("a1 b1 a2 _1 c1 b2 a3 _2 a4 _3"), key)
	if got := fmt.Sprint(crowds); got != "[[a1 a2 a3 a4] [b1] [_1] [c1] [b2] [_2] [_3]]" {
		t.Error(got)
	}
}

func TestPlaces(t *testing.T) {
	if got := Place("at sim/a.go:12, in sim.f\nrecv c"); got != "sim/a.go:12" {
		t.Error(got)
	}
	if got := Place("recv c"); got != "" {
		t.Error(got)
	}
	all := []string{"sim/a.go:1", "", "sim/b.go:2", "sim/b.go:3"}
	common := CommonFile(all)
	var got []string
	for _, at := range all {
		got = append(got, ShortPlace(at, common))
	}
	if text := strings.Join(got, " "); common != "sim/b.go" || text != "a.go:1  :2 :3" {
		t.Error(common, text)
	}
}

func TestLegend(t *testing.T) {
	var b strings.Builder
	if Legend(&b, "  "); b.String() != "" {
		t.Errorf("%q for no marks", b.String())
	}
	Legend(&b, "  ", Sign{true, "*", "waits"}, Sign{false, "!", "fails"}, Sign{true, ">", "turns"})
	if got := b.String(); got != "  marks: * waits; > turns\n" {
		t.Errorf("b.String() = %q, want \" marks: * waits; > turns\\n\"", got)
	}
}
