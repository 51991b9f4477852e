package memory

import "math"

// Silence cuts the node off from the broker forever.
func (n *Node) Silence() {
	n.b.cond.Lock()
	defer n.b.cond.Unlock()
	n.cut = math.MaxInt64
}
