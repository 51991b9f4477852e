// Command scale writes the tables of docs/SCALE.md: how costs grow with cores, and what a million requests a second
// need. Run it in the directory bench:
//
//	go run ./scale             writes the tables from docs/scale.json
//	go run ./scale -measure    measures first, which takes some minutes; the machine must be quiet
//
// Measured inputs are in docs/scale.json, with the machine. Assumed inputs are in inputs.go, with the reasons: change
// them there to see another load.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
	"github.com/coir-go/coir/internal/document"
)

var (
	docs    = flag.String("docs", "../docs", "the directory of SCALE.md and scale.json")
	measure = flag.Bool("measure", false, "measure first, and store what comes out in scale.json")
	rounds  = flag.Int("rounds", 40, "rounds of each program that are measured")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		timing.Fail("%v", err)
	}
}

func run() error {
	if *measure {
		r, err := measureAll(*rounds, 300*time.Microsecond)
		if err != nil {
			return err
		}
		text, err := json.MarshalIndent(r, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(*docs, "scale.json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	_, want, err := written(*docs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*docs, "SCALE.md"), []byte(want), 0o644)
}

// written returns the document as it is, and as it should be.
func written(docs string) (is, want string, err error) {
	r, err := load(filepath.Join(docs, "scale.json"))
	if err != nil {
		return "", "", err
	}
	words, err := os.ReadFile(filepath.Join(docs, "design", "0012-shared-words.md"))
	if err != nil {
		return "", "", err
	}
	page, err := os.ReadFile(filepath.Join(docs, "SCALE.md"))
	if err != nil {
		return "", "", err
	}
	ops, err := counted(string(words), r.Inputs["hold"], r.Inputs["add"])
	if err != nil {
		return "", "", err
	}
	want = string(page)
	for _, t := range r.tables(ops) {
		begin, end := "<!-- "+t.name+": go run ./scale, in bench -->\n", "<!-- end of "+t.name+" -->\n"
		if want, _, err = document.Replace(want, begin, end, t.text); err != nil {
			return "", "", fmt.Errorf("SCALE.md: %w", err)
		}
	}
	return string(page), want, nil
}

// results are what was measured. When they are loaded, Inputs also contains the assumed inputs.
type results struct {
	Machine  timing.Machine
	Inputs   map[string]float64
	Programs []measured
	Growth   []point
}

// A point is a line of growth -json: a series at one size.
type point struct {
	Series, What, Unit string
	N                  int
	Cost, Growth       float64
}

func load(file string) (*results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, in := range inputs {
		if in.assumed != 0 {
			r.Inputs[in.name] = in.assumed
		} else if r.Inputs[in.name] <= 0 {
			return nil, fmt.Errorf("%s has no %s: run go run ./scale -measure", file, in.name)
		}
	}
	return &r, nil
}
