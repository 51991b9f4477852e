package main

import (
	"os"
	"strings"
)

// A bill is a CycloneDX document, as far as it is needed.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type     string          `json:"type"`
	Ref      string          `json:"bom-ref"`
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Package  string          `json:"purl"`
	Licences []licenceChoice `json:"licenses"`
}

type licenceChoice struct {
	Licence struct {
		ID string `json:"id"`
	} `json:"license"`
}

// billOf returns the bill of a version of coir that is built from some modules.
func billOf(version string, modules []module) (bill, error) {
	b := bill{Format: "CycloneDX", Spec: "1.5", Version: 1, Components: []component{}}
	b.Metadata.Component = componentOf(ours, version, "Apache-2.0")
	for _, m := range modules {
		licence, err := licenceOf(os.DirFS(m.Dir))
		if err != nil {
			return bill{}, err
		}
		b.Components = append(b.Components, componentOf(m.Path, m.Version, licence))
	}
	return b, nil
}

func componentOf(path, version, licence string) component {
	url := "pkg:golang/" + strings.ToLower(path) + "@" + version
	c := component{Type: "library", Ref: url, Name: path, Version: version, Package: url}
	var choice licenceChoice
	choice.Licence.ID = licence
	c.Licences = []licenceChoice{choice}
	return c
}
