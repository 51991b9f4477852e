package chart

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// sample returns a chart of about n steps by some actors: a ticker, a feeder, and workers that take jobs from a channel
// and write under a lock, until two of them wait for each other. It has a twin that diverges after two thirds of the
// steps.
func sample(n, actors int) *Chart {
	c := &Chart{
		Title:   fmt.Sprintf("deadlock after %d steps, 3 choices (schedule 17, strategy portfolio, seed 17): no fiber can run", n),
		Verdict: "deadlock: no fiber can run",
		Replay:  "go test example.com/shop -run '^TestOrders$' -sim.replay=s3.AAra36cCAQAAra36cCAQ",
		Actors:  "fibers",
		Objects: []Object{
			{Name: "jobs", Sort: "channel", Made: "made at shop/orders.go:12", Room: 4},
			{Name: "ledger", Sort: "lock", Room: -1}, {Name: "stock", Sort: "lock", Room: -1},
			{Name: "ready", Room: -1},
		},
	}
	split := n * 2 / 3
	trail(c, n, actors, split, 1)
	t := &Chart{Objects: c.Objects}
	trail(t, n-n/20, actors, split, 2)
	for _, i := range []int{2, 3} {
		t.Of[i].Why, t.Of[i].Ended = "", true
	}
	at := len(t.Steps)
	for i := split; i < at; i++ {
		if t.Steps[i].Until >= at {
			t.Steps[i].Until = 0
		}
	}
	c.Twin = &Twin{
		Chart: t, Here: split, There: split,
		Why:  fmt.Sprintf("step %d: worker[0] gets the turn; in the twin feed keeps it", split+1),
		Ends: "this one ends in a deadlock, the twin passes",
	}
	for i := range c.Of {
		if c.Of[i].Why != "" {
			c.Text += fmt.Sprintf("  %s %s\n", c.Of[i].Name, c.Of[i].Why)
		}
	}
	c.Text += "  cycle:\n    worker[0] waits for worker[1]\n    worker[1] waits for worker[0]\n"
	c.Cycle = []int{2, 3}
	return c
}

// trail fills a chart with n steps. Before the split they depend only on the numbers, and after it also on the way.
func trail(c *Chart, n, actors, split, way int) {
	random := rand.New(rand.NewPCG(1, 1))
	for i := range actors {
		name := fmt.Sprintf("worker[%d]", i-2)
		switch i {
		case 0:
			name = "ticker"
		case 1:
			name = "feed"
		}
		c.Of = append(c.Of, Actor{Name: name, Title: "spawned at shop/orders.go:" + fmt.Sprint(20+i), Since: -1})
	}
	add := func(actor int, kind Kind, text string, line int, did ...Use) int {
		c.Steps = append(c.Steps, Step{
			Actor: actor, Number: len(c.Steps) + 1, Kind: kind, Text: text, At: time.Duration(len(c.Steps)/7) * 10 * time.Millisecond,
			Title: fmt.Sprintf("at shop/orders.go:%d", line), Did: did, Timed: text == "sleep 10ms",
		})
		return len(c.Steps) - 1
	}
	for i := 1; i < actors && len(c.Steps) < n/2; i++ {
		c.Starts = append(c.Starts, Start{add(0, Plain, "go "+c.Of[i].Name, 19), i})
	}
	var sent []int
	for len(c.Steps) < n-4 {
		if len(c.Steps) == split-2 || len(c.Steps) == split-1 { // what follows may be two steps
			s := add(1, Plain, "yield", 42)
			if s == split-1 {
				random = rand.New(rand.NewPCG(2, uint64(way)))
				c.Steps[s].Switch = "another fiber gets the turn, although this one could continue"
			}
			continue
		}
		who := 2 + random.IntN(actors-2)
		switch random.IntN(6) {
		case 0, 1:
			s := add(0, Plain, "sleep 10ms", 31)
			add(0, Channel, "try send tokens → would block", 32)
			c.Steps[s].Until = s + 1
		case 2:
			if len(sent) < 4 {
				sent = append(sent, add(1, Channel, "send jobs", 41, Use{Object: 0, What: Put}))
			}
		case 3, 4:
			if len(sent) > 0 {
				to := add(who, Channel, "select → recv jobs", 52, Use{Object: 0, What: Get})
				c.Arrows = append(c.Arrows, Arrow{From: sent[0], To: to, Text: "jobs"})
				sent = sent[1:]
			}
		case 5:
			add(who, Lock, "lock ledger", 61, Use{Object: 1, What: Hold})
			add(who, Lock, "unlock ledger", 64, Use{Object: 1, What: Release})
		}
	}
	add(2, Lock, "lock ledger", 61, Use{Object: 1, What: Hold})
	add(3, Lock, "lock stock", 71, Use{Object: 2, What: Hold})
	for i, object := range []int{2, 1} {
		s := add(2+i, Lock, "lock "+[]string{"stock", "ledger"}[i], 62+i*10)
		c.Steps[s].Until, c.Steps[s].Wants = n, []Use{{Object: object, What: Hold}}
		c.Of[2+i].Since = s
		c.Of[2+i].Why = fmt.Sprintf("waits to lock %s, at shop/orders.go:%d", []string{"stock", "ledger"}[i], 62+i*10)
	}
	for i := range c.Steps {
		if c.Steps[i].Until == n {
			c.Steps[i].Until = len(c.Steps)
		}
	}
}
