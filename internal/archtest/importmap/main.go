// Command importmap draws who may import whom into docs/imports.svg, from the layers of package archtest.
//
//	go run ./internal/archtest/importmap
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coir-go/coir/internal/archtest"
)

func main() {
	root, err := archtest.Root(".")
	if err == nil {
		file := filepath.Join(root, filepath.FromSlash(archtest.ImportMapFile))
		err = os.WriteFile(file, []byte(archtest.ImportMap()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "importmap:", err)
		os.Exit(1)
	}
}
