package report

import "testing"

// The report describes a twin, and says so if a failure has none.
func TestTwinsInWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{found(1200, false, 3), "of 1,200 schedules that were tried, this one passes and has the most in common"},
		{found(7, true, 3), "no schedule that passes has more in common with this one"},
		{found(7, true, 1146), "no schedule that passes has more in common with this one; " +
			"the failure comes 1,146 steps later, so the cause may be there, and not where the two diverge"},
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
