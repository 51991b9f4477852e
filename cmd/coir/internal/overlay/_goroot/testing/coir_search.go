package testing

import (
	"encoding/base64"
	"time"
)

// The search makes up schedules, from the decisions of those before. It knows no goroutine: a schedule is a list of
// numbers.

// coirDecision is a decision of a schedule that has been run.
type coirDecision struct {
	ways, way uint16
	kind      uint8
	step      uint32
}

// Kinds of decisions, and rules for those that are not given; see package runtime.
const (
	coirKeep, coirFree, coirGiveUp, coirCase = 0, 1, 2, 3
	coirStay, coirRandom, coirPriority       = 0, 1, 2
)

// coirSearch is a strategy.
type coirSearch struct {
	set   coirSettings
	n     uint64
	steps uint64 // of the longest schedule, within reason
	dfs   coirDFS
	deep  bool // the last schedule was of dfs
}

func newCoirSearch(set coirSettings) *coirSearch {
	return &coirSearch{set: set, steps: 50, dfs: coirDFS{bound: set.bound}}
}

// next is the schedule to run. It reports false if there is none left.
func (s *coirSearch) next() (coirConfig, bool) {
	n := s.n
	s.n++
	c := coirConfig{seed: s.set.seed + n}
	s.deep = false
	how := s.set.strategy
	if how == "default" {
		switch {
		case n == 0:
			how = "stay"
		case n%8 == 3 || n%8 == 7:
			how = "pct"
		case n%8 == 5 && !s.dfs.over:
			how = "exhaustive"
		default:
			how = "random"
		}
	}
	if s.set.racing && n%8 >= 5 && how != "exhaustive" {
		c.racing = 5
	}
	switch how {
	case "stay":
		c.seed = s.set.seed
		return c, s.set.strategy == "default" || n == 0
	case "random":
		c.tail, c.stay = coirRandom, [...]uint64{0, 50, 90}[n%3]
	case "pct":
		c.tail = coirPriority
		x := c.seed*0x9E3779B97F4A7C15 | 1
		for range n / 4 % 4 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			c.changes = append(c.changes, 1+x%s.steps)
		}
	case "exhaustive":
		c.seed = s.set.seed
		c.given = s.dfs.given
		s.deep = true
		if s.dfs.over {
			return c, false
		}
	}
	return c, true
}

// done is told of the schedule that was run.
func (s *coirSearch) done(r *coirRun, d []coirDecision) {
	if r.steps < 5000 {
		s.steps = max(s.steps, r.steps)
	}
	if s.deep {
		s.dfs.advance(d)
	}
}

// coirDFS goes through all schedules with at most bound preemptions, depth first.
type coirDFS struct {
	bound int
	given []uint16
	over  bool
	count int
}

// advance finds the next schedule: the last decision that can be another one within the bound is the next one.
func (s *coirDFS) advance(d []coirDecision) {
	s.count++
	cost := make([]int, len(d)+1)
	for i, e := range d {
		cost[i+1] = cost[i]
		if e.kind == coirKeep && e.way > 0 {
			cost[i+1]++
		}
	}
	for i := len(d) - 1; i >= 0; i-- {
		more := 0
		if d[i].kind == coirKeep {
			more = 1
		}
		if d[i].way+1 < d[i].ways && cost[i]+more <= s.bound {
			s.given = s.given[:0]
			for _, e := range d[:i] {
				s.given = append(s.given, e.way)
			}
			s.given = append(s.given, d[i].way+1)
			return
		}
	}
	s.over = true
}

// coirTrim is the ways of decisions, without the zeros at the end.
func coirTrim(d []coirDecision) []uint16 {
	end := 0
	for i := range d {
		if d[i].way != 0 {
			end = i + 1
		}
	}
	given := make([]uint16, end)
	for i := range given {
		given[i] = d[i].way
	}
	return given
}

func coirSwitches(given []uint16) (n int) {
	for _, k := range given {
		if k != 0 {
			n++
		}
	}
	return n
}

// coirShrink looks for the fewest decisions other than 0 with which the test fails in the same way: one alone, then what
// is left of those it failed with, then two.
func coirShrink(given []uint16, kind string, run func([]uint16) (*coirRun, []coirDecision)) []uint16 {
	best, until := given, time.Now().Add(10*time.Second)
	try := func(given []uint16) (d []coirDecision, better bool) {
		if time.Now().After(until) {
			return nil, false
		}
		r, d := run(given)
		if r.kind != kind {
			return d, false
		}
		small := coirTrim(d)
		n, m := coirSwitches(small), coirSwitches(best)
		if n > m || n == m && len(small) >= len(best) {
			return d, false
		}
		best = small
		return d, true
	}
	if len(best) == 0 {
		return best
	}
	base, better := try(nil)
	if better {
		return best
	}
	if coirSwitches(best) > 1 {
	one:
		for i := 0; i < len(base) && i < 5000; i++ {
			for k := uint16(1); k < base[i].ways; k++ {
				given := make([]uint16, i+1)
				given[i] = k
				if _, better := try(given); better {
					break one
				}
			}
		}
	}
	for again := coirSwitches(best) > 1; again; {
		again = false
		for chunk := max(coirSwitches(best)/2, 1); chunk > 0; chunk /= 2 {
			for at := 0; at < coirSwitches(best); {
				if _, better := try(coirWithout(best, at, chunk)); better {
					again = true
				} else {
					at += chunk
				}
			}
		}
	}
	if coirSwitches(best) > 2 {
		coirPairs(base, try, func() bool { return coirSwitches(best) <= 2 || time.Now().After(until) })
	}
	return best
}

// coirWithout is given with n of its decisions other than 0 left out, from the one with number at.
func coirWithout(given []uint16, at, n int) []uint16 {
	out := append([]uint16(nil), given...)
	i := 0
	for j, k := range out {
		if k == 0 {
			continue
		}
		if i >= at && i < at+n {
			out[j] = 0
		}
		i++
	}
	return out
}

// coirPairs tries two decisions other than 0.
func coirPairs(base []coirDecision, try func([]uint16) ([]coirDecision, bool), enough func() bool) {
	for i := 0; i < len(base) && i < 300; i++ {
		for k := uint16(1); k < base[i].ways; k++ {
			first := make([]uint16, i+1)
			first[i] = k
			d, _ := try(first)
			for j := i + 1; j < len(d) && j < 300; j++ {
				for l := uint16(1); l < d[j].ways; l++ {
					both := make([]uint16, j+1)
					both[i], both[j] = k, l
					if try(both); enough() {
						return
					}
				}
			}
		}
	}
}

// A token is "c1." and, in base64, the seed, the racing clock, the trace's hash, and the decisions: for each that is not
// 0, how many zeros come before it, and what it is. The token of a schedule that was run in a process of its own begins
// with "f1.".

func coirEncode(c coirConfig, given []uint16, hash uint64) string {
	var b []byte
	put := func(n uint64) {
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		b = append(b, byte(n))
	}
	put(c.seed)
	put(c.racing)
	put(hash & 0xffffffff)
	zeros := uint64(0)
	for _, k := range given {
		if k == 0 {
			zeros++
			continue
		}
		put(zeros)
		put(uint64(k))
		zeros = 0
	}
	head := "c1."
	if coirSet.fresh >= 0 {
		head = "f1."
	}
	return head + base64.RawURLEncoding.EncodeToString(b)
}

func coirDecode(token string) (c coirConfig, hash uint64, err string) {
	if len(token) < 3 || token[:3] != "c1." && token[:3] != "f1." {
		return c, 0, "does not begin with c1. or f1."
	}
	b, e := base64.RawURLEncoding.DecodeString(token[3:])
	if e != nil {
		return c, 0, "is damaged: " + e.Error()
	}
	bad := false
	get := func() (n uint64) {
		for shift := 0; ; shift += 7 {
			if len(b) == 0 || shift > 63 {
				bad = true
				return 0
			}
			x := b[0]
			b = b[1:]
			n |= uint64(x&0x7f) << shift
			if x < 0x80 {
				return n
			}
		}
	}
	c.seed, c.racing, hash = get(), get(), get()
	for len(b) > 0 && !bad {
		zeros, k := get(), get()
		if zeros > 1<<20 || k > 1<<16-1 {
			bad = true
			break
		}
		c.given = append(append(c.given, make([]uint16, zeros)...), uint16(k))
	}
	if bad {
		return c, 0, "is damaged: it ends too early"
	}
	return c, hash, ""
}
