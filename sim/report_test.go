package sim

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// Each program here fails in only one way, whatever the strategy, so that the text of its report is known in advance.

// found explores fn until it fails.
func found(t *testing.T, kind Kind, fn func(ctx context.Context, s *Sim), opts ...Option) *Failure {
	t.Helper()
	res := Explore(fn, opts...)
	if res.Failure == nil || res.Failure.Kind != kind {
		t.Fatalf("want a %s, got: %v", kind, res.Failure)
	}
	return res.Failure
}

// says fails unless the report contains each of the texts.
func says(t *testing.T, f *Failure, texts ...string) {
	t.Helper()
	report := f.Error()
	for _, text := range texts {
		if !strings.Contains(report, text) {
			t.Errorf("the report does not say %q:\n%s", text, report)
		}
	}
}

// saysNot fails if the report contains one of the texts.
func saysNot(t *testing.T, f *Failure, texts ...string) {
	t.Helper()
	report := f.Error()
	for _, text := range texts {
		if strings.Contains(report, text) {
			t.Errorf("the report says %q:\n%s", text, report)
		}
	}
}

// The report names what each case of a select waits for, even an event or a promise, and says if it waits for a cancel.
func TestReportOfEventsAndPromises(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		e, p := coir.NewEvent(coir.WithName("ready")), coir.NewPromise[int](coir.WithName("answer"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("chooser", func(ctx context.Context) error {
				_, err := coir.Select(ctx, e.DoneCase(), p.DoneCase(nil, nil))
				return err
			})
			n.Go("idler", func(ctx context.Context) error { return coir.WaitCancel(ctx) })
			return nil
		})
	})
	says(t, f, "chooser waits in a select for the event ready, or for the promise answer", "idler   waits for a cancel",
		"no other fiber has used ready", "no other fiber has used answer")
}

// crossed takes two tokens in two orders.
func crossed(ctx context.Context, _ *Sim) {
	a, b := coir.NewChan[int](1, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))
	_, _ = a.Send(ctx, 1), b.Send(ctx, 1)
	_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i, order := range [][2]*coir.Chan[int]{{a, b}, {b, a}} {
			n.Go("lock", func(ctx context.Context) error {
				for _, c := range order {
					if _, err := c.Recv(ctx); err != nil {
						return err
					}
				}
				return errors.Join(order[1].Send(ctx, 1), order[0].Send(ctx, 1))
			}, coir.WithIndex(i))
		}
		return nil
	})
}

func TestReportNamesTheCycleOfTokensTaken(t *testing.T) {
	f := found(t, KindDeadlock, crossed)
	says(t, f,
		"deadlock after ",
		"no fiber can run",
		"lock[0] waits to receive from b, at sim/report_test.go:75 (step ",
		"lock[1] waits to receive from a, at sim/report_test.go:75 (step ",
		"; spawned at sim/report_test.go:",
		"likely cycle:\n    lock[0] waits to receive from b, from which lock[1] has taken a value at step ",
		"recv b *",
		"replay: sim.Replay(\""+f.Token+"\", program)")
	saysNot(t, f, "no fiber is left")
}

func TestReportNamesTheCycleOfFibersThatWaitForEachOther(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			peers := [2]*coir.Chan[*coir.Fiber]{coir.NewChan[*coir.Fiber](1), coir.NewChan[*coir.Fiber](1)}
			for i, name := range []string{"left", "right"} {
				self := n.Go(name, func(ctx context.Context) error {
					peer, err := peers[i].Recv(ctx)
					if err != nil {
						return err
					}
					return peer.Wait(ctx)
				})
				_ = peers[1-i].Send(ctx, self)
			}
			return nil
		})
	})
	says(t, f, "left  waits for right to end, at sim/report_test.go:", "right waits for left to end, at sim/report_test.go:",
		"  cycle:\n    left waits for right\n    right waits for left\n")
}

// A nursery's owner waits for a child, which waits to receive what only the owner has ever sent.
func TestReportNamesTheCycleThroughANursery(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		jobs := coir.NewChan[int](1, coir.WithName("jobs"))
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 2 {
				n.Go("worker", func(ctx context.Context) error {
					for {
						if _, err := jobs.Recv(ctx); err != nil {
							return err
						}
					}
				}, coir.WithIndex(i))
			}
			return jobs.Send(ctx, 1) // and does not close it
		})
	})
	says(t, f,
		"main      waits for its children to end: worker[0], worker[1], at sim/report_test.go:",
		"  worker[0] waits to receive from jobs, at sim/report_test.go:",
		"  cycle:\n    main waits for worker[0]\n",
		"\n    worker[0] waits to receive from jobs, which only main of the remaining fibers has also used\n")
}

func TestReportNamesWhatNobodyIsLeftToServe(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		results := coir.NewChan[int](0, coir.WithName("results"))
		unnamed := coir.NewChan[int](0)
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("worker", func(ctx context.Context) error {
				_ = results.Send(ctx, 1)
				return results.Send(ctx, 2)
			})
			n.Go("reader", func(ctx context.Context) error {
				_, err := results.Recv(ctx) // and returns early
				return err
			})
			n.Go("lonely", func(ctx context.Context) error {
				_, err := unnamed.Recv(ctx)
				return err
			})
			return nil
		})
	})
	says(t, f,
		"no other remaining fiber has used results so far: reader used it, and ended\n",
		"lonely waits to receive from chan@report_test.go:", "no other fiber has used chan@report_test.go:")
	saysNot(t, f, "cycle:", "no fiber is left")
}

// The remaining fibers wait for the worker to end, or for the same thing as it does: certainly no other will come.
func TestReportSaysThatNobodyIsLeftWhereThatIsCertain(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		results := coir.NewChan[int](0, coir.WithName("results"))
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 2 {
				n.Go("worker", func(ctx context.Context) error { return results.Send(ctx, 1) }, coir.WithIndex(i))
			}
			last := n.Go("last", func(ctx context.Context) error { return results.Send(ctx, 2) })
			n.Go("waiter", func(ctx context.Context) error { return last.Wait(ctx) })
			n.Go("reader", func(ctx context.Context) error {
				_, err := results.Recv(ctx) // and returns early
				return err
			})
			return nil
		})
	})
	says(t, f, "no fiber is left to receive from results: ")
}

// Each would use the other's channel next.
func TestReportDoesNotGiveUpThoseWhoHaveNotCome(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c, d := coir.NewChan[int](0, coir.WithName("c")), coir.NewChan[int](0, coir.WithName("d"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("a", func(ctx context.Context) error { return errors.Join(c.Send(ctx, 1), d.Send(ctx, 1)) })
			n.Go("b", func(ctx context.Context) error {
				_, err := d.Recv(ctx)
				_, other := c.Recv(ctx)
				return errors.Join(err, other)
			})
			return nil
		})
	})
	says(t, f, "  no other fiber has used c so far\n", "  no other fiber has used d so far\n")
	saysNot(t, f, "no fiber is left")
}

func TestReportSaysThatAChannelWasClosed(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, 1) })
			_ = coir.Sleep(ctx, 1)
			c.Close()
			return nil
		})
	})
	says(t, f, "  c was closed at step 5\n")
}

// Earlier texts of Errorf are reported, however the schedule fails.
func TestReportHasWhatWasSaidBefore(t *testing.T) {
	for kind, end := range map[Kind]func(ctx context.Context){
		KindError:    func(context.Context) {},
		KindPanic:    func(context.Context) { panic("boom") },
		KindDeadlock: func(ctx context.Context) { _, _ = coir.NewChan[int](0).Recv(ctx) },
		KindLivelock: func(ctx context.Context) {
			for coir.Yield(ctx) == nil {
			}
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			f := found(t, kind, func(ctx context.Context, s *Sim) {
				s.Errorf("the sum is %d", 3)
				for i := range 9 {
					s.Errorf("part %d", i)
				}
				end(ctx)
				if kind != KindError {
					s.Errorf("after the end")
				}
			}, WithSteps(500))
			says(t, f, "the sum is 3\n", "  error: part 0\n", "  error: part 6\n", "  ... and 2 errors more\n")
			saysNot(t, f, "part 7", "after the end")
		})
	}
}

// A fiber panics, and its sibling does not notice the cancellation that follows.
func TestReportHasThePanicBehindADeadlock(t *testing.T) {
	fn := func(end func()) program {
		return func(ctx context.Context, _ *Sim) {
			c := coir.NewChan[int](0, coir.WithName("c"))
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("bomb", func(context.Context) error { end(); return nil })
				n.Go("deaf", func(ctx context.Context) error {
					if err := c.Send(coir.Shield(ctx), 1); err != nil {
						panic(err)
					}
					return nil
				})
				return nil
			})
		}
	}
	says(t, found(t, KindDeadlock, fn(func() { panic("boom") })), "deaf waits to send to c",
		"while the schedule was ended: panic in fiber bomb: boom\n")
	saysNot(t, found(t, KindDeadlock, fn(func() {})), "panic")
}

// The table shows each name in full, however long it is and however many columns there are.
func TestReportHasLongNamesInFull(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		_, _ = coir.NewChan[int](0, coir.WithName("a-name-of-more-than-twenty-letters")).Recv(ctx)
	})
	says(t, f, "| recv a-name-of-more-than-twenty-letters * |")
	if page := chartOf(t, f); !strings.Contains(page, `"recv a-name-of-more-than-twenty-letters"`) {
		t.Error("the chart cuts the name")
	}
	f = found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](0, coir.WithName("a-name-of-more-than-twenty-letters"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 7 {
				n.Go("receiver-with-a-name-as-long", func(ctx context.Context) error {
					_, err := c.Recv(ctx)
					return err
				}, coir.WithIndex(i))
			}
		})
	})
	says(t, f, "| receiver-with-a-name |", "| -as-long[6]          |", "| recv                 |", "| a-name-of-more-than- |", "| twenty-letters *     |")
}

// Each has sent the other what it has, and now both wait in selects to receive more.
//
// Spec: SM-08 (no fiber able to continue is a deadlock)
func TestReportNamesTheChannelsOfASelect(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		a, b := coir.NewChan[int](1, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))
		late := coir.NewChan[int](0, coir.WithName("late"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("left", func(ctx context.Context) error {
				_ = b.Send(ctx, 1)
				_, _ = coir.Select(ctx, a.RecvCase(nil))
				_, err := coir.Select(ctx, a.RecvCase(nil), coir.Case{}, late.SendCase(1))
				return err
			})
			n.Go("right", func(ctx context.Context) error {
				_ = a.Send(ctx, 1)
				s := coir.NewSelector()
				s.Add(b.RecvCase(nil))
				_, _ = s.Wait(ctx)
				_, err := s.Wait(ctx)
				return err
			})
			return nil
		})
	})
	says(t, f,
		"left  waits in a select to receive from a, or to send to late, at sim/report_test.go:",
		"right waits in a select to receive from b, at sim/report_test.go:",
		"  cycle:\n    left waits in a select to receive from a, which only right of the remaining fibers has also used\n",
		"\n    right waits in a select to receive from b, which only left of the remaining fibers has also used\n",
		"no other fiber has used late so far\n",
		"| select a, late * |")
	chartOf(t, f)
}

// The trace shows the case that a select chose.
func TestReportSaysWhatASelectHasTaken(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		a, b := coir.NewChan[int](1, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))
		never := coir.NewChan[int](0)
		_, _ = a.Send(ctx, 1), b.Send(ctx, 1)
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("ab", func(ctx context.Context) error {
				_, _ = coir.Select(ctx, a.RecvCase(nil), never.RecvCase(nil))
				_, err := b.Recv(ctx)
				return errors.Join(err, a.Send(ctx, 1), b.Send(ctx, 1))
			})
			n.Go("ba", func(ctx context.Context) error {
				_, _ = coir.Select(ctx, b.RecvCase(nil))
				_, err := a.Recv(ctx)
				return errors.Join(err, a.Send(ctx, 1), b.Send(ctx, 1))
			})
			return nil
		})
	})
	says(t, f, "  likely cycle:\n    ab waits to receive from b, from which ba has taken a value at step ",
		"    ba waits to receive from a, from which ab has taken a value at step ")
}

// A selector with very many cases does not list them: a fiber that waits there might serve any channel.
func TestReportClaimsNothingThatASelectorMayRefute(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		a, b := coir.NewChan[int](0, coir.WithName("a")), coir.NewChan[int](0, coir.WithName("b"))
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("select", func(ctx context.Context) error {
				s := coir.NewSelector()
				for range 100 {
					s.Add(b.RecvCase(nil))
				}
				_, err := s.Wait(ctx)
				return err
			})
			n.Go("recv", func(ctx context.Context) error {
				_, err := a.Recv(ctx)
				return err
			})
			return nil
		})
	})
	says(t, f, "select waits for a case of a select")
	saysNot(t, f, "no fiber is left", "cycle:")
}

// A fiber waits for a goroutine that sim does not control and that is late. The report must mention the goroutine.
func TestReportOfADeadlockNamesTheGoroutinesThatCameTooLate(t *testing.T) {
	fn := func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](0, coir.WithName("answers"))
		stuck, sent := make(chan bool), make(chan bool)
		go func() {
			defer close(sent)
			<-stuck
			_ = c.TrySend(1)
		}()
		_, _ = c.Recv(ctx) // returns when the deadlock has been detected
		close(stuck)
		<-sent
	}
	f := found(t, KindDeadlock, fn, WithSchedules(1))
	says(t, f, "no fiber can run", "goroutines that are not fibers of the simulation, and so came too late to help, did:\n"+
		"    try send answers, at sim/report_test.go:")
	saysNot(t, f, "no fiber is left", "no other")
	if report := f.Error(); strings.Index(report, "goroutines that") > strings.Index(report, "main waits") {
		t.Errorf("the goroutine does not come first:\n%s", report)
	}
	again, err := Replay(f.Token, fn)
	if err != nil || again == nil {
		t.Fatal(again, err)
	}
	says(t, again, "    try send answers, at sim/report_test.go:")
}

// A panic is reported with the frames of the program, from the inside out, whether a fiber panicked or the program
// itself.
func TestReportOfAPanicHasTheFramesOfTheProgram(t *testing.T) {
	boom := func(c *coir.Chan[int]) { // in a handler, so that the library is on both sides
		_ = c.TrySend(1)
		c.Abort(nil)
	}
	lose := func(int) { panic("boom") }
	for _, where := range []string{"fiber", "program"} {
		t.Run(where, func(t *testing.T) {
			f := found(t, KindPanic, func(ctx context.Context, _ *Sim) {
				c := coir.NewChan[int](1, coir.OnUndelivered(lose))
				if where == "program" {
					boom(c)
				}
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("bomb", func(context.Context) error { boom(c); return nil })
					return nil
				})
			}, WithSchedules(1))
			says(t, f, "boom\n    sim.TestReportOfAPanicHasTheFramesOfTheProgram.func2 at sim/report_test.go:",
				"\n    sim.TestReportOfAPanicHasTheFramesOfTheProgram.func1 at sim/report_test.go:",
				" of the library and the Go runtime\n")
			if where == "fiber" {
				says(t, f, "panic in fiber bomb: boom")
			}
			saysNot(t, f, "chan.go", "sched/", "0x", "goroutine ", "runtime/panic.go")
		})
	}
}

func TestReportTellsFibersOfOneNameApart(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for range 2 {
				n.Go("same", func(ctx context.Context) error { return coir.Yield(ctx) })
			}
			return nil
		})
		s.Errorf("as always")
	})
	says(t, f, "as always", "| same#1 |", "| same#2 |")
	saysNot(t, f, "waits")
}

// Times are relative to the schedule, though the clock continues from one schedule to the next.
func TestReportTimesBeginWithTheSchedule(t *testing.T) {
	schedules := 0
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		_ = coir.Sleep(ctx, time.Minute)
		_ = coir.Yield(ctx)
		if schedules++; schedules > 2 {
			s.Errorf("the third")
		}
	}, WithStrategy(Random))
	says(t, f, " 1m0s\n")
	saysNot(t, f, "3m0s")
}

func TestReportOfALongScheduleShowsItsEnd(t *testing.T) {
	f := found(t, KindLivelock, func(ctx context.Context, _ *Sim) {
		for coir.Yield(ctx) == nil {
		}
	}, WithSteps(1000))
	says(t, f, "livelock after ", "has not ended after", "      1 | yield  | :467\n  ... main yield: 1,999 times more, until step 2000\n")
	if n := strings.Count(f.Error(), "\n"); n > 80 {
		t.Errorf("the report has %d lines", n)
	}
}

func TestReportOfManyFibersIsBounded(t *testing.T) {
	many := func(channels int) *Failure {
		return found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
			var cs []*coir.Chan[int]
			for range channels {
				cs = append(cs, coir.NewChan[int](0, coir.WithName("c")))
			}
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for i := range 300 {
					n.Go("f", func(ctx context.Context) error {
						_, err := cs[i%channels].Recv(ctx)
						return err
					}, coir.WithIndex(i*channels))
				}
				return nil
			})
		}, WithSchedules(1))
	}
	f := many(300)
	says(t, f, "... and 281 fibers more\n", "... and 296 fibers without a column\n", "and 292 more")
	if n := len(f.Error()); n > 40_000 {
		t.Errorf("the report has %d bytes", n)
	}
	// Fibers that wait for the same object share a line.
	says(t, many(1), "to end: f[0..299], at ", "  f[0..299] wait to receive from c, at sim/report_test.go:", " (300 fibers, steps ")
}

func TestReplayLineFindsSubtests(t *testing.T) {
	f := &Failure{Kind: KindError, Token: "s3.x", test: "TestA/b"}
	if got, want := f.replayLine(), "go test github.com/coir-go/coir/sim -run '^TestA$/^b$' -sim.replay=s3.x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The program of docs/guide/testing.md, with its bug.

type prices struct {
	ask      func(ctx context.Context, item string) (int, error) // the backend
	patience time.Duration
	known    map[string]int
}

func (p *prices) of(ctx context.Context, item string) (price int, err error) {
	answer := coir.NewChan[int](0, coir.WithName("answer"))
	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("ask", func(ctx context.Context) error {
			v, err := p.ask(ctx, item)
			if err != nil {
				return err
			}
			return answer.Send(ctx, v)
		})
		v, err := answer.RecvTimeout(ctx, p.patience)
		if errors.Is(err, coir.ErrTimeout) {
			v, err = p.known[item], nil // an old price is better than none
		}
		price = v
		return err
	})
	return price, err
}

func pricesTest(ctx context.Context, s *Sim) {
	p := &prices{patience: time.Second, known: map[string]int{"tea": 3}}
	p.ask = func(ctx context.Context, _ string) (int, error) {
		return 4, coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Second)
	}
	price, err := p.of(ctx, "tea")
	if err != nil || price != 3 && price != 4 {
		s.Errorf("tea is %d, %v", price, err)
	}
	s.Sometimes(price == 3, "the old price")
	s.Sometimes(price == 4, "the new price")
}

// Except for the lines that name the schedule and the place, the guide shows the output that a reader gets.
func TestGuideShowsTheReportAsItIs(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	f := found(t, KindDeadlock, pricesTest)
	place, blanks := regexp.MustCompile(`((\w+/)?\w+\.go)?:\d+|\w+\.go`), regexp.MustCompile(` +`)
	plain := func(text string) string { return blanks.ReplaceAllString(place.ReplaceAllString(text, "PLACE"), " ") }
	text := plain(string(guide))
	for _, line := range strings.Split(f.Error(), "\n") {
		line = plain(line)
		if !strings.HasPrefix(line, "deadlock after") && !strings.HasPrefix(line, " replay:") && !strings.Contains(text, line) {
			t.Errorf("the guide does not have %q of\n%v", line, f)
		}
	}
}

// A name with characters that break a line or control a terminal is quoted everywhere in a report: fibers, channels,
// faults, waits, the table and the page.
func TestReportQuotesControlCharacters(t *testing.T) {
	evil := "up\n\x1b[31mred\x00\xff"
	f := Run(1, func(ctx context.Context, s *Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			ch, other := coir.NewChan[int](0, coir.WithName("ch "+evil)), coir.NewChan[int](0, coir.WithName("other "+evil))
			_ = s.Fault("fault " + evil)
			n.Go("fiber "+evil, func(ctx context.Context) error { return ch.Send(ctx, 1) })
			f := n.Go("fiber "+evil, func(ctx context.Context) error {
				_, err := coir.Select(ctx, other.RecvCase(nil), coir.After(time.Hour), ch.SendCase(1))
				_, _ = other.Recv(ctx)
				return err
			})
			_ = f.Wait(ctx)
			return nil
		})
	}, WithFaults("fault "+evil))
	if f == nil {
		t.Fatal("the deadlock was not found")
	}
	var page strings.Builder
	if err := f.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"report": f.Error(), "page": page.String()} {
		for _, part := range []string{"\x1b", "\x00", "\xff", "up\n"} {
			if strings.Contains(text, part) {
				t.Errorf("the %s has %q:\n%q", where, part, text)
			}
		}
	}
	for _, part := range []string{`"fiber up\n\x1b[31mred\x00\xff"`, `"ch up\n`, `"other up\n`} {
		if !strings.Contains(f.Error(), part) {
			t.Errorf("the report does not have %s:\n%s", part, f.Error())
		}
	}
}

// A Try operation does not wait. The trace names it, and says whether it took something.
func TestReportOfTries(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		free, held := locks.NewMutex(coir.WithName("free")), locks.NewMutex(coir.WithName("held"))
		slots, table := locks.NewSemaphore(3, coir.WithName("slots")), locks.NewRWMutex(coir.WithName("table"))
		due := coir.NewEvent(coir.WithName("due"))
		_ = held.Lock(ctx)
		if free.TryLock() && !held.TryLock() && slots.TryAcquire(2) && !slots.TryAcquire(2) && table.TryRLock() &&
			!table.TryLock() && !due.IsSet() {
			s.Errorf("as expected")
		}
	})
	says(t, f, "| lock held ", "| try lock free   ", "| try lock held → would block ", "| try acquire slots   ",
		"| try acquire slots → would block ", "| try read-lock table   ", "| try lock table → would block ", "| is set due → no ")
	saysNot(t, f, "| await", "| lock free", "| acquire")
}

// A sleep of 0 lets others run, and the report shows it as it is in the program.
func TestReportOfASleepForNoTime(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		_ = coir.Sleep(ctx, 0)
		_ = coir.Yield(ctx)
		in, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = coir.Sleep(in, time.Minute)
		_ = coir.Sleep(in, 0)
		s.Errorf("wrong")
	})
	says(t, f, "| sleep 0s ", "| yield ", "| sleep 1m0s → timed out ", "| sleep 0s → timed out ")
}

// A WaitCancel that a deadline ends is reported as timed out.
func TestReportTellsHowAWaitForACancelEnds(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		short, stop := coir.WithTimeout(ctx, time.Second)
		defer stop()
		_ = coir.WaitCancel(short)
		other, cancel := coir.WithCancel(ctx)
		cancel()
		_ = coir.WaitCancel(other)
		s.Errorf("the end")
	})
	says(t, f, "| wait for a cancel → timed out ", "| wait for a cancel → cancelled ")
}
