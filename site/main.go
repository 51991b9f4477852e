// Command site writes the documents of the repository as static pages. Run it in the directory site:
//
//	go run . -o ../.bin/site
//
// The pages are those of the table in nav.go. Links between documents become links between pages, and links to other
// files of the repository become links to its host. A link to a file, a page or a heading that does not exist is an
// error, and then nothing is written. For why the project has its own program for this, see
// docs/design/0022-the-site.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "..", "the root of the repository")
	out := flag.String("o", "../.bin/site", "the directory to write; what is in it is kept, unless a page has its name")
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	files, err := build(os.DirFS(root), sections)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("site: %d files in %s\n", len(files), out)
	return nil
}
