package programs

import "maps"

// Shrink leaves out operations of a program as long as it still fails. fails returns what is wrong, or "".
func Shrink(p *Program, wrong string, fails func(*Program) string) (*Program, string) {
	small := p
	for again := true; again; {
		again = false
		for n := 1; n <= p.ops; n++ {
			if small.Off[n] || !small.has(n) {
				continue
			}
			try := *small
			try.Off = maps.Clone(small.Off)
			if try.Off == nil {
				try.Off = make(map[int]bool)
			}
			try.Off[n] = true
			if f := fails(&try); f != "" {
				small, wrong, again = &try, f, true
			}
		}
	}
	return small, wrong
}

// has reports whether operation n is in the program, and not part of one that is left out.
func (p *Program) has(n int) bool {
	var in func(ops []*Op) bool
	in = func(ops []*Op) bool {
		for _, op := range ops {
			switch {
			case p.Off[op.N]:
				continue
			case op.N == n || in(op.Ops) || op.Fiber != nil && in(op.Fiber.Ops) || op.Group != nil && in(op.Group.Body):
				return true
			}
		}
		return false
	}
	return in(p.Root.Body)
}
