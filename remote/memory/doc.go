// Package memory provides an in-memory transport of package remote, for tests. It needs no broker, and the processes of
// a distributed program are parts of one test:
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
// In a simulation by package sim, the network loses, delays, reorders and repeats messages, nodes are cut off, and
// nodes and the broker crash and start again. Each of these is a fault that sim.WithFaults names. The schedule decides
// whether it happens, so a token replays it, and shrinking keeps the faults that matter.
//
//	remote lose        a message between a node and the broker is lost
//	remote duplicate   such a message arrives twice
//	remote delay       such a message arrives later, up to 10 seconds, and others overtake it
//	remote refuse      the broker cannot be reached for one request, and the request fails
//	remote partition   nothing passes between a node and the broker for some time, up to a minute
//	remote crash       a node ends at once, and starts again
//	remote late room   the removal of a message is stored, and its place becomes free some milliseconds later
//	remote restart     the broker ends at once, and starts again with what is stored: leases and messages on their way
//	                   are lost
//
// [WithFaults] limits the faults of a schedule, so that a test can check what must happen in the end. It must wait long
// enough for that: after the last fault, a node may still be cut off for a minute. A test with short time limits calls
// [Broker.Heal] first, which ends the faults. A message that the broker has stored is never lost.
//
// Many schedules use up their faults while the processes open their channels. With [WithCalmStart] the faults begin
// later, when values pass.
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
