package chart

// Twin is a schedule that passed. It has the first steps in common with the schedule of the chart, and then one
// decision led it another way.
type Twin struct {
	Of      []Actor // as in Chart; those that both schedules have started have the same place
	Objects []Object
	Steps   []Step
	Starts  []Start
	Arrows  []Arrow
	There   int    // the first of Steps that is not in common; len(Steps) if the twin has no more
	Here    int    // and of the chart's Steps
	Why     string // the decision, in words, with both ways
	Ends    string // how both end
}
