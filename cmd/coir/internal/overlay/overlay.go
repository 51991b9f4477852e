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
	Misfits []Misfit // in the order of the edits; none if the release is unknown
}

// Misfit is an edit that does not fit its file.
type Misfit struct {
	At, Why string // where the edit is, such as edits.diff:412, and its reason
	File    string
	Number  int // how often the file has the text that the edit replaces; -1: there is no such file
}

func (m Misfit) String() string {
	if m.Number < 0 {
		return fmt.Sprintf("%s: %s: %q: the file does not exist", m.At, m.File, m.Why)
	}
	return fmt.Sprintf("%s: %s: %q: matches %d times", m.At, m.File, m.Why, m.Number)
}

func (e *Unsupported) Error() string {
	if len(e.Misfits) == 0 {
		return fmt.Sprintf("%s is not supported yet: coir test knows %s", e.Version, Releases())
	}
	more := ""
	if n := len(e.Misfits) - 1; n > 0 {
		more = fmt.Sprintf("; more edits that do not fit: %d", n)
	}
	return fmt.Sprintf("%s is not supported yet: %s is not as expected (%v%s)\n"+
		"That is a limit of coir test, and no test was run: report it with this message.",
		e.Version, e.Misfits[0].File, e.Misfits[0], more)
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

// edited returns the text of each edited file of goroot, by its path below src. If edits do not fit, the error has all
// of them, so that they can be corrected together.
func edited(goroot, version string) (map[string]string, error) {
	files := map[string]string{}
	var misfits []Misfit
	for _, e := range editsOf(version) {
		text, ok := files[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(goroot, "src", filepath.FromSlash(e.file)))
			if errors.Is(err, fs.ErrNotExist) {
				misfits = append(misfits, Misfit{At: e.at(), Why: e.why, File: e.file, Number: -1})
				continue
			}
			if err != nil {
				return nil, err
			}
			text = string(b)
			files[e.file] = text
		}
		n := strings.Count(text, e.old)
		if n == 0 || n > 1 && !e.all && !e.first {
			misfits = append(misfits, Misfit{At: e.at(), Why: e.why, File: e.file, Number: n})
			continue
		}
		if e.first {
			n = 1
		}
		files[e.file] = strings.Replace(text, e.old, e.new, n)
	}
	if len(misfits) > 0 {
		return nil, &Unsupported{version, misfits}
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
