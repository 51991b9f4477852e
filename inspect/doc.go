// Package inspect shows what a running program waits for: on a page in a browser, as text for curl, and as JSON.
//
//	go inspect.Serve(ctx, "localhost:7117")
//
// or, in a program that has a server:
//
//	mux.Handle("/debug/coir/", inspect.Handler())
//
// The handler serves
//
//	/               a page with the fibers, what they wait for, and what is wrong; it updates itself
//	/text           the same as text: curl localhost:7117/text; with ?stacks=1 it has the line where each fiber is
//	/snapshot.json  the same as JSON; schema.json of this package describes it
//	/dump           the same JSON as a file to keep; with ?stacks=1 it has the stack of each fiber
//	/fiber?id=7     one fiber as JSON, with its stack
//	/trace.json     what a [Recorder] has recorded, for ui.perfetto.dev; with ?seconds=5 the last five seconds
//
// With several runtimes, ?of=1 selects the second one. [Read] reads a dump, and [Dump.WritePage] writes a page that
// shows it without a server. [Watch] logs what is wrong, without any request.
//
// # Cost
//
// Without requests, and without a [Recorder], there is no cost. A request takes a snapshot, and requests that come at
// the same time share it. The handler keeps the last snapshot of each runtime, because an explanation needs two of
// them: at most 100,000 fibers of about 500 bytes, until no request has come for ten seconds. Any number of slow
// readers together hold at most four old snapshots, encoded and compressed; each reader has a minute.
//
// # Security
//
// The handler changes nothing, and does not show values that the program has sent or stored. It does show names, source
// positions and stacks, so not everyone should see it: without [WithRemote], [Serve] listens only on this machine. The
// handler answers only GET and HEAD. It refuses requests from pages of other sites. It also refuses requests for a host
// that is neither this machine nor named by [WithHost], so that no such page can read it by a name that points here.
// It has no access control of its own: put it behind the access control of your server.
package inspect
