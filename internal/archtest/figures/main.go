// Command figures writes the counts in README and in the documents, and the ratios in docs/figures.md.
//
//	go run ./internal/archtest/figures            writes them, with the ratios of docs/figures.json
//	go run ./internal/archtest/figures -names     prints the ratios that docs/figures.md shows
//	go run ./internal/archtest/figures -measured  reads what bench/ratios -json prints, and writes docs/figures.json too
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/archtest"
)

var (
	names    = flag.Bool("names", false, "print the names of the ratios, separated by commas")
	measured = flag.Bool("measured", false, "read new ratios, as bench/ratios -json prints them")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := archtest.Root(".")
	if err != nil {
		return err
	}
	if *names {
		ratios, err := archtest.ReadRatios(root)
		var all []string
		for _, r := range ratios {
			all = append(all, r.Name)
		}
		fmt.Println(strings.Join(all, ","))
		return err
	}
	if *measured {
		if err := update(root); err != nil {
			return err
		}
	}
	documents, err := archtest.Figures(root)
	if err != nil {
		return err
	}
	for file, text := range documents {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(file)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// update puts the ratios of standard input in the place of those with the same names.
func update(root string) error {
	ratios, err := archtest.ReadRatios(root)
	if err != nil {
		return err
	}
	describe := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*")
	describe.Dir = root
	commit, err := describe.Output()
	if err != nil {
		return err
	}
	machine := fmt.Sprintf("%s %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for in := json.NewDecoder(os.Stdin); ; {
		var r archtest.Ratio
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return archtest.WriteRatios(root, ratios)
		} else if err != nil {
			return err
		}
		i := slices.IndexFunc(ratios, func(old archtest.Ratio) bool { return old.Name == r.Name })
		if i < 0 {
			return fmt.Errorf("docs/figures.md does not show %s", r.Name)
		}
		r.Commit, r.Machine = strings.TrimSpace(string(commit)), machine
		ratios[i] = r
	}
}
