// Package inspect shows what a running program waits for: on a page in a browser, as text for curl, and as JSON.
//
//	go inspect.Serve(ctx, "localhost:7117")
//
// or, in a program that has a server:
//
//	mux.Handle("/debug/coir/", inspect.Handler())
//
// Below the address there are
//
//	/               a page with the fibers, what they wait for, and why they do not get on; it updates itself
//	/text           the same as text: curl localhost:7117/text; with ?stacks=1 it has the line where each fiber is
//	/snapshot.json  the same as JSON, as schema.json of this package describes it
//	/dump           the same JSON as a file to keep; with ?stacks=1 it has the stack of each fiber
//	/fiber?id=7     one fiber as JSON, with its stack
//	/trace.json     what a [Recorder] has recorded, for ui.perfetto.dev; with ?seconds=5 the last five seconds
//
// With several runtimes, ?of=1 selects the second one. [Read] reads a dump, and [Dump.WritePage] writes a page that
// shows it without a server. [Watch] logs what is wrong, without a request.
//
// # Cost
//
// Nothing is recorded without a [Recorder]: without requests there is no cost. A request takes a snapshot, and requests
// that come at the same time share it. The handler keeps the last snapshot of each runtime, with at most 100,000 fibers
// of about 500 bytes, for as long as requests come and ten seconds more, because an explanation needs two of them. Any
// number of slow readers together hold at most four old snapshots, encoded and compressed; a reader has a minute.
//
// # Security
//
// The handler changes nothing, and shows no value that the program has sent or stored. It does show names, source
// positions and stacks, so it is not for everyone: [Serve] listens only on this machine unless [WithRemote] says
// otherwise. The handler answers GET and HEAD only. It refuses requests that a page of another site makes, and requests
// for a host that is neither this machine nor named by [WithHost], so that no such page can read it by a name that
// points here. It has no access control of its own: put it behind that of your server.
package inspect
