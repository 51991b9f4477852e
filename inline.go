package coir

import "context"

// Generic code is compiled in the packages that use it. There the compiler inlines a function of another package, such
// as the atomics of internal/park, only if this package has inlined it too, because only then does the export data of
// this package have its body. So this package compiles a channel of its own.
//
// Guarded by TestHotFunctionsCallNothingNew, which looks at a program that uses coir.
var _ = func(ctx context.Context, c *Chan[struct{}]) error {
	if err := c.Send(ctx, struct{}{}); err != nil {
		return err
	}
	_, err := c.Recv(ctx)
	return err
}
