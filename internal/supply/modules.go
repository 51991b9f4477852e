package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// ours is the beginning of the paths of our own modules.
const ours = "github.com/coir-go/coir"

// A module is one that something is built from.
type module struct{ Path, Version, Dir string }

// everyModule returns the directories of the modules of the repository that hold Go files. tools has none.
func everyModule() ([]string, error) {
	out, err := exec.Command("git", "ls-files", "go.mod", "*/go.mod", ":!*/testdata/*", ":!tools").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var dirs []string
	for _, file := range strings.Fields(string(out)) {
		dirs = append(dirs, path.Dir(file))
	}
	return dirs, nil
}

// userModules returns the directories of the root and of the modules that users require.
func userModules() ([]string, error) {
	out, err := exec.Command(".ci/modules").Output()
	if err != nil {
		return nil, fmt.Errorf(".ci/modules: %w", err)
	}
	return append([]string{"."}, strings.Fields(string(out))...), nil
}

// built returns the modules of others that the packages in some directories are built from, also their tests if that is
// wanted, sorted by path.
func built(dirs func() ([]string, error), tests bool) ([]module, error) {
	in, err := dirs()
	if err != nil {
		return nil, err
	}
	var all []module
	for _, dir := range in {
		args := []string{"list", "-deps", "-json=Module"}
		if tests {
			args = append(args, "-test")
		}
		cmd := exec.Command("go", append(args, "./...")...)
		cmd.Dir = dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, &stderr)
		}
		found, err := decode(bytes.NewReader(out))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path+"@"+a.Version, b.Path+"@"+b.Version) })
	return slices.Compact(all), nil
}

// decode reads the output of go list -json=Module. Packages of the standard library and of our own modules are left
// out.
func decode(in io.Reader) ([]module, error) {
	var all []module
	for d := json.NewDecoder(in); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if m := p.Module; m != nil && m.Path != ours && !strings.HasPrefix(m.Path, ours+"/") {
			all = append(all, *m)
		}
	}
}

// known are the licences that a module may have, with words of their text; the first that fits counts. All of them let
// others use, change and pass on what is under them, with their notice. MPL-2.0 also asks for the source of its own
// files, which is public.
var known = []struct {
	id    string
	words []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0"}},
	{"MPL-2.0", []string{"mozilla public license", "2.0"}},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
}

// refused are licences that ask more of those who use a module than its notice.
var refused = []string{
	"gnu general public license", "gnu lesser general public license", "gnu affero", "server side public license",
}

// licenceFile matches the names of files with a licence.
var licenceFile = regexp.MustCompile(`^(?i)(licen[cs]e|copying)`)

var errNoLicence = errors.New("file LICENSE or COPYING not found: do not use it without asking its author")

// licenceOf returns the licence of the module in a directory.
func licenceOf(dir fs.FS) (string, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		content, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return "", err
		}
		return classify(string(content))
	}
	return "", errNoLicence
}

// classify returns which of the known licences a text is.
func classify(text string) (string, error) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, l := range known {
		if !slices.ContainsFunc(l.words, func(w string) bool { return !strings.Contains(text, w) }) {
			return l.id, nil
		}
	}
	for _, r := range refused {
		if strings.Contains(text, r) {
			return "", fmt.Errorf("it is under the %s, which internal/supply does not accept: use another module", r)
		}
	}
	return "", errors.New("internal/supply does not know its licence: read it, and add it there or use another module")
}
