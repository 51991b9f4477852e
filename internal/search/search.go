// Package search chooses schedules: which actor continues, wherever there is a choice. Actors are numbered in the order
// of their creation. The package does not know what they are: package sim uses it for fibers, and `coir test` for the
// goroutines of ordinary Go tests.
//
// `coir test` lays this package over the standard library, where package runtime calls it on the system stack with a
// lock held. So it imports only math/bits (source.go is not laid over), and code that runs in a schedule (Choose, and
// all that it calls) neither allocates nor uses append or copy, and is hidden from the race detector.
package search

import "math/bits"

// Strategy chooses schedules. It decides wherever there is more than one way.
type Strategy interface {
	// Begin is called before each schedule, with its number from 0. It returns false if nothing is left to explore.
	Begin(schedule int) bool
	// Choose returns a number below f.N. Way 0 changes the least.
	Choose(f *Fork) int
	// Name returns the name of the strategy for users.
	Name() string
}

// Fork is a place where a schedule can go more than one way.
type Fork struct {
	N      int   // the number of ways
	Keep   bool  // way 0 is that the running actor continues
	After  bool  // the running actor has performed an operation, and way 0 is the code after it; implies Keep
	Yields bool  // the running actor, way N-1, yields to the others
	World  World // the running schedule
}

// World is a running schedule.
type World interface {
	// Actor returns the number of the actor that way i of the current fork lets run, or Clock or Value.
	Actor(i int) int
	// Actors returns how many actors there are.
	Actors() int
	// Running returns the number of the actor that runs. It is negative if there is none. If a value is chosen, Running
	// returns the number of the list to which the value belongs, such as the values of one actor: the values of a list
	// keep their order, whatever happens in other lists.
	Running() int
	// Moves returns how often an actor was chosen.
	Moves(actor int) int32
	// Logged returns how many events the log has; see Event.
	Logged() int
	// Site returns the number of the line of the program that the running actor executes, below MostSites. It is always
	// 0 if lines are not known. Only forks with Keep have a site.
	Site() int
}

// MostSites limits the numbers of sites.
const MostSites = 1 << 10

// The ways that are not actors.
const (
	Clock = -2 // time advances
	Value = -3 // a value is chosen, such as the case of a select; all ways of the fork are Value
)

// Steady reports whether the next schedule of a strategy, whose Begin has been called, relies on the program to repeat
// its behaviour, including the numbers that it draws at random.
func Steady(s Strategy) bool {
	x, ok := s.(interface{ steady() bool })
	return ok && x.steady()
}

// Complete reports whether a strategy whose Begin has returned false has run all its schedules. Most strategies never
// do.
func Complete(s Strategy) bool {
	x, ok := s.(interface{ Complete() bool })
	return ok && x.Complete()
}

// Again begins the last schedule of a strategy again. It returns false if the strategy cannot do that.
func Again(s Strategy) bool {
	switch s := s.(type) {
	case *portfolio:
		return Again(s.Current())
	case *random:
		return s.Begin(s.number)
	case *pct:
		return s.Begin(s.number)
	case *delay:
		return s.Begin(s.number)
	}
	return false
}

// RNG is splitmix64: small, and the same on every platform.
type RNG uint64

// Next returns the next number.
//
//go:norace
func (r *RNG) Next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// Below returns a number below n.
//
//go:norace
func (r *RNG) Below(n int) int {
	hi, _ := bits.Mul64(r.Next(), uint64(n))
	return int(hi)
}

// Of makes r the generator of one schedule, so that a schedule can be run again by its number.
//
//go:norace
func (r *RNG) Of(seed uint64, schedule int) {
	*r = RNG(seed ^ uint64(schedule)*0xD1342543DE82EF95)
	r.Next()
}

// table is a slice that grows only between schedules. Rows that do not fit while a schedule runs are lost, and the
// schedule must be run again.
type table[T any] struct {
	rows []T
	n    int
	full bool // rows were lost
}

// room makes room for a schedule. It reports whether the last schedule lacked room and must be run again, or, if the
// table already has most rows, that the schedule is too long.
func (t *table[T]) room(most int) (again, long bool) {
	if !t.full && t.rows != nil {
		return false, false
	}
	if len(t.rows) >= most {
		t.full = false
		return false, true
	}
	rows := make([]T, max(1024, 2*len(t.rows)))
	copy(rows, t.rows[:t.n])
	t.rows = rows
	again, t.full = t.full, false
	return again, false
}

// add adds a row, if there is room.
//
//go:norace
func (t *table[T]) add(row T) {
	if t.n == len(t.rows) {
		t.full = true
		return
	}
	t.rows[t.n] = row
	t.n++
}
