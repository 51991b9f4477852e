package main

// A section is a heading of the navigation, with its pages.
type section struct {
	title string
	pages []entry
}

// An entry is a page of the navigation.
type entry struct {
	source string // the document's path, from the root of the repository
	title  string // shown in the navigation
}

// sections is the navigation. The test of this package fails if a document in docs is missing here.
var sections = []section{
	{"Start", []entry{
		{"README.md", "What coir is"},
		{"docs/README.md", "Guides by task"},
		{"docs/why.md", "Why coir"},
		{"docs/questions.md", "Questions and answers"},
		{"docs/examples.md", "Examples by task"},
	}},
	{"Finding bugs in plain Go", []entry{
		{"docs/guide/coir-test.md", "coir test"},
		{"docs/guide/coir-test-reference.md", "coir test: reference"},
		{"docs/guide/ci.md", "In CI"},
		{"docs/guide/reports.md", "Reports"},
		{"docs/guide/coir-test-real-code.md", "On well-known modules"},
		{"docs/guide/coir-test-services.md", "On services"},
	}},
	{"Guides by task", []entry{
		{"docs/guide/moving.md", "Moving from errgroup, pools and channels"},
		{"docs/guide/service.md", "A service"},
		{"docs/guide/kinds.md", "Choosing a channel"},
		{"docs/guide/locks.md", "Locks"},
		{"docs/guide/streams.md", "Streams"},
		{"docs/guide/io.md", "HTTP, databases and sockets"},
		{"docs/guide/desk.md", "Answers from outside"},
		{"docs/guide/remote.md", "Channels across processes"},
		{"docs/guide/buffers.md", "Buffers"},
	}},
	{"Testing with coir", []entry{
		{"docs/guide/testing.md", "The simulator"},
		{"docs/guide/from-synctest.md", "From synctest"},
	}},
	{"Running it", []entry{
		{"docs/guide/production.md", "In production"},
		{"docs/guide/seeing.md", "Seeing what fibers wait for"},
		{"docs/guide/tuning.md", "Tuning"},
		{"docs/benchmarks.md", "Benchmarks"},
		{"docs/SCALE.md", "Scale"},
		{"SECURITY.md", "Security"},
		{"CHANGELOG.md", "Changes"},
	}},
	{"Working on coir", []entry{
		{"CONTRIBUTING.md", "Contributing"},
		{"docs/HACKING.md", "How to work on coir"},
		{"docs/ARCHITECTURE.md", "The code on one page"},
		{"docs/internals.md", "What coir relies on"},
	}},
	{"Design", []entry{
		{"docs/design/0001-waking-workers.md", "1: waking workers"},
		{"docs/design/0002-who-calls.md", "2: who calls"},
		{"docs/design/0003-cancel-without-registering.md", "3: cancel without registering"},
		{"docs/design/0004-smaller-than-designed.md", "4: smaller than designed"},
		{"docs/design/0005-what-limits-speed.md", "5: what limits speed"},
		{"docs/design/0006-how-channels-wait.md", "6: how channels wait"},
		{"docs/design/0007-what-limits-channels.md", "7: what limits channels"},
		{"docs/design/0008-exploring-the-real-code.md", "8: exploring the real code"},
		{"docs/design/0009-threads-and-goroutine-state.md", "9: threads and goroutine state"},
		{"docs/design/0010-below-package-context.md", "10: below package context"},
		{"docs/design/0011-schedules-of-plain-go.md", "11: schedules of plain Go"},
		{"docs/design/0012-shared-words.md", "12: shared words"},
		{"docs/design/0013-what-satellites-stand-on.md", "13: what satellites stand on"},
		{"docs/design/0014-native-blocking.md", "14: native blocking"},
		{"docs/design/0015-sockets.md", "15: sockets"},
		{"docs/design/0016-tickets.md", "16: tickets"},
		{"docs/design/0017-goker.md", "17: GoKer"},
		{"docs/design/0018-loopback-in-memory.md", "18: loopback in memory"},
		{"docs/design/0019-snapshots.md", "19: snapshots"},
		{"docs/design/0020-remote.md", "20: channels across processes"},
		{"docs/design/0021-buffers.md", "21: buffers"},
		{"docs/design/0022-the-site.md", "22: this site"},
	}},
}
