package sim

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
)

// links starts fibers that may each lose a value early in a long schedule. It fails if the given
// number of fibers have lost one.
func links(fibers, lost int) program {
	return func(ctx context.Context, s *Sim) {
		var n atomic.Int32
		named := func(ctx context.Context, who string, many int) {
			for k := range many {
				_ = coir.NewChan[int](1, coir.WithName(fmt.Sprint(who, k))).Send(ctx, 1)
			}
		}
		nursery(ctx, func(_ context.Context, nu *coir.Nursery) {
			for i := range fibers {
				nu.Go("link", func(ctx context.Context) error {
					if i >= fibers/3 && s.Fault("drop") {
						n.Add(1)
					}
					named(ctx, fmt.Sprint("to ", i, " part "), 3)
					return nil
				}, coir.WithIndex(i))
			}
		})
		if named(ctx, "later ", 60); int(n.Load()) >= lost {
			s.Errorf("%d values are lost", n.Load())
		}
	}
}

// A report lists each fault that happened, below the head and in the table, whatever its length and number of fibers.
func TestReportShowsEachFault(t *testing.T) {
	if testing.Short() || slowBuild() {
		t.Skip("it is shrunk for long, and the report is the same in each build")
	}
	row := regexp.MustCompile(`(?m)^ +(=>)?[0-9]+ \|.*fault drop`)
	for _, lost := range []int{1, 9} {
		f := found(t, KindError, links(24, lost), WithFaults("drop"))
		text := f.Error()
		if n := len(row.FindAllString(text, -1)); n != lost {
			t.Errorf("the table has %d faults of %d:\n%s", n, lost, text)
		}
		head := regexp.MustCompile(`values are lost\n  main says so, at sim/columns_test.go:[0-9]+\n` +
			`  faults: drop, in link\[[0-9]+\] at step [0-9]+ \(sim/columns_test.go:[0-9]+\)`)
		if !head.MatchString(text) || strings.Contains(text, "; and 4 more\n") != (lost == 9) {
			t.Errorf("not under its head:\n%s", text)
		}
		if n := strings.Count(text, "drop, in link["); n != min(lost, 5) {
			t.Errorf("%d faults of %d are under the head:\n%s", n, lost, text)
		}
	}
}

// If there are many fibers, those that matter to the failure have columns, and not just those that were started first.
func TestColumnsAreOfTheFibersThatMatter(t *testing.T) {
	if testing.Short() || slowBuild() {
		t.Skip("it is shrunk for long, and the report is the same in each build")
	}
	f := found(t, KindError, links(24, 1), WithFaults("drop"))
	at := regexp.MustCompile(`faults: drop, in (link\[[0-9]+\])`).FindStringSubmatch(f.Error())
	if at == nil {
		t.Fatal(f)
	}
	says(t, f, " "+at[1]+" ", "| fault drop ")
	var head string
	for line := range strings.Lines(f.Error()) {
		if strings.HasPrefix(strings.TrimSpace(line), "step |") {
			head = line
		}
	}
	if !strings.Contains(head, "| main ") || !strings.Contains(head, "| "+at[1]+" ") ||
		strings.Contains(head, "link[0]") {
		t.Errorf("no column of its own: %s%v", head, f)
	}
	// A fiber panics before the others end.
	f = found(t, KindPanic, func(ctx context.Context, _ *Sim) {
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			c := coir.NewChan[int](0, coir.WithName("c"))
			for i := range 30 {
				n.Go("user", func(ctx context.Context) error {
					if i == 17 {
						panic("no room")
					}
					_, _ = c.Recv(ctx)
					_ = coir.NewChan[int](1, coir.WithName(fmt.Sprint("c", i))).Send(coir.Shield(ctx), 1)
					return nil
				}, coir.WithIndex(i))
			}
		})
	})
	says(t, f, "panic in fiber user[17]", "| user[17] ")
}

// Each step of a schedule is in the table, in a repetition, or in a gap.
func TestStepsLeftOutAddUp(t *testing.T) {
	if testing.Short() || slowBuild() {
		t.Skip("it is shrunk for long, and the report is the same in each build")
	}
	f := found(t, KindError, links(24, 1), WithFaults("drop"))
	row := regexp.MustCompile(`^ +(?:=>)?([0-9]+) \|`)
	left := regexp.MustCompile(`^ +\.\.\. steps? ([0-9]+)(?: to ([0-9]+))? left out$`)
	again := regexp.MustCompile(` more, until step ([0-9]+)\n`)
	last, gaps := 0, 0
	for line := range strings.Lines(f.Error()) {
		from, to := "", ""
		if m := row.FindStringSubmatch(line); m != nil {
			from, to = m[1], m[1]
		} else if m := left.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			from, to = m[1], m[1]
			if gaps++; m[2] != "" {
				to = m[2]
			}
		} else if m := again.FindStringSubmatch(line); m != nil {
			from, to = strconv.Itoa(last+1), m[1]
		} else {
			continue
		}
		if n, _ := strconv.Atoi(from); n != last+1 {
			t.Errorf("after step %d: %s", last, line)
		}
		last, _ = strconv.Atoi(to)
	}
	if last != f.Steps || gaps == 0 {
		t.Errorf("%d gaps, and the last step is %d of %d:\n%v", gaps, last, f.Steps, f)
	}
}

func TestTwinEndsInAnError(t *testing.T) {
	f := found(t, KindError, readThenWrite)
	if ends := newReport(f).passing().Ends; !strings.HasPrefix(ends, "this schedule fails (error) after ") {
		t.Error(ends)
	}
}

// The table of a program that is not deterministic shows the rows where it diverged, with a mark.
func TestReportShowsWhereTheSameDecisionsLedAnotherWay(t *testing.T) {
	runs := 0
	f := found(t, KindNondeterministic, func(ctx context.Context, _ *Sim) {
		runs++
		for k := range 300 {
			name := fmt.Sprint("c", k)
			if k == 100 {
				name = "forked"
			}
			c := coir.NewChan[int](1, coir.WithName(name))
			if k == 100 && runs%2 == 0 {
				_, _ = c.TryRecv()
			}
			_ = c.Send(ctx, 1)
		}
	})
	says(t, f, "gave a different run after step 100\n", "marks: => here the same decisions gave a different run",
		"    100 | send c99 ", "  =>101 | ", "    102 | ")
}

// The report of a fiber that waits for a native mutex examines nurseries that other fibers have just opened. The race
// detector, if it is on, reports nothing.
func TestReportOfANativeWaitBesideNurseries(t *testing.T) {
	var mu sync.Mutex
	_ = found(t, KindBlocked, func(ctx context.Context, _ *Sim) {
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for range 4 {
				n.Go("opens", func(ctx context.Context) error {
					for range 5 {
						nursery(ctx, func(_ context.Context, n *coir.Nursery) {
							n.Go("child", func(ctx context.Context) error { return coir.Sleep(ctx, time.Second) })
						})
					}
					return nil
				})
			}
			for range 2 {
				n.Go("locks", func(ctx context.Context) error {
					if err := coir.Sleep(ctx, 3*time.Second); err != nil {
						return err
					}
					mu.Lock()
					defer mu.Unlock()
					return coir.Sleep(ctx, 1)
				})
			}
		})
	})
}

// The report of a fiber that waits for a native mutex names the fibers that may hold it, and shows their last steps.
func TestReportNamesTheHolderOfANativeMutex(t *testing.T) {
	for _, idle := range []int{0, 2} {
		var mu sync.Mutex
		at := line(18)
		f := found(t, KindBlocked, func(ctx context.Context, _ *Sim) {
			c := coir.NewChan[int](0, coir.WithName("c"))
			nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
				for i := range idle {
					n.Go("idle", func(ctx context.Context) error {
						_, err := c.Recv(ctx)
						return err
					}, coir.WithIndex(i))
				}
				for i := range 20 {
					n.Go("early", func(ctx context.Context) error {
						return coir.NewChan[int](1, coir.WithName(fmt.Sprint("c", i))).Send(ctx, 1)
					}, coir.WithIndex(i))
				}
				n.Go("holder", func(ctx context.Context) error {
					mu.Lock() // the waiting fiber's, once the test has ended its wait
					defer mu.Unlock()
					return coir.Sleep(ctx, time.Minute)
				})
				n.Go("stuck", func(ctx context.Context) error {
					err := coir.Sleep(ctx, time.Second)
					mu.Lock()
					return err
				})
				for i := range 20 {
					n.Go("later", func(ctx context.Context) error {
						return coir.Sleep(ctx, time.Millisecond)
					}, coir.WithIndex(i))
				}
			})
		}, WithStrategy(func(uint64) Strategy { return RoundRobin() }))
		mu.Unlock()
		verb := " probably holds it"
		if idle > 0 {
			verb = " may hold it"
			says(t, f, "\n  idle[0] may hold it: it is in recv c, at ")
		}
		says(t, f, "fiber stuck waits outside of coir, for a native mutex",
			"\n  holder"+verb+": it is in sleep 1m0s, at "+at+" (its last step is ",
			"\n  ... main go later: 1",
			"| holder ", "| stuck ", " | sleep 1m0s ", " | sleep 1s ")
	}
}

// A fiber that counts a value before its send, and whose send is cancelled, has a column with that send, although eight
// other fibers do more and end later.
func TestColumnsShowASendThatWasCancelled(t *testing.T) {
	var acked, got int
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		acked, got = 0, 0
		lines := coir.NewChan[int](0, coir.WithName("lines"))
		in, cancel := coir.WithCancel(ctx)
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("source", func(context.Context) error {
				acked++ // too early
				_ = lines.Send(in, 1)
				return nil
			})
			for i := range 9 {
				n.Go("bystander", func(ctx context.Context) error {
					for range 4 {
						_ = coir.NewChan[int](1, coir.WithName("own")).Send(ctx, 1)
					}
					return coir.Sleep(ctx, time.Duration(i+1)*time.Second)
				}, coir.WithIndex(i))
			}
			_ = coir.Sleep(ctx, time.Millisecond)
			cancel()
			if _, err := lines.TryRecv(); err == nil {
				got++
			}
		})
		if acked != got {
			s.Errorf("%d lines were acknowledged, and %d came", acked, got)
		}
	}, WithStrategy(func(uint64) Strategy { return RoundRobin() }))
	says(t, f, "| source ", "| send lines → cancelled ")
}

// The last row of a fiber that panics has the panic.
func TestReportShowsThePanicOfAFiber(t *testing.T) {
	long := strings.Repeat("boom ", 20)
	for value, want := range map[any]string{
		"boom": "| end: panic: boom ", "boom\nbang": "| end: panic: boom ", long: "| end: panic: boom boom ",
		errors.New("bang"): "| end: panic: bang ",
	} {
		f := found(t, KindPanic, func(ctx context.Context, _ *Sim) {
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Go("bomb", func(context.Context) error { panic(value) })
				n.Go("quiet", func(context.Context) error { return errors.New("no panic") })
				n.Go("deaf", func(ctx context.Context) error { return coir.Sleep(ctx, time.Second) })
			})
		})
		if says(t, f, want, "| end "); value == long {
			says(t, f, "…")
		}
	}
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		func() {
			defer func() { s.Errorf("it panicked: %v", recover() != nil) }()
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Go("till", func(context.Context) error { panic("empty") })
			})
		}()
	})
	says(t, f, "| end: panic: empty ")
}

// Of many fibers, the one that closed a channel, or cancelled a context, has a row if another row shows that it was
// closed or cancelled.
func TestReportShowsWhoClosedAndCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		do        func(cancel func(), lines *coir.Chan[int])
		by, found string
	}{
		"close":  {func(_ func(), lines *coir.Chan[int]) { lines.Close() }, "close lines", "| recv lines → closed "},
		"cancel": {func(cancel func(), _ *coir.Chan[int]) { cancel() }, "cancel", "| recv lines → cancelled "},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprint(name, waits), func(t *testing.T) {
				f := found(t, KindError, func(ctx context.Context, s *Sim) {
					lines := coir.NewChan[int](0, coir.WithName("lines"))
					in, cancel := coir.WithCancel(ctx)
					nursery(ctx, func(_ context.Context, n *coir.Nursery) {
						after := time.Duration(1)
						if waits {
							after = 30 * time.Second
						}
						n.Go("closer", func(ctx context.Context) error {
							defer c.do(cancel, lines)
							return coir.Sleep(ctx, after)
						})
						for i := range 9 {
							n.Go("bystander", func(ctx context.Context) error {
								for range 9 {
									_ = coir.Sleep(ctx, time.Second)
									_ = coir.NewChan[int](1, coir.WithName("own")).Send(ctx, i)
								}
								return nil
							}, coir.WithIndex(i))
						}
						n.Go("reader", func(ctx context.Context) error {
							_ = coir.Sleep(ctx, 20*time.Second)
							if _, err := lines.Recv(in); err != nil {
								_ = coir.Sleep(ctx, time.Second)
								s.Errorf("no line: %v", err)
							}
							return nil
						})
					})
				}, WithStrategy(func(uint64) Strategy { return RoundRobin() }))
				says(t, f, c.found)
				if text := f.Error(); !strings.Contains(text, "closer "+c.by+", at sim/columns_test.go:") &&
					!strings.Contains(text, "| "+c.by+" ") { // it has a column
					t.Errorf("the report does not say who did it:\n%s", text)
				}
			})
		}
	}
}

// The end of a fiber that cancels others by its error has a row with the error.
func TestReportShowsTheErrorThatCancels(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("reader", func(ctx context.Context) error { _, err := c.Recv(ctx); return err })
			n.Go("broken", func(context.Context) error { return errors.New("disk full\nagain") })
		})
		s.Errorf("closed")
	})
	says(t, f, "| recv c → cancelled ", "| end: error: disk full |", "| end ")
}

// A value that a buffer of a stream drops is in the report: if it is full, and what was read ahead when the sink stops.
func TestReportShowsWhatABufferDrops(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		got := 0
		lines := stream.Buffer(stream.FromSlice([]int{1, 2, 3, 4, 5, 6}), 2).Named("lines")
		_ = stream.ForEach(ctx, lines, func(ctx context.Context, _ int) error {
			got++
			if err := coir.Sleep(ctx, time.Second); err != nil || got < 2 {
				return err
			}
			return errors.New("stop")
		})
		s.Errorf("%d came", got)
	}, WithStrategy(func(uint64) Strategy { return RoundRobin() }))
	says(t, f, "| stream.ForEach lines: abort lines → 2 values dropped |", "| stream.FromSlice lines → closed |")

	f = found(t, KindError, func(ctx context.Context, s *Sim) {
		got := 0
		lines := stream.Buffer(stream.FromSlice([]int{1, 2, 3, 4, 5, 6}), 2, coir.WithOverflow(coir.OverflowDropOldest))
		_ = stream.ForEach(ctx, lines, func(ctx context.Context, _ int) error {
			got++
			return coir.Sleep(ctx, time.Second)
		})
		s.Errorf("%d came", got)
	}, WithStrategy(func(uint64) Strategy { return RoundRobin() }))
	says(t, f, "→ dropped the oldest ")
}
