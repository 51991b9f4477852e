package testing

import (
	"internal/coir"
	"internal/race"
	"internal/replay"
	"internal/search"
)

// search returns a new strategy of the kind that the settings name.
func (set *coirSettings) search() search.Strategy {
	seed := set.seed
	switch set.strategy {
	case "plain":
		return search.Plain()
	case "random":
		return search.Random(seed, 0)
	case "uniform":
		return search.Uniform(seed)
	case "pct":
		return search.Portfolio(search.PCT(seed, 1), search.PCT(seed, 2), search.PCT(seed, 3), search.PCT(seed, 4))
	case "exhaustive":
		set.all = search.Exhaustive(set.bound)
		return set.all
	case "dpor":
		return coirDPOR()
	}
	set.all = search.Exhaustive(set.bound)
	return search.Portfolio(
		search.Plain(),
		search.Random(seed, 0), set.all, search.Delay(seed, 0, 2), search.Uniform(seed), search.Delay(seed+1, 50, 2),
		search.PCT(seed, 3), search.Random(seed+1, 50), search.Delay(seed+2, 50, 2), search.PCT(seed+1, 4),
	)
}

// config returns the configuration of schedule n, for which the strategy has begun. The program's random numbers differ
// from schedule to schedule, if the strategy allows that.
func (set *coirSettings) config(s search.Strategy, n int) coirConfig {
	c := coirConfig{strategy: s, Config: coir.Config{Seed: set.seed, Faults: set.faults}}
	if !search.Steady(s) {
		c.Seed += uint64(n)
		if set.racing && n%8 >= 5 {
			if c.Racing = 5; n%8 != 7 {
				c.Racing |= coir.RacingBounded
			}
		}
	}
	return c
}

// races reports whether to also run schedules with a racing clock, only to find data races. Because time does not order
// memory accesses, a data race is a bug even if a timer fired early. Other failures may only mean that the test relies
// on time.
func (set *coirSettings) races() bool {
	return race.Enabled && set.strategy == "default" && !set.racing
}

// slow reports whether to search for failures on a slow machine; see searchSlowly.
func (set *coirSettings) slow() bool { return set.strategy == "default" && !set.racing }

// racingConfig returns the configuration of the n-th schedule with a racing clock. In every second one, long timers do
// not fire early, so that they do not hide what short ones do.
func (set *coirSettings) racingConfig(n int) coirConfig {
	seed := set.seed + 1<<32 + uint64(n)
	s := search.Random(seed, []int{0, 50, 90}[n%3])
	s.Begin(0)
	racing := 5 + uint64(n%3*20)
	if n%2 == 0 {
		racing |= coir.RacingBounded
	}
	return coirConfig{strategy: s, Config: coir.Config{Seed: seed, Racing: racing, Faults: set.faults}}
}

// The most steps that are run to shrink a failing schedule. They take some seconds. See replay.Shrink.
const coirCutSteps, coirSearchSteps = 2_000_000, 1_500_000

// coirEncode returns the token of a schedule: see coir.TokenHead.
func coirEncode(c coirConfig, script []int, hash uint64) string {
	h := coir.TokenHead{Alone: coirSet.only >= 0, Seed: c.Seed, Racing: c.Racing, Faults: c.Faults, Hash: uint32(hash)}
	return replay.Token(h.Prefix(), h.Numbers(), script)
}

// coirDecode returns the configuration of the schedule of a token, and the last 32 bits of its hash, or an error.
func coirDecode(token string) (c coirConfig, hash uint64, err string) {
	var h coir.TokenHead
	letters, ok := h.CutPrefix(token)
	if !ok {
		return c, 0, "a token begins with " + coir.TokenPrefixes
	}
	script, e := replay.Parse(letters, h.Parse)
	if e != nil {
		return c, 0, e.Error()
	}
	c.Seed, c.Racing, c.Faults = h.Seed, h.Racing, h.Faults
	c.strategy = &search.Script{Ways: script}
	return c, uint64(h.Hash), ""
}
