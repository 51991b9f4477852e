package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLicences(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                         "Apache-2.0",
		"Mozilla Public License, version 2.0":                                                                  "MPL-2.0",
		"Redistribution and use in source and binary\nforms ... Neither the name":                              "BSD-3-Clause",
		"Redistribution and use in source and binary forms":                                                    "BSD-2-Clause",
		"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee": "ISC",
		"Permission is hereby granted, free of charge, to any\nperson obtaining a copy":                        "MIT",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                                 "",
		"All rights reserved.":                                                                                 "",
	} {
		got, err := licenceOf(fstest.MapFS{"License.txt": {Data: []byte(text)}, "a.go": {Data: []byte("package a")}})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := licenceOf(fstest.MapFS{"a.go": {Data: []byte("package a")}}); err == nil {
		t.Error("a module without a licence is accepted")
	}
}

// Our own licence and that of Go are recognised as what they are.
func TestRealLicences(t *testing.T) {
	if got, err := licenceOf(os.DirFS(filepath.Join("..", ".."))); got != "Apache-2.0" {
		t.Errorf("coir is under %q, %v", got, err)
	}
}

func TestModulesOfPackages(t *testing.T) {
	got, err := decode(strings.NewReader(`{}{"Module":{"Path":"github.com/coir-go/coir/metrics","Main":true}}
		{"Module":{"Path":"example.com/a","Version":"v1.2.3","Dir":"/a"}}{"Module":{"Path":"github.com/coir-go/coir"}}`))
	if want := []module{{"example.com/a", "v1.2.3", "/a"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := decode(strings.NewReader("{")); err == nil {
		t.Error("half of an object is accepted")
	}
}

func TestBill(t *testing.T) {
	dir := t.TempDir()
	mit := "Permission is hereby granted, free of charge, to any person obtaining a copy"
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(mit), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := billOf("v0.1.0", []module{{"example.com/A", "v1.2.3", dir}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"bomFormat":"CycloneDX","specVersion":"1.5","version":1`, `"purl":"pkg:golang/github.com/coir-go/coir@v0.1.0"`,
		`"name":"example.com/A","version":"v1.2.3","purl":"pkg:golang/example.com/a@v1.2.3","licenses":[{"license":{"id":"MIT"}}]`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the bill lacks %s:\n%s", want, text)
		}
	}
	if _, err := billOf("v0.1.0", []module{{"example.com/b", "v1", t.TempDir()}}); err == nil {
		t.Error("a module without a licence is in the bill")
	}
}
