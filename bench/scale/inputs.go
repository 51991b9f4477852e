package main

// An input is a number from which the tables are computed. It is either assumed, for a reason, or measured, by a
// command.
type input struct {
	name    string
	assumed float64 // 0: it is measured
	unit    string
	what    string
	by      string // the command, in bench unless it says otherwise, or the reason
	from    string // its name in another command: a comparison, or a benchmark and a unit
}

const (
	here     = "`go run ./scale -measure`"
	natsRate = "`go test -run '^$' -bench Rate -benchtime 10x .`, in remote/nats"
	postgres = "`go test -run '^$' -bench Send/100 -benchtime 10x .`, in remote/postgres"
)

var inputs = []input{
	{"add", 0, "ns", "an atomic addition to a word that no other core wants", here, ""},
	{"line", 0, "ns", "until another core has seen a word, and written it", here, ""},
	{"hold", 0, "ns", "a channel's lock for a send or a receive: half of both, so more than it is", here, ""},
	{"far", 3, "", "how much longer that takes with 256 cores", "two or more sockets, where this machine has one", ""},
	{"hop", 0, "ns", "processor time of a value from fiber to fiber, capacity 0",
		"`go run ./ratios -json -cpu -only rendezvous`", "rendezvous"},
	{"fiber", 0, "B", "memory of a parked fiber, 100,000 of them, with its stack", here, ""},
	{"sync", 0, "µs", "4 KiB appended to a file, and synced", here, ""},
	{"durable", 0, "/s", "values of 1 KiB through one stream, on three servers that sync, all on this machine",
		natsRate, "BenchmarkRate/durable values/s"},
	{"durable-cpu", 0, "µs", "processor time of such a value: both ends and all servers",
		natsRate, "BenchmarkRate/durable cpu-us/value"},
	{"volatile-cpu", 0, "µs", "processor time of a volatile value: both ends and the server",
		natsRate, "BenchmarkRate/volatile cpu-us/value"},
	{"ticket-cpu", 0, "µs", "processor time of a ticket that another process completes",
		natsRate, "BenchmarkRate/ticket cpu-us/value"},
	{"postgres", 0, "/s", "values of 128 bytes into one queue of PostgreSQL by 100 fibers, synced",
		postgres, "BenchmarkSend/100 values/s"},
	{"requests", 1e6, "/s", "requests", "the question", ""},
	{"cell", 50_000, "/s", "requests of a cell", "so that the loss of a cell is 5 % of all", ""},
	{"work", 100, "µs", "processor time of a request in the program itself", "a small handler; many take more", ""},
	{"hops", 10, "", "values from fiber to fiber for a request", "a guess", ""},
	{"wait", 10, "s", "how long a request waits for its ticket", "a guess: a partner that answers by a webhook", ""},
	{"value", 1024, "B", "size of a value", "that of the measured ones", ""},
	{"use", 0.5, "", "how full anything is at most", "room for the loss of a machine, and for short waits", ""},
	{"cores", 8, "", "cores of a process", "a common size of a virtual machine", ""},
	{"copies", 2, "", "bytes that a broker writes for a byte", "the log of Raft, and the stream", ""},
	{"window", 120, "s", "how long brokers remember an ID", "the default of `nats.WithWindow`", ""},
	{"id", 120, "B", "memory of an ID in a broker", "the comment of `nats.WithWindow`", ""},
}
