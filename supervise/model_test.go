package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/supervise"
)

// model is a supervisor as a list of rules, in which a failure and all its consequences are one step.
type model struct {
	strategy supervise.Strategy
	kinds    []supervise.Restart
	most     int   // restarts allowed within the last two commands and this one
	up       []int // the running children, in the order of their start
	history  []int // the commands that led to a restart
	log      []string
	gaveUp   bool
}

func (m *model) say(what string, i int) { m.log = append(m.log, what+" "+strconv.Itoa(i)) }

func (m *model) start(i int) {
	m.say("started", i)
	m.up = append(m.up, i)
}

// command makes child i fail or end, as the command with number at. It reports whether the child was running.
func (m *model) command(at, i int, fail bool) bool {
	if !slices.Contains(m.up, i) {
		return false
	}
	m.up = slices.DeleteFunc(m.up, func(k int) bool { return k == i })
	if fail {
		m.say("failed", i)
	} else {
		m.say("ended", i)
	}
	if m.kinds[i] == supervise.RestartTemporary || m.kinds[i] == supervise.RestartTransient && !fail {
		return true
	}
	m.history = slices.DeleteFunc(m.history, func(k int) bool { return k < at-2 })
	if len(m.history) >= m.most {
		m.say("gave up", i)
		m.stop(func(int) bool { return true })
		m.gaveUp = true
		return true
	}
	m.history = append(m.history, at)
	m.say("restarting", i)
	again := m.stop(func(k int) bool {
		return m.strategy == supervise.StrategyOneForAll || m.strategy == supervise.StrategyRestForOne && k > i
	})
	again = append(again, i)
	slices.Sort(again)
	for _, k := range again {
		m.start(k)
	}
	return true
}

// stop stops children, the last started first, and returns the children that may start again.
func (m *model) stop(which func(int) bool) (again []int) {
	for _, i := range slices.Backward(slices.Clone(m.up)) {
		if which(i) {
			m.say("stopped", i)
			m.up = slices.DeleteFunc(m.up, func(k int) bool { return k == i })
			if m.kinds[i] != supervise.RestartTemporary {
				again = append(again, i)
			}
		}
	}
	return again
}

var errFail = errors.New("fails by command")

// In random histories of failures and ends, a supervisor starts and stops its children as the model does, in the same
// order.
func TestSupervisorAgainstAModel(t *testing.T) {
	holds(t, func(ctx context.Context, s *sim.Sim) {
		m := &model{strategy: supervise.Strategy(s.Intn(3)), most: 1 + s.Intn(3)}
		var children []supervise.Child
		var commands []*coir.Chan[error]
		for i := range 1 + s.Intn(4) {
			m.kinds = append(m.kinds, supervise.Restart(s.Intn(3)))
			c := coir.NewChan[error](0, coir.WithName("command "+strconv.Itoa(i)))
			commands = append(commands, c)
			children = append(children, supervise.Child{
				Name: strconv.Itoa(i), Restart: m.kinds[i],
				Run: func(ctx context.Context) error {
					result, err := c.Recv(ctx)
					if err != nil {
						return err
					}
					return result
				},
			})
		}
		var log []string
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			app := supervise.New(children, supervise.WithName("app"), supervise.WithStrategy(m.strategy),
				supervise.WithIntensity(m.most, 150*time.Second), supervise.WithBackoff(time.Second, 10*time.Second))
			in, stop := coir.WithCancel(ctx)
			var result error
			sup := n.Go("app", func(context.Context) error {
				result = app.Run(in)
				return nil
			})
			for i := range children {
				m.start(i)
			}
			for at := range 8 {
				if err := coir.Sleep(ctx, time.Minute); err != nil { // longer than any backoff
					return err
				}
				for _, e := range drain(app) {
					log = append(log, e.Kind.String()+" "+e.Child)
				}
				i := s.Intn(len(children))
				var with error
				if s.Intn(3) > 0 {
					with = errFail
				}
				was := !m.gaveUp && m.command(at, i, with != nil)
				if sent := commands[i].TrySend(with) == nil; sent != was {
					s.Errorf("command %d to child %d: there is one %v, and the model says %v", at, i, sent, was)
				}
			}
			if err := coir.Sleep(ctx, time.Minute); err != nil {
				return err
			}
			stop()
			alive := len(m.up) > 0
			m.stop(func(int) bool { return true })
			if err := sup.Wait(ctx); err != nil {
				return err
			}
			var gave *supervise.GaveUpError
			if m.gaveUp != errors.As(result, &gave) || !m.gaveUp && alive != errors.Is(result, context.Canceled) {
				s.Errorf("Run returned %v", result)
			}
			for _, e := range drain(app) {
				log = append(log, e.Kind.String()+" "+e.Child)
			}
			return nil
		})
		if got, want := strings.Join(log, ", "), strings.Join(m.log, ", "); got != want {
			s.Errorf("%v, most %d, %v: %v\n%s\nand the model says\n%s", m.strategy, m.most, m.kinds, err, got, want)
		}
		s.Sometimes(m.gaveUp, "gave up")
	}, sim.WithStrategy(sim.Random))
}

// Children fail at any time, several at once, and the supervisor is cancelled at any time. No child runs twice at the
// same time, and none is left when Run returns.
func TestChaos(t *testing.T) {
	holds(t, func(ctx context.Context, s *sim.Sim) {
		running := make([]int, 3)
		var children []supervise.Child
		for i := range running {
			children = append(children, supervise.Child{
				Name: strconv.Itoa(i), Restart: supervise.Restart(s.Intn(3)),
				Run: func(ctx context.Context) error {
					if running[i]++; running[i] != 1 {
						s.Errorf("child %d runs %d times", i, running[i])
					}
					defer func() { running[i]-- }()
					switch s.Intn(4) {
					case 0:
						return nil
					case 1:
						return fmt.Errorf("child %d: %w", i, errFail)
					case 2:
						if coir.Sleep(ctx, time.Second) == nil {
							panic(errFail)
						}
					}
					return coir.WaitCancel(ctx)
				},
			})
		}
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			app := supervise.New(children, supervise.WithName("app"), supervise.WithStrategy(supervise.Strategy(s.Intn(3))),
				supervise.WithIntensity(3, time.Minute), supervise.WithBackoff(time.Second, 4*time.Second))
			n.Go("stop", func(ctx context.Context) error {
				err := coir.Sleep(ctx, time.Duration(s.Intn(8))*time.Second)
				n.Cancel(nil)
				return err
			})
			err := app.Run(ctx)
			if slices.Max(running) > 0 {
				s.Errorf("Run returned, and running are %v", running)
			}
			n.Cancel(nil)
			return err
		})
		var gave *supervise.GaveUpError
		s.Sometimes(errors.As(err, &gave), "gave up")
		s.Sometimes(errors.Is(err, errFail), "failed")
		s.Sometimes(err == nil, "ended")
	})
}
