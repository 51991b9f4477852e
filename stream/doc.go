// Package stream builds pipelines from stages that stop cleanly and cost little.
//
//	words := stream.FlatMap(stream.Lines(file), func(line string) stream.Stream[string] {
//		return stream.FromSeq(strings.FieldsSeq(line))
//	})
//	long := stream.Filter(words, func(w string) bool { return len(w) > 7 })
//	pages := stream.Parallel(long, 8, lookUp) // 8 at a time, in order
//	err := stream.ForEach(ctx, pages, func(ctx context.Context, p Page) error {
//		return save(ctx, p)
//	})
//
// # Model
//
// A [Stream] is a description: a source makes one, a stage makes one from another, and nothing happens until a sink
// runs it. The sink asks for elements, and so sets the pace of all stages. A stream ends, or fails with an error, which
// comes after the elements before it and is returned by the sink, once. When a sink returns, or panics, every fiber of
// the stream has ended: they are children of nurseries inside the call.
//
// A sink runs in the caller's fiber. If the caller is a goroutine, a stream without boundaries (see Cost) runs in that
// goroutine, and one with boundaries in fibers of the default runtime, also the body of a loop over [Stream.All]:
// there, what blocks outside of coir is called in [coir.Blocking].
//
// A function of the user that panics makes the sink panic: with the same value if the stream has no boundaries, and
// with a [*coir.PanicError] if it has. The cancel of the sink's context ends all waits of the stream, and the sink
// returns its error. If the context has ended before, the sink runs nothing. The sink waits for a function that blocks
// outside of coir, or computes for long.
//
// # Cost
//
// Stages such as [Map] and [Filter] are calls in the loop of their source: there is no channel and no fiber between two
// of them. A stage that needs concurrency, time or a buffer is a boundary: what is before it runs in a fiber of its
// own, and the elements pass a channel. [Stream.Explain] prints the loops of a stream and the boundaries between them.
//
// The consumer gets one element at a time, and a source makes an element when the consumer wants it, except for
// [Reduce], [Count], [ToSlice] and [Batch], which take everything in any case. If the source is a slice, or lines that
// have been read, these may take up to 256 elements at once, if that is about 10 microseconds of work: then the
// function of a stage sees some elements before that of the next stage sees the first of them.
//
// # What is left out
//
// Stages that are one line of other stages are left out: a side effect for each element is a [Map] that returns its
// argument; flatten is [FlatMap] with [FromSlice]; a pace without bursts, or one element a tick, is [Throttle] with a
// burst of 1; the newest element for a slow consumer is [Buffer] with [coir.Conflated]; the last element, the minimum,
// any and all are [Reduce], or [First] of a [Filter]; elements with their time are a [Map] that calls [coir.Now].
package stream
