package coir

import (
	"strconv"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// object identifies, to policies and in reports, an object that can be waited for and whose zero value is ready to use.
type object struct {
	name string
	id   xatomic.Uint64           // 0 until it is needed
	rt   xatomic.Pointer[Runtime] // the first runtime with a policy that used the object
}

// number returns the object's number, which is unique.
//
//go:norace
func (o *object) number() uint64 {
	race.Disable() // a snapshot may call number before the object's creation is ordered before it
	defer race.Enable()
	if id := o.id.Load(); id != 0 {
		return id
	}
	o.id.CompareAndSwap(0, channel.NewObjectID())
	return o.id.Load()
}

// title returns the object's name, or its number if it has none.
//
//go:norace
func (o *object) title() string {
	if o.name != "" {
		return o.name
	}
	return "#" + strconv.FormatUint(o.number(), 10)
}

// op returns the Op that applies v to the object.
//
//go:norace
func (o *object) op(v *policy.Verb) policy.Op {
	return policy.Op{Kind: policy.Use, Object: o.number(), Name: o.name, Verb: v}
}

// failed returns the error of a wait, described by v, that ended because of e.
//
//go:noinline
//go:norace
func (o *object) failed(e *ending, v *policy.Verb) error {
	if o.name == "" {
		return e.op
	}
	return e.on("wait " + v.Waits + " " + o.name)
}

// announce announces to the policy an operation on the object by the fiber f, or by a goroutine if f is nil. It returns
// the fiber that must call stepped if the operation does not wait, or nil.
//
//go:noinline
//go:norace
func (o *object) announce(f *Fiber, op policy.Op) *Fiber {
	if f != nil && f.simulated {
		o.rt.CompareAndSwap(nil, f.nursery.rt)
		f.step(op)
		return f
	}
	if rt := o.rt.Load(); rt != nil {
		rt.stray(op)
	}
	return nil
}
