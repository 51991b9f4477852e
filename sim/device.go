package sim

// Methods for packages that simulate something outside of the process, such as a network: see coir.Simulation.

// state is a value that such a package keeps while a schedule runs.
type state struct{ key, value any }

// Draw implements policy.Policy.
//
//go:norace
func (w *world) Draw(n int) int {
	before := w.ndec
	w.acts = true
	v := w.Choose(nil, n)
	if w.ndec > before {
		w.decisions[before].drawn = w.current + 1
	}
	return v
}

// Fault implements policy.Policy.
//
//go:norace
func (w *world) Fault(name string) bool { return w.sim != nil && w.sim.Fault(name) }

// State implements policy.Policy.
//
//go:norace
func (w *world) State(key any) (any, bool) {
	w.acts = true
	for i := range w.nstates {
		if w.states[i].key == key {
			return w.states[i].value, true
		}
	}
	return nil, false
}

// SetState implements policy.Policy.
//
//go:norace
func (w *world) SetState(key, v any) {
	if w.nstates == len(w.states) {
		w.states = doubled(w.states)
	}
	w.states[w.nstates] = state{key, v}
	w.nstates++
}
