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
// A [Stream] is a description: a source returns one, a stage turns it into another, and nothing happens until a sink
// runs it. The sink asks for elements, and so sets the pace of all stages. A stream ends, or fails with an error. The
// sink gets all elements before the error, and then returns the error, once. When a sink returns, or panics, all fibers
// of the stream have ended: they are children of nurseries inside the call.
//
// A sink runs in the caller's fiber. If the caller is a goroutine, a stream without boundaries (see Cost) runs in that
// goroutine. A stream with boundaries runs in fibers of the default runtime, and so does the body of a loop over
// [Stream.All]: wrap code that blocks outside of coir in [coir.Blocking].
//
// If a function passed to a stage panics, the sink panics: with the same value if the stream has no boundaries, and
// with a [*coir.PanicError] if it has. When the sink's context ends, all waits of the stream end, and the sink returns
// the context's error. If the context has already ended, the sink runs nothing. The sink waits for functions that block
// outside of coir, or compute for a long time.
//
// # Cost
//
// Stages such as [Map] and [Filter] are calls in the loop of their source: there is no channel and no fiber between two
// of them. A stage that needs concurrency, time or a buffer is a boundary: the stages before it run in a fiber of their
// own, and the elements pass through a channel. [Stream.Explain] prints the loops of a stream and the boundaries
// between them.
//
// The consumer gets one element at a time, and a source makes an element when the consumer wants it. [Reduce], [Count],
// [ToSlice] and [Batch] are exceptions, because they take everything in any case. If the source is a slice, or lines
// that have been read, they may take up to 256 elements at once, if that is about 10 microseconds of work: then the
// function of a stage gets several elements before the function of the next stage gets the first of them.
//
// # Names
//
// Reports and snapshots call the fibers and channels of a stage by its kind, and show the line that made it. To tell
// stages apart more easily, give them names with [Stream.Named].
//
// # Elements in flight
//
// If a stream ends early, because its consumer stops, a function fails or the context ends, some elements have left the
// source and have not reached the consumer. The stages drop them: elements in the channels of boundaries, in batches
// that are not full, in open groups, and results of [Parallel] that are not yet due. Only [Buffer] can hand over its
// own: with [coir.OnUndelivered]. An element with which a function was called belongs to that function.
//
// To end a stream early without dropping an element, end its source, with [Until] directly behind it.
//
// So do not acknowledge an element when it enters the stream, but in the sink, after the last stage: then its sender
// repeats the elements that were in flight. If nobody can repeat them, remember each element in a [Map] behind the
// source, and forget it in the sink: what you remember when the sink has returned was in flight. The package example
// InFlight, in example_test.go, does that. [From] passes on each element that it takes out of its channel; the others
// stay there.
//
// # Stages that you can write yourself
//
// [Stage] turns a function with an input and an output into a stage. The function may start fibers, and wait for what
// it likes.
//
// The package has no stages that are one line of other stages. For a side effect for each element, use a [Map] that
// returns its argument; to flatten, [FlatMap] with [FromSlice]; for a steady pace without bursts, [Throttle] with a
// burst of 1; to give a slow consumer only the newest element, [Buffer] with [coir.Conflated]; for the last element,
// the minimum, any and all, [Reduce], or [First] of a [Filter]; to add the time to each element, a [Map] that calls
// [coir.Now].
package stream
