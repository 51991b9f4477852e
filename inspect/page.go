package inspect

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the parts of the page
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/coir-go/coir/snapshot"
)

// The page is one document that loads nothing else. Its source is three files, which page joins.

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

func init() {
	pageJS = strings.Replace(pageJS, "/*counters*/", countersJS(), 1)
	// The browser hashes the parsed text, in which lines end with \n.
	for _, part := range []*string{&pageHTML, &pageCSS, &pageJS} {
		*part = strings.ReplaceAll(*part, "\r\n", "\n")
	}
	livePage, livePolicy = page("null"), policy("connect-src 'self'; frame-ancestors 'none'; ")
}

var livePage, livePolicy string

// page returns the page with data, which is JSON with < escaped.
func page(data string) string {
	return strings.NewReplacer(
		"{{policy}}", policy("connect-src 'self'; "), "{{style}}", pageCSS, "{{script}}", pageJS, "{{data}}", data,
	).Replace(pageHTML)
}

// policy returns the content security policy of the page. It allows only the page's own style and script.
func policy(more string) string {
	return "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; " + more +
		"style-src " + digest(pageCSS) + "; script-src " + digest(pageJS)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// WritePage writes a page that shows the dump without a server.
func (d *Dump) WritePage(w io.Writer) error {
	var data bytes.Buffer
	if err := writeDump(&data, d); err != nil {
		return err
	}
	_, err := io.WriteString(w, page(data.String()))
	return err
}

// countersJS returns the names of the counters of an object, and their words, as the elements of an array in the
// script.
func countersJS() string {
	var all []string
	for _, c := range new(snapshot.Object).Counters() {
		all = append(all, fmt.Sprintf("{ name: %q, words: %q, main: %t }", c.Name, c.Words, c.Main))
	}
	return strings.Join(all, ", ")
}
