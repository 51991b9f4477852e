// Package overlay makes the overlay of the standard library that `coir test` uses to explore schedules. The overlay
// consists of edited files, added files, and packages internal/coir, internal/search and internal/replay. Most edits
// are in packages runtime, sync, sync/atomic, syscall and testing; the others are in os, os/exec, os/signal and
// net/http, and below internal and crypto. The go command applies the overlay to the user's own GOROOT when it builds a
// test. Nothing in GOROOT changes.
package overlay

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/replay"
	"github.com/coir-go/coir/internal/search"
)

// The files that are added to packages of the standard library.
//
//go:embed _goroot
var added embed.FS

// The packages that are added. Packages search and replay are the engine that package sim also uses. The command also
// uses package coir.
var packages = map[string]embed.FS{
	"internal/coir":   coir.Source,
	"internal/search": search.Source,
	"internal/replay": replay.Source,
}

// The minor releases of Go 1 that the edits are tested with.
const first, last = 26, 27

// Releases names the releases of Go that the edits are tested with.
func Releases() string { return fmt.Sprintf("Go 1.%d to 1.%d", first, last) }

// Supported reports whether a version such as go1.26.8 or go1.27rc1 belongs to a release that the edits are tested
// with.
func Supported(version string) bool {
	minor, ok := minorOf(version)
	return ok && minor >= first && minor <= last
}

// minorOf returns the minor release of Go 1 that a version belongs to.
func minorOf(version string) (minor int, ok bool) {
	m := regexp.MustCompile(`^go1\.(\d+)`).FindStringSubmatch(version)
	if m == nil {
		return 0, false
	}
	minor, err := strconv.Atoi(m[1])
	return minor, err == nil
}

// Unsupported is the error of a Go release that the edits do not fit.
type Unsupported struct {
	Version string
	File    string // the file that an edit does not fit; empty if the release is unknown
	Why     string
}

func (e *Unsupported) Error() string {
	if e.File == "" {
		return fmt.Sprintf("%s is not supported yet: coir test knows %s", e.Version, Releases())
	}
	return fmt.Sprintf("%s is not supported yet: %s is not as expected (%s)\n"+
		"That is a limit of coir test, and no test was run: report it with this message.", e.Version, e.File, e.Why)
}

// Edits reports whether the overlay changes or adds a package.
func Edits(name string) bool {
	_, ok := packages[name]
	return ok || slices.ContainsFunc(edits, func(e edit) bool { return path.Dir(e.file) == name })
}

// Make writes the overlay for the Go release in goroot below dir, unless it exists there. It returns the path of the
// file to pass to the go command's flag -overlay.
func Make(goroot, version, dir string) (string, error) {
	if !Supported(version) {
		return "", &Unsupported{Version: version}
	}
	files, err := edited(goroot, version)
	if err != nil {
		return "", err
	}
	add := func(from embed.FS, to string) error {
		return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") || path.Base(name) == "source.go" {
				return err
			}
			text, err := from.ReadFile(name)
			files[path.Join(to, strings.TrimPrefix(name, "_goroot/"))] = string(text)
			return err
		})
	}
	if err := add(added, ""); err != nil {
		return "", err
	}
	for name, source := range packages {
		if err := add(source, name); err != nil {
			return "", err
		}
	}
	return write(goroot, version, dir, files)
}

// edited returns the text of each edited file of goroot, by its path below src.
func edited(goroot, version string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range editsOf(version) {
		text, ok := files[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(goroot, "src", filepath.FromSlash(e.file)))
			if errors.Is(err, fs.ErrNotExist) {
				return nil, &Unsupported{version, e.file, "it does not exist"}
			}
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		n := strings.Count(text, e.old)
		if n == 0 || n > 1 && !e.all && !e.first {
			return nil, &Unsupported{version, e.file, fmt.Sprintf("%q occurs %d times", e.old, n)}
		}
		if e.first {
			n = 1
		}
		files[e.file] = strings.Replace(text, e.old, e.new, n)
	}
	return files, nil
}

// write writes the files and the description of the overlay into a directory whose name is a hash of their content. If
// the directory already has a description, its content is therefore correct.
func write(goroot, version, dir string, files map[string]string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, goroot, version)
	replace := map[string]string{}
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		fmt.Fprintf(h, "%s %d\n%s", path, len(files[path]), files[path])
	}
	dir = filepath.Join(dir, version+"-"+hex.EncodeToString(h.Sum(nil)[:8]))
	name := filepath.Join(dir, "overlay.json")
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	for _, path := range paths {
		to := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		replace[filepath.Join(goroot, "src", filepath.FromSlash(path))] = to
		if err := os.WriteFile(to, []byte(files[path]), 0o666); err != nil {
			return "", err
		}
	}
	b, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	temp := filepath.Join(dir, "overlay.json."+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(temp, b, 0o666); err != nil {
		return "", err
	}
	return name, os.Rename(temp, name) // written last: its presence shows that the other files are complete
}
