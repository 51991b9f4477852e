package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The site of this repository can be built: every link leads to a page, a heading or a file. Each document in docs is a
// page.
func TestTheSite(t *testing.T) {
	repo := os.DirFS("..")
	files, err := build(repo, sections)
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, s := range sections {
		for _, e := range s.pages {
			pages = append(pages, e.source)
		}
	}
	err = fs.WalkDir(repo, "docs", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".md" && !slices.Contains(pages, name) {
			t.Errorf("%s is not a page: add it to sections in site/nav.go", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if len(files) < len(pages) {
		t.Errorf("%d files of %d pages", len(files), len(pages))
	}
	checkWritten(t, files)
}

var reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// checkWritten follows the links in the pages like a browser.
func checkWritten(t *testing.T, files map[string][]byte) {
	t.Helper()
	links := 0
	for name, content := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, m := range reference.FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			file, heading, _ := strings.Cut(m[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			there, ok := files[target]
			if !ok {
				t.Errorf("%s leads to %s, which is not a file of the site", name, m[1])
			}
			if heading != "" && !strings.Contains(string(there), `id="`+heading+`"`) {
				t.Errorf("%s leads to %s, which has no such heading", name, m[1])
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links were found", links)
	}
}

func one(pages ...string) []section {
	s := section{title: "Pages"}
	for _, p := range pages {
		s.pages = append(s.pages, entry{p, "Title of " + p})
	}
	return []section{s}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestLinks(t *testing.T) {
	repo := fstest.MapFS{
		"README.md":        file("# Start\n\n[a](docs/guide/a.md#two-words) [code](internal/x.go) [dir](internal) [web](https://example.com/)"),
		"docs/guide/a.md":  file("# A\n\n## Two words\n\n[up](../../README.md) [here](#two-words) ![picture](../b/p.svg)"),
		"docs/b/p.svg":     file("<svg/>"),
		"internal/x.go":    file("package x"),
		"docs/guide/b.txt": file("no page"),
	}
	files, err := build(repo, one("README.md", "docs/guide/a.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"index.html": {
			`href="guide/a.html#two-words"`, `href="` + host + `blob/main/internal/x.go"`, `href="` + host + `tree/main/internal"`,
			`href="https://example.com/"`, `href="site.css"`,
		},
		"guide/a.html": {`href="../index.html"`, `href="#two-words"`, `src="../b/p.svg"`, `id="two-words"`, `href="../site.css"`},
	} {
		for _, w := range want {
			if !strings.Contains(string(files[name]), w) {
				t.Errorf("%s lacks %s:\n%s", name, w, files[name])
			}
		}
	}
	if files["b/p.svg"] == nil {
		t.Error("the picture is not a file of the site")
	}
}

func TestLinksThatLeadNowhere(t *testing.T) {
	for link, want := range map[string]string{
		"gone.md":     "README.md links to gone.md: no such file",
		"#gone":       "README.md links to #gone: the page has no such heading",
		"a.md#gone":   "README.md links to a.md#gone: the page has no such heading",
		"../x/y.md":   "README.md links to ../x/y.md: no such file",
		"picture.svg": "README.md links to picture.svg: no such file",
	} {
		repo := fstest.MapFS{"README.md": file("# Start\n\n[x](" + link + ")"), "a.md": file("# A")}
		if files, err := build(repo, one("README.md", "a.md")); err == nil || err.Error() != want || files != nil {
			t.Errorf("%s: %v, not %s", link, err, want)
		}
	}
}

// A relative link to another module is an error, because it leads nowhere in the module cache. A link to a file or a
// package on the host is checked too.
func TestLinksToOtherModules(t *testing.T) {
	for link, want := range map[string]string{
		"remote/nats":                                  errOutside.Error(),
		"remote/nats/nats.go":                          errOutside.Error(),
		packages + "remote/nats":                       "",
		host + "tree/main/remote/nats#start":           "",
		host + "blob/main/remote/nats/nats.go":         "",
		packages + "remote/gone":                       errNoFile.Error(),
		host + "blob/main/remote/gone.go":              errNoFile.Error(),
		host + "issues":                                "",
		strings.TrimSuffix(packages, "/") + "#NewChan": "",
	} {
		repo := fstest.MapFS{
			"README.md": file("# Start\n\n[x](" + link + ")"), "go.mod": file("module x"),
			"remote/go.mod": file("module x/remote"), "remote/nats/nats.go": file("package nats"),
		}
		switch _, err := build(repo, one("README.md")); {
		case err == nil && want != "":
			t.Errorf("%s: no error", link)
		case err != nil && (want == "" || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", link, err)
		}
	}
}

// Anchors are the same as on the host of the repository.
func TestAnchors(t *testing.T) {
	a := &anchors{used: make(map[string]int)}
	for _, test := range [][2]string{
		{"Two words", "two-words"}, {"Two words", "two-words-1"}, {"In CI", "in-ci"},
		{"Children that mostly do I/O: WithGoroutine", "children-that-mostly-do-io-withgoroutine"},
		{"From outside, and not controlled", "from-outside-and-not-controlled"}, {"a_b `c`", "a_b-c"},
	} {
		if got := a.Generate([]byte(test[0]), 0); string(got) != test[1] {
			t.Errorf("%q has the anchor %q, not %q", test[0], got, test[1])
		}
	}
}

// The index has an entry for each heading, with the text below it, including code.
func TestTheIndex(t *testing.T) {
	repo := fstest.MapFS{"a.md": file("# A\n\nFirst *words*\nhere.\n\n## Second\n\n| x | y |\n|---|---|\n| one | `two` |\n\n```go\ncode\n```\n")}
	files, err := build(repo, one("a.md"))
	if err != nil {
		t.Fatal(err)
	}
	list := strings.TrimSuffix(strings.TrimPrefix(string(files["search-index.js"]), "window.searchIndex = "), ";\n")
	var got []found
	if err := json.Unmarshal([]byte(list), &got); err != nil {
		t.Fatal(err)
	}
	want := []found{
		{"a.html", "Title of a.md", "Title of a.md", "A First words here."},
		{"a.html#second", "Title of a.md", "Second", "x y one two code"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the index is %q, want %q", got, want)
	}
}

// The text of a document cannot become markup.
func TestRawHTMLIsDropped(t *testing.T) {
	repo := fstest.MapFS{"a.md": file("# A\n\n<script>alert(1)</script>\n\n`<b>`\n")}
	files, err := build(repo, one("a.md"))
	if err != nil || strings.Contains(string(files["a.html"]), "alert(1)") || !strings.Contains(string(files["a.html"]), "&lt;b&gt;") {
		t.Errorf("%v: %s", err, files["a.html"])
	}
}
