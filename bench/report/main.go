// Command report writes docs/benchmarks.md and its drawings from docs/benchmarks.json. Run it in the directory bench:
//
//	go run ./report                                        draws the last measurements
//	go run ./report -measured ratios.jsonl,growth.jsonl    stores new measurements, and draws them
//
// Measuring takes a long time, and drawing is fast; make report does both. The files of -measured contain the output of
// the commands ratios and growth with -json. If two lines have the same name and size, the later one counts. So a
// comparison that failed can be measured again and appended:
//
//	go run ./ratios -json -only rendezvous >>../.bin/report/ratios.jsonl
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coir-go/coir/bench/internal/timing"
)

var (
	docs     = flag.String("docs", "../docs", "the directory of benchmarks.json, benchmarks.md and the drawings")
	measured = flag.String("measured", "", "store the lines of these files first, separated by commas")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		timing.Fail("report: %v", err)
	}
}

func run() error {
	stored := filepath.Join(*docs, "benchmarks.json")
	if *measured != "" {
		r, err := collect(strings.Split(*measured, ","))
		if err != nil {
			return err
		}
		if r.Machine, err = timing.ThisMachine(); err != nil {
			return err
		}
		if err := r.store(stored); err != nil {
			return err
		}
	}
	r, err := load(stored)
	if err != nil {
		return err
	}
	for name, text := range r.files() {
		path := filepath.Join(*docs, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write the report: %w", err)
		}
	}
	return nil
}

// files returns the report: the page and its drawings, by their names in docs.
func (r *report) files() map[string]string {
	files := map[string]string{"benchmarks.md": r.page()}
	for _, g := range groups {
		if rows := r.group(g); len(rows) > 0 {
			files["benchmarks/"+g.name+".svg"] = bars(g.title, rows)
		}
	}
	for _, p := range plots {
		if panels := r.panels(p); len(panels) > 0 {
			files["benchmarks/"+p.name+".svg"] = lines(p.title, panels)
		}
	}
	return files
}
