package policy

import "testing"

func TestKindsHaveNames(t *testing.T) {
	if len(names) != int(RunElsewhere)+1 {
		t.Errorf("%d names for %d kinds", len(names), RunElsewhere+1)
	}
	seen := map[string]Kind{}
	for k := Start; k <= RunElsewhere; k++ {
		if was, twice := seen[k.String()]; twice || k.String() == "" {
			t.Errorf("kind %d is called %q, as kind %d is", k, k, was)
		}
		seen[k.String()] = k
	}
	if s := Kind(255).String(); s != "an operation of its own" {
		t.Errorf("a kind of a policy is called %q", s)
	}
}

func TestOutcomesHaveNames(t *testing.T) {
	if len(outcomes) != int(No)+1 {
		t.Errorf("%d names for %d outcomes", len(outcomes), No+1)
	}
	for o := WouldBlock; o <= No; o++ {
		if o.String() == "" {
			t.Errorf("outcome %d has no name", o)
		}
	}
	if s := Done.String(); s != "" {
		t.Errorf("what is done as usual is called %q", s)
	}
}
