package report

// Births numbers the actors of several schedules of a program, so that an actor has the same number in all of them,
// although actors may begin in another order in each schedule. Actors of two schedules are the same if the same parent
// started them in the same way, such as by the same go statement, and as many others in that way before.
type Births map[birth]int

type birth struct {
	parent int    // the number of the parent
	how    string // how the parent started it
	nth    int    // its position among those that the parent started in this way
}

// Schedule begins a schedule. For each actor, after its parent, call the function with the parent's number and with how
// the parent started the actor. It returns the number of the actor, which is above 0.
func (b Births) Schedule() func(parent int, how string) int {
	nth := map[birth]int{}
	return func(parent int, how string) int {
		x := birth{parent: parent, how: how}
		nth[x]++
		x.nth = nth[x]
		if b[x] == 0 {
			b[x] = len(b) + 1
		}
		return b[x]
	}
}
