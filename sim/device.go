package sim

// This file is for packages that simulate something outside the process, such as a network: see coir.Simulation.

// devices keeps the values of such packages while a schedule runs. Each key occurs once.
type devices struct{ states list[state] }

type state struct{ key, value any }

// reset also clears the values, which may be large.
//
//go:norace
func (d *devices) reset() {
	for i := range d.states.n {
		d.states.all[i] = state{}
	}
	d.states.n = 0
}

// Draw implements policy.Policy.
//
//go:norace
func (w *world) Draw(n int) int {
	before := w.ndec
	w.acts = true
	v := w.Choose(n)
	if w.ndec > before {
		w.decisions[before].drawn = w.current + 1
		if w.tells {
			w.branches[before].drawn = true
		}
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
	for i := range w.states.n {
		if x := &w.states.all[i]; x.key == key {
			return x.value, true
		}
	}
	return nil, false
}

// SetState implements policy.Policy.
//
//go:norace
func (w *world) SetState(key, v any) { w.states.add(state{key, v}) }
