package coir

import "context"

// Generic code is compiled in the packages that use it. There, the compiler can inline a function of a third package,
// such as the atomics of internal/park, only if this package has inlined that function too: only then does the export
// data of this package include its body. So this package instantiates a channel of its own.
//
// Guarded by TestHotFunctionsCallNothingNew, which examines a program that uses coir.
var _ = func(ctx context.Context, c *Chan[struct{}]) error {
	if err := c.Send(ctx, struct{}{}); err != nil {
		return err
	}
	_, err := c.Recv(ctx)
	return err
}
