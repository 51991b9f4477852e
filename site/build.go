package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// host is the target of links to files of the repository that are not pages, and packages that of links to the
// documentation of packages.
//
// A document of one module links to files of another by these, and not by relative links. The documents are also read
// in the module cache, where the modules of this repository are not beside each other.
const (
	host     = "https://github.com/coir-go/coir/"
	packages = "https://pkg.go.dev/github.com/coir-go/coir/"
)

//go:embed assets
var assets embed.FS

// A page is a document after parsing.
type page struct {
	entry
	out      string // the path of the page, from the root of the site
	content  []byte // the document
	tree     ast.Node
	headings map[string]bool // the anchors of its headings
	images   []string
}

// build returns the files of the site. The error joins all broken links.
func build(repo fs.FS, nav []section) (map[string][]byte, error) {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	)
	pages := make(map[string]*page)
	for _, s := range nav {
		for _, e := range s.pages {
			p, err := read(repo, markdown, e)
			if err != nil {
				return nil, err
			}
			pages[e.source] = p
		}
	}
	frame, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	var faults []error
	var index []found
	for _, s := range nav {
		for _, e := range s.pages {
			p := pages[e.source]
			index = append(index, p.index()...) // before the links are changed to those of the site
			faults = append(faults, p.link(repo, pages)...)
			var body, whole bytes.Buffer
			if err := markdown.Renderer().Render(&body, p.content, p.tree); err != nil {
				return nil, fmt.Errorf("%s: %w", e.source, err)
			}
			err := frame.Execute(&whole, framed{
				Title: e.title, Up: up(p.out), Nav: navigation(nav, pages, p), Source: host + "blob/main/" + e.source,
				Body: template.HTML(body.String()), //nolint:gosec // produced by goldmark, which drops raw HTML
			})
			if err != nil {
				return nil, err
			}
			files[p.out] = whole.Bytes()
			for _, image := range p.images {
				if files[siteName(image)], err = fs.ReadFile(repo, image); err != nil {
					faults = append(faults, fmt.Errorf("%s: %w", e.source, err))
				}
			}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	list, err := json.Marshal(index)
	if err != nil {
		return nil, err
	}
	files["search-index.js"] = append(append([]byte("window.searchIndex = "), list...), ";\n"...)
	for _, name := range []string{"site.css", "site.js"} {
		if files[name], err = assets.ReadFile("assets/" + name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// read reads and parses a document.
func read(repo fs.FS, markdown goldmark.Markdown, e entry) (*page, error) {
	content, err := fs.ReadFile(repo, e.source)
	if err != nil {
		return nil, err
	}
	p := &page{entry: e, out: siteName(e.source), content: content, headings: make(map[string]bool)}
	names := parser.NewContext(parser.WithIDs(&anchors{used: make(map[string]int)}))
	p.tree = markdown.Parser().Parse(text.NewReader(content), parser.WithContext(names))
	err = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering {
			p.headings[anchor(h)] = true
		}
		return ast.WalkContinue, nil
	})
	return p, err
}

// siteName returns the place of a repository file on the site: README is the first page, and docs is the root.
func siteName(source string) string {
	switch source {
	case "README.md":
		return "index.html"
	case "docs/README.md":
		return "guides.html"
	}
	name := strings.TrimPrefix(source, "docs/")
	if base, ok := strings.CutSuffix(name, ".md"); ok {
		return strings.ToLower(base) + ".html"
	}
	return name
}

// up returns the relative path from a page to the root of the site.
func up(name string) string { return strings.Repeat("../", strings.Count(name, "/")) }

func anchor(h *ast.Heading) string {
	id, _ := h.AttributeString("id")
	b, _ := id.([]byte)
	return string(b)
}

// anchors names headings like the host of the repository, so that a link works in both places: in lower case, with
// hyphens for spaces, and without other characters.
type anchors struct{ used map[string]int }

// Generate implements parser.IDs.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(string(value))) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		}
	}
	id := b.String()
	n := a.used[id]
	a.used[id]++
	if n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (a *anchors) Put(value []byte) { a.used[string(value)]++ }

// link changes the links of a page to those of the site, and returns the broken ones as errors.
func (p *page) link(repo fs.FS, pages map[string]*page) []error {
	var faults []error
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var to *[]byte
		switch n := n.(type) {
		case *ast.Link:
			to = &n.Destination
		case *ast.Image:
			to = &n.Destination
		default:
			return ast.WalkContinue, nil
		}
		changed, err := p.resolve(repo, pages, string(*to), n.Kind() == ast.KindImage)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s links to %s: %w", p.source, *to, err))
		}
		*to = []byte(changed)
		return ast.WalkContinue, nil
	})
	return faults
}

var (
	errNoFile    = errors.New("no such file")
	errNoHeading = errors.New("the page has no such heading")
	errOutside   = errors.New("the file is in another module, so the link leads nowhere in the module cache: link to " +
		packages + " or " + host)
)

// moduleOf returns the directory of the module that a file or directory of the repository belongs to.
func moduleOf(repo fs.FS, name string) string {
	for ; name != "."; name = path.Dir(name) {
		if _, err := fs.Stat(repo, path.Join(name, "go.mod")); err == nil {
			break
		}
	}
	return name
}

// checkHosted checks that a link to the repository, or to the documentation of a package, leads to a file that exists.
// Links to the root of either, and to other pages of the host, are not checked.
func checkHosted(repo fs.FS, to string) error {
	to, _, _ = strings.Cut(to, "#")
	for _, prefix := range []string{host + "tree/main/", host + "blob/main/", packages} {
		if file, ok := strings.CutPrefix(to, prefix); ok && file != "" {
			if _, err := fs.Stat(repo, strings.TrimSuffix(file, "/")); err != nil {
				return errNoFile
			}
		}
	}
	return nil
}

// resolve returns the link on the site that corresponds to a link of a document.
func (p *page) resolve(repo fs.FS, pages map[string]*page, to string, image bool) (string, error) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return to, checkHosted(repo, to)
	}
	file, heading, _ := strings.Cut(to, "#")
	target := p.source
	if file != "" {
		target = path.Join(path.Dir(p.source), file)
		if moduleOf(repo, target) != moduleOf(repo, p.source) {
			return "", errOutside
		}
	}
	if other, ok := pages[target]; ok {
		if heading != "" && !other.headings[heading] {
			return "", errNoHeading
		}
		if heading != "" {
			heading = "#" + heading
		}
		if file == "" {
			return heading, nil
		}
		return up(p.out) + other.out + heading, nil
	}
	info, err := fs.Stat(repo, target)
	switch {
	case err != nil:
		return "", errNoFile
	case image:
		p.images = append(p.images, target)
		return up(p.out) + siteName(target), nil
	case info.IsDir():
		return host + "tree/main/" + target, nil
	}
	return host + "blob/main/" + target, nil
}

// framed is the data of page.html.
type framed struct {
	Title, Up, Source string
	Nav               []navSection
	Body              template.HTML
}

type navSection struct {
	Title string
	Open  bool
	Pages []navPage
}

type navPage struct {
	Title, Link string
	Here        bool
}

// navigation returns the navigation for page p, with its own section open.
func navigation(nav []section, pages map[string]*page, p *page) []navSection {
	var all []navSection
	for _, s := range nav {
		shown := navSection{Title: s.title}
		for _, e := range s.pages {
			here := e.source == p.source
			shown.Open = shown.Open || here
			shown.Pages = append(shown.Pages, navPage{e.title, up(p.out) + pages[e.source].out, here})
		}
		all = append(all, shown)
	}
	return all
}

// found is an entry of the search index: the text under one heading.
type found struct {
	Link  string `json:"l"`
	Page  string `json:"p"`
	Title string `json:"t"`
	Text  string `json:"x"`
}

// index returns the index entries of a page.
func (p *page) index() []found {
	all := []found{{Link: p.out, Page: p.title, Title: p.title}}
	var b strings.Builder
	flush := func() {
		all[len(all)-1].Text = strings.Join(strings.Fields(b.String()), " ")
		b.Reset()
	}
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level > 1 {
			flush()
			all = append(all, found{Link: p.out + "#" + anchor(h), Page: p.title, Title: words(h, p.content)})
			continue
		}
		b.WriteString(words(n, p.content) + " ")
	}
	flush()
	return all
}

// words returns the text of a node without markup.
func words(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}
