package report

import "testing"

// The report describes a twin, and says so if a failure has none.
func TestTwinsInWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{found(&Parting{Tried: 1200, Later: 3}), "of 1,200 schedules that were tried, this one passes and has the most in common"},
		{found(&Parting{Tried: 7, Sure: true, Later: 3}), "no schedule that passes has more in common with this one"},
		{found(&Parting{Tried: 7, Sure: true, Later: 1146}), "no schedule that passes has more in common with this one; " +
			"the failure comes 1,146 steps later, so the cause may be there, and not where the two diverge"},
		{found(&Parting{Tried: 7, Sure: true, Later: 1146, Own: true}), "no schedule that passes has more in common with " +
			"this one; the failure comes 1,146 steps later"},
		{alone("test", 0, 0, true), "there was nothing to decide: the test fails in its only schedule"},
		{alone("test", 3, 7, true), "no schedule passes: all 8 of them were tried"},
		{alone("test", 3, 1200, false),
			"each of 1,200 other schedules that were tried instead fails too"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
