package chart

// Run is a part of a sequence: Length elements from From on, which are there Times times, one after the other.
type Run struct{ From, Length, Times int }

const longestPeriod = 8

// Fold cuts a sequence into runs, so that what is done again and again is told once. A run of one element is there from
// two times on, a longer one from three: below that there is little to save. same is given an element and a later one.
func Fold[T any](all []T, same func(first, later T) bool) (runs []Run) {
	for at := 0; at < len(all); {
		best := Run{at, 1, 1}
		for length := 1; length <= longestPeriod && at+2*length <= len(all); length++ {
			n := length
			for at+n < len(all) && same(all[at+n%length], all[at+n]) {
				n++
			}
			times := n / length
			if times >= 2 && (length == 1 || times >= 3) && (times-1)*length > (best.Times-1)*best.Length {
				best = Run{at, length, times}
			}
		}
		runs = append(runs, best)
		at += best.Length * best.Times
	}
	return runs
}
