// Command supply looks at the modules that those of this repository are built from.
//
//	go run ./internal/supply -licences                    fails if one has a licence that is not in the list
//	go run ./internal/supply -sbom v0.1.0 > coir.cdx.json  writes a bill of materials of what users get
//
// It asks the go command which packages are built, so a module that is only in a go.mod, and none of whose packages is
// used, does not count. The bill of materials is a CycloneDX 1.5 document.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
)

var (
	licences = flag.Bool("licences", false, "check the licences of everything that is built or tested")
	sbom     = flag.String("sbom", "", "write the bill of materials of this version of coir")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run() error {
	switch {
	case *licences:
		modules, err := built(everyModule, true)
		if err != nil {
			return err
		}
		var faults []error
		for _, m := range modules {
			if _, err := licenceOf(os.DirFS(m.Dir)); err != nil {
				faults = append(faults, fmt.Errorf("%s %s: %w", m.Path, m.Version, err))
			}
		}
		if err := errors.Join(faults...); err != nil {
			return err
		}
		fmt.Printf("supply: %d modules, each with a licence of the list\n", len(modules))
		return nil
	case *sbom != "":
		modules, err := built(userModules, false)
		if err != nil {
			return err
		}
		bill, err := billOf(*sbom, modules)
		if err != nil {
			return err
		}
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(bill)
	}
	return errors.New("say -licences, or -sbom and a version")
}
