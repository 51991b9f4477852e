//go:build coirinterleave

package coir

import (
	"testing"

	"github.com/coir-go/coir/internal/interleave"
	"github.com/coir-go/coir/internal/xatomic"
)

// Children that wait for others, one of them on a goroutine of its own, pass on a single place under a limit: only one
// child at a time has it, each child gets it, and none is left in the queue. In another case one child continues above
// the limit, because its wait was interrupted; the places are still counted correctly afterwards.
//
// Spec: NU-15 (a child that waits for children gives its place up)
func TestExplorePlacePassesOn(t *testing.T) {
	for name, above := range map[string]bool{"in turn": false, "above the limit": true} {
		t.Run(name, func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s := newScene()
				s.n.Limit(1)
				l := s.n.coldPart().limiter
				l.taken = 1 // the first has it
				var inside, got xatomic.Int32
				uses := func(f *Fiber, wait bool) {
					f.takePlace(wait)
					if n := inside.Add(1); n > 1 && !above {
						interleave.Failf("%d have the place", n)
					}
					got.Add(1)
					inside.Add(-1)
					f.leavePlace()
				}
				first, second := s.fiber(), s.fiber()
				first.place, second.place = true, true
				interleave.Go("first", func() {
					first.here()
					first.leavePlace()
				})
				interleave.Go("second", func() {
					second.here()
					uses(&second.Fiber, !above)
				})
				s.n.spawned++
				child := &goChild{f: Fiber{nursery: s.n, role: onGoroutine, place: true}}
				interleave.Go("child", func() {
					child.enlist()
					uses(nil, true)
					child.delist()
				})
				interleave.JoinAll()
				if got.Load() != 2 || l.taken != 0 || !l.again.Empty() {
					interleave.Failf("%d got the place, %d places are taken", got.Load(), l.taken)
				}
			})
		})
	}
}
