// Command figures writes the counts in README and in the documents, and the ratios in sentences.
//
//	go run ./internal/archtest/figures
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coir-go/coir/internal/archtest"
)

func main() {
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
