package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestImportOrder checks that no package imports one of its own layer or above.
//
// Spec: SC-45 (the scheduler does not know what is waited for)
// Spec: CH-44 (channels do not touch queues or workers)
func TestImportOrder(t *testing.T) {
	imports, err := Imports(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(imports)) {
		from := layerOf(dir)
		if from < 0 {
			t.Errorf("package %s is in no layer: add it to Layers in internal/archtest/imports.go, above everything it imports", dir)
			continue
		}
		for _, path := range imports[dir] {
			to, ours := strings.CutPrefix(path, Module)
			if !ours {
				continue
			}
			to = strings.TrimPrefix(to, "/")
			if to == "" {
				to = "."
			}
			switch layer := layerOf(to); {
			case layer < 0:
				t.Errorf("%s imports %s, which is in no layer: add it to Layers in internal/archtest/imports.go", dir, to)
			case layer >= from:
				t.Errorf("%s (layer %q) imports %s (layer %q): a package imports only from layers below its own; "+
					"declare the interface that you need where you need it",
					dir, Layers[from].Name, to, Layers[layer].Name)
			}
		}
	}
}

// TestSatellitesUseTheExportedAPI checks that a satellite, or a package below one, imports no internal package.
//
// Spec: ST-01 (combinators use the public surface)
func TestSatellitesUseTheExportedAPI(t *testing.T) {
	imports, err := Imports(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range insideDoors(imports) {
		t.Error(problem)
	}
	for _, dir := range Satellites {
		if imports[dir] == nil {
			t.Errorf("Satellites has %s, which does not exist", dir)
		}
	}
	bad := insideDoors(map[string][]string{
		"pace":       {"time", Module, Module + "/internal/park"},
		"stream/sub": {Module + "/internal/race"},
		"sim":        {Module + "/internal/policy"},
	})
	if len(bad) != 2 {
		t.Errorf("of two satellites with a door inside it finds %q", bad)
	}
}

// insideDoors returns a sentence for each internal package that a satellite imports.
func insideDoors(imports map[string][]string) (found []string) {
	for _, dir := range slices.Sorted(maps.Keys(imports)) {
		first, _, _ := strings.Cut(dir, "/")
		if !slices.Contains(Satellites, first) {
			continue
		}
		for _, path := range imports[dir] {
			if strings.HasPrefix(path, Module+"/internal/") {
				found = append(found, dir+" imports "+path+": a satellite uses the exported API of package coir alone; "+
					"if that is not enough, the API lacks something")
			}
		}
	}
	return found
}

// TestStandardLibraryOnly checks that the root module depends only on the standard library.
func TestStandardLibraryOnly(t *testing.T) {
	imports, err := Imports(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for dir, paths := range imports {
		for _, path := range paths {
			first, _, _ := strings.Cut(path, "/")
			if strings.Contains(first, ".") && path != Module && !strings.HasPrefix(path, Module+"/") {
				t.Errorf("%s imports %s: the root module uses the standard library alone; what needs more is a module of its own", dir, path)
			}
		}
	}

	mod, err := os.ReadFile(filepath.Join(root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "require" || word == "replace" || word == "tool" {
			t.Errorf("go.mod has the line %q: the root module requires nothing", strings.TrimSpace(line))
		}
	}
}

// TestLayersNamePackagesThatExist checks that every row names an existing package, because another row checks nothing.
func TestLayersNamePackagesThatExist(t *testing.T) {
	imports, err := Imports(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range Layers {
		for _, p := range layer.Packages {
			under, tree := strings.CutSuffix(p, "/...")
			_, found := imports[p]
			for dir := range imports {
				found = found || tree && (dir == under || strings.HasPrefix(dir, under+"/"))
			}
			if !found && !slices.Contains(Satellites, p) { // not all of which exist yet
				t.Errorf("layer %q names %s, but the root module has no such package: add the row with the package", layer.Name, p)
			}
		}
	}
}

// TestLayersNameEachPackageOnce checks that no package is in two layers, because it would be checked against only one.
func TestLayersNameEachPackageOnce(t *testing.T) {
	seen := make(map[string]string)
	for _, layer := range Layers {
		for _, p := range layer.Packages {
			if other, twice := seen[p]; twice {
				t.Errorf("%s is in layer %q and in layer %q", p, other, layer.Name)
			}
			seen[p] = layer.Name
		}
	}
}

// root returns the top of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
