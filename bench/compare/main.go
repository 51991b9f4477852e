// Command compare compares the speed of a commit with that of the working tree.
//
// The ratios command compares coir with Go in one process. Its figures still differ from hour to hour and from process
// to process, so a ratio measured today cannot be compared with one of last week. This command builds ratios at a
// commit and at the working tree, and runs the two in alternating processes: if the machine is slow for a while, both
// are slow.
//
//	go run ./compare -base main -names rendezvous,buffered-64
//	go run ./compare -base main -names rendezvous -runs 9 -markdown
//
// It prints one line for each comparison:
//
//	NAME base=… (…..…) work=… (…..…) change=…% (…..…) allocs=…->… at most …
//
// Base and work are the medians over the processes of the ratio of coir to the other side, with their quartiles. Change
// is the relative change of that ratio between neighbouring processes, as a median with its quartiles: -30 % means that
// the ratio is 0.7 of the old one. A comparison that the commit does not have is shown as new. With -markdown the lines
// are rows of a table for the notes in docs/design.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	var o options
	flag.StringVar(&o.base, "base", "", "the commit to compare with")
	flag.StringVar(&o.names, "names", "", "compare only these, separated by commas; all that the working tree has if empty")
	flag.IntVar(&o.runs, "runs", 5, "processes of each build")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds of a process; 0 leaves each comparison its own number")
	flag.BoolVar(&o.markdown, "markdown", false, "print the rows of a Markdown table")
	flag.StringVar(&o.tree, "tree", "..", "the root of the working tree")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := errors.New("compare: only flags are expected, -base COMMIT among them, and -runs of at least 1")
	if flag.NArg() == 0 && o.base != "" && o.runs > 0 {
		err = o.run(ctx, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has been called
	}
}

type options struct {
	base, names, tree string
	runs, rounds      int
	markdown          bool
}

// run builds both sides, measures, and prints one row for each comparison to out.
func (o options) run(ctx context.Context, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	fmt.Fprintf(progress, "building %s\n", o.base)
	tree, remove, err := checkOut(ctx, o.tree, o.base, filepath.Join(dir, "tree"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	base, err := build(ctx, tree, filepath.Join(dir, "base"))
	if err != nil {
		return fmt.Errorf("the ratios command of %s cannot be built: %w", o.base, err)
	}
	fmt.Fprintln(progress, "building the working tree")
	work, err := build(ctx, o.tree, filepath.Join(dir, "work"))
	if err != nil {
		return fmt.Errorf("the ratios command of the working tree cannot be built: %w", err)
	}

	chosen := work.names
	if o.names != "" {
		chosen = strings.Split(strings.ReplaceAll(o.names, " ", ""), ",")
	}
	for _, name := range chosen {
		if !slices.Contains(work.names, name) {
			return fmt.Errorf("the working tree has no comparison called %q; go run ./ratios -list names them", name)
		}
	}
	if o.markdown {
		fmt.Fprint(out, heading)
	}
	for _, name := range chosen {
		p, failed := o.measure(ctx, name, base, work, progress)
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, failed))
			continue
		}
		if o.markdown {
			fmt.Fprintln(out, p.row().markdown())
		} else {
			fmt.Fprintln(out, p.row())
		}
	}
	return err
}

// measure measures one comparison in alternating processes of both builds.
func (o options) measure(ctx context.Context, name string, base, work *command, progress io.Writer) (pairs, error) {
	p := pairs{name: name}
	for i := range o.runs {
		order := []*command{base, work}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if !slices.Contains(c.names, name) {
				continue
			}
			f, err := c.run(ctx, name, o.rounds)
			if err != nil {
				return p, err
			}
			if c == base {
				p.base = append(p.base, f)
			} else {
				p.work = append(p.work, f)
			}
		}
		fmt.Fprintf(progress, "%s: %d of %d: %s\n", name, i+1, o.runs, p.last())
	}
	return p, nil
}
