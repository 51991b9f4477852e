package timing

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		q, want float64
	}{
		{nil, 0.5, 0},
		{[]float64{7}, 0.5, 7},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{5, 1, 3, 2, 4}, 0.25, 2},
		{[]float64{5, 1, 3, 2, 4}, 1, 5},
	} {
		if got := Quantile(c.values, c.q); got != c.want {
			t.Errorf("Quantile(%v, %g) = %g, want %g", c.values, c.q, got, c.want)
		}
	}
}

func TestTurnsOfABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		turns := Turns(false, 100*time.Millisecond, func(n int) {
			time.Sleep(time.Duration(n) * time.Millisecond)
			if busy {
				time.Sleep(time.Second)
			}
			busy = false
		})
		if turns != 100 {
			t.Errorf("%d turns of 1ms take 100ms, want 100", turns)
		}
	})
}
