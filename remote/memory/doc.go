// Package memory has a transport of package remote that is in memory, for tests. It needs no broker, and the processes
// of a distributed program are parts of one test:
//
//	broker := memory.New()
//	n.Go("replica", func(ctx context.Context) error {
//		return broker.Run(ctx, "replica", func(ctx context.Context, t *memory.Node) error {
//			... // what the process does, with t as its transport
//		})
//	})
//
// # In a simulation
//
// In a simulation by package sim the network loses messages, delays them, reorders them and passes them on twice, nodes
// are cut off, and nodes and the broker crash and start again. Each of them is a fault, which sim.WithFaults names, and
// whether it happens is a decision of the schedule: a token replays it, and shrinking keeps the faults that matter.
//
//	remote lose        a message between a node and the broker is lost
//	remote duplicate   it arrives twice
//	remote delay       it arrives later, up to 10 seconds, and others overtake it
//	remote refuse      the broker cannot be reached for one request, and the node is told so
//	remote partition   nothing passes between a node and the broker for some time, up to a minute
//	remote crash       a node ends at once, and starts again
//	remote late room   the removal of a message is stored, and its place becomes free some milliseconds later
//	remote restart     the broker ends at once, and starts again with what is stored: leases, and what is under way, are
//	                   lost
//
// A schedule has at most as many faults as [WithFaults] says, so that what must happen in the end can be checked. What
// the broker has stored is never lost.
//
// Outside of a simulation no fault happens.
package memory

// Faults returns the names of the faults, for sim.WithFaults.
func Faults() []string {
	return []string{
		faultLose, faultDuplicate, faultDelay, faultRefuse, faultPartition, faultCrash, faultRestart, faultLateRoom,
	}
}

const (
	faultLose      = "remote lose"
	faultDuplicate = "remote duplicate"
	faultDelay     = "remote delay"
	faultRefuse    = "remote refuse"
	faultPartition = "remote partition"
	faultCrash     = "remote crash"
	faultRestart   = "remote restart"
	faultLateRoom  = "remote late room"
)
