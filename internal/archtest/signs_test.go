package archtest

import (
	"go/build/constraint"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quotedIn matches a quoted heading beside the file that it is in; tableOf the same in the other order.
var (
	quotedIn = regexp.MustCompile("\"([^\"|]+)\" in (?:`([\\w./-]+\\.\\w+)`|\\[[^]]*\\]\\(([\\w./-]+))")
	tableOf  = regexp.MustCompile(`\[[^]]*\]\(([\w./-]+)\) has a (?:table|section) "([^"|]+)"`)
	space    = regexp.MustCompile(`(?:\s|//)+`)
)

// TestQuotedHeadingsExist checks that a heading that a document quotes beside the name of a file is in that file.
func TestQuotedHeadingsExist(t *testing.T) {
	dir, found := root(t), 0
	for _, file := range documentsOf(t) {
		doc := space.ReplaceAllString(text(t, filepath.Join(dir, file)), " ")
		check := func(in, heading string) {
			found++
			if !strings.Contains(space.ReplaceAllString(text(t, filepath.Join(dir, in)), " "), heading) {
				t.Errorf("%s quotes %q of %s, which does not have it: quote what it has now", file, heading, in)
			}
		}
		for _, m := range quotedIn.FindAllStringSubmatch(doc, -1) {
			if m[2] != "" {
				check(m[2], m[1])
			} else {
				check(path.Join(path.Dir(file), m[3]), m[1])
			}
		}
		for _, m := range tableOf.FindAllStringSubmatch(doc, -1) {
			check(path.Join(path.Dir(file), m[1]), m[2])
		}
	}
	if found == 0 {
		t.Error("no heading was found: the patterns no longer fit the documents; correct them")
	}
}

// goTest matches a command that runs tests, with the directory that it is run in.
var goTest = regexp.MustCompile(`(?:cd (\S+) && )?\bgo (?:-C (\S+) )?test ([^#\n]*)`)

// TestDocsSelectTests checks that each pattern of -run and -bench in a document selects a test of the packages that are
// given with it. If none is given, or the directory that the command is run in, it must be a test of some package.
func TestDocsSelectTests(t *testing.T) {
	dir, found := root(t), 0
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string][]string) // by directory
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(text(t, filepath.Join(dir, file)), -1) {
				tests[path.Dir(file)] = append(tests[path.Dir(file)], m[1])
			}
		}
	}
	for _, file := range documentsOf(t) {
		doc := text(t, filepath.Join(dir, file))
		commands := strings.Split(inQuotes.ReplaceAllString(doc, ""), "\n")
		for _, m := range regexp.MustCompile("`[^`]+`").FindAllString(doc, -1) {
			commands = append(commands, strings.Join(strings.Fields(m), " "))
		}
		for _, command := range commands {
			for _, m := range goTest.FindAllStringSubmatch(command, -1) {
				args, _, _ := strings.Cut(strings.TrimLeft(m[3], "`"), "`")
				for _, pattern := range unselected(tests, m[1]+m[2], args, &found) {
					t.Errorf("%s: go test %s: %s selects nothing: write the name that it has now", file, args, pattern)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("%d patterns were found, want at least 15", found)
	}
}

// unselected returns the patterns in the arguments of go test that select none of the tests.
func unselected(tests map[string][]string, in, args string, found *int) (bad []string) {
	var packages []string
	fields := strings.Fields(strings.ReplaceAll(args, "=", " "))
	for _, f := range fields {
		if strings.HasPrefix(f, "./") {
			packages = append(packages, path.Join(in, f))
		} else if strings.Contains(f, "example.com/") || f == "bank" { // the reader's
			return nil
		}
	}
	if len(packages) == 0 {
		packages = slices.Collect(maps.Keys(tests))
	}
	for i, f := range fields[:max(0, len(fields)-1)] {
		pattern, _, _ := strings.Cut(strings.Trim(fields[i+1], `"'`), "/")
		if f != "-run" && f != "-bench" || slices.Contains([]string{"^$", "NAME", "YourTest"}, pattern) {
			continue
		}
		*found++
		if !slices.ContainsFunc(packages, func(p string) bool {
			return slices.ContainsFunc(tests[p], func(name string) bool {
				ok, err := regexp.MatchString(pattern, name)
				return ok && err == nil && strings.HasPrefix(name, "Benchmark") == (f == "-bench")
			})
		}) {
			bad = append(bad, pattern)
		}
	}
	return bad
}

func TestUnselectedFindsOldNames(t *testing.T) {
	tests := map[string][]string{"a": {"TestOne", "BenchmarkTwo"}, "in/b": {"TestThree"}}
	for args, want := range map[string]string{
		"-run One ./a": "", "-run 'One$' -v": "", "-run=Three ./a": "Three", "./b -run ^TestThree/x": "",
		"-run '^$' -bench Two/8 ./a": "", "-bench One .": "One", "-run Gone": "Gone", "-run Gone example.com/a": "",
	} {
		in := ""
		if strings.Contains(args, "./b") {
			in = "in"
		}
		if bad := unselected(tests, in, args, new(int)); strings.Join(bad, " ") != want {
			t.Errorf("go test %s: unselected returned %q, want %q", args, bad, want)
		}
	}
}

// platform matches tags that Go sets for a platform.
var platform = regexp.MustCompile(`^(?:unix|linux|darwin|dragonfly|freebsd|netbsd|openbsd|plan9|windows|js|wasm|386|amd64|arm64)$`)

// TestTagsAreListed checks that HACKING lists the build tags that files have. If it says that a tag builds the files of
// some directories, no other file may have the tag.
func TestTagsAreListed(t *testing.T) {
	dir := root(t)
	_, section, _ := strings.Cut(text(t, filepath.Join(dir, "docs", "HACKING.md")), "## Build tags\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := make(map[string]string)
	for _, m := range regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = m[2]
	}
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for _, file := range files {
		if ext := path.Ext(file); ext != ".go" && ext != ".s" || strings.Contains(file, "testdata/") || strings.Contains(file, "/_goroot/") {
			continue
		}
		_, line, ok := strings.Cut("\n"+text(t, filepath.Join(dir, file)), "\n//go:build ")
		if !ok {
			continue
		}
		line, _, _ = strings.Cut(line, "\n")
		expr, err := constraint.Parse("//go:build " + line)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		expr.Eval(func(tag string) bool {
			used[tag] = true
			if rows[tag] == "" && !platform.MatchString(tag) {
				t.Errorf("%s has the build tag %s: list it in docs/HACKING.md", file, tag)
			}
			return true
		})
		row := rows[line]
		if strings.HasPrefix(row, "Builds the ") && !slices.ContainsFunc(inQuotes.FindAllStringSubmatch(row, -1), func(m []string) bool {
			return strings.HasPrefix(file, m[1]+"/")
		}) {
			t.Errorf("%s has the build tag %s: name its directory in the row of docs/HACKING.md", file, line)
		}
	}
	for tag := range rows {
		if !used[tag] {
			t.Errorf("docs/HACKING.md lists the build tag %s, which no file has: remove it", tag)
		}
	}
}

// documentsOf returns the documents that describe the repository as it is.
func documentsOf(t *testing.T) (found []string) {
	t.Helper()
	files, err := Files(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if path.Ext(file) == ".md" && !slices.Contains(elsewhereTested, file) {
			found = append(found, file)
		}
	}
	return found
}
