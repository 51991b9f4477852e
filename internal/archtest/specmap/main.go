// Command specmap writes spec/MAP.md from the rules and from the citations in code and tests.
//
//	go run ./internal/archtest/specmap
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coir-go/coir/internal/archtest"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "specmap:", err)
		os.Exit(1)
	}
}

func write() error {
	root, err := archtest.Root(".")
	if err != nil {
		return err
	}
	text, err := archtest.SpecMap(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "spec", "MAP.md"), text, 0o644)
}
