package archtest

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// The drawing of the import order is that of the layers, and has every package.
func TestImportMap(t *testing.T) {
	drawn := ImportMap()
	if text(t, filepath.Join(root(t), filepath.FromSlash(ImportMapFile))) != drawn {
		t.Errorf("%s is stale: run go run ./internal/archtest/importmap", ImportMapFile)
	}
	for d := xml.NewDecoder(strings.NewReader(drawn)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range Layers {
		for _, p := range l.Packages {
			if p != "." && !strings.Contains(drawn, ">"+p+"<") {
				t.Errorf("%s is not in the drawing", p)
			}
		}
	}
}
