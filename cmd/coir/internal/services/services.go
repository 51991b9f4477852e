// Package services reads the descriptions of the bugs in cmd/coir/corpus/services, for the programs that explore them.
package services

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Service is a service with a bug, and its corrected twin.
type Service struct {
	Dir     string
	Package string // a or b
	File    string // such as abba_bank_test.go
	Name    string // such as Bank; its tests are TestBugBank and TestFixedBank
	Kind    string // the kind of the expected failure
	Faults  bool   // the bug needs faults of the network
}

var marks = regexp.MustCompile(`(?m)^// (Expect): (\w+)$|^// (Faults): net$|^func Test(Bug|Fixed)(\w+)\(`)

// Read reads the services of the packages in a directory, in the order of packages and files.
func Read(dir string) (all []Service, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s := Service{Dir: filepath.Dir(file), Package: filepath.Base(filepath.Dir(file)), File: filepath.Base(file)}
		fixed := ""
		for _, m := range marks.FindAllStringSubmatch(string(text), -1) {
			switch {
			case m[1] != "":
				s.Kind = m[2]
			case m[3] != "":
				s.Faults = true
			case m[4] == "Bug":
				s.Name = m[5]
			default:
				fixed = m[5]
			}
		}
		if s.Kind == "" || s.Name == "" || s.Name != fixed {
			return nil, fmt.Errorf("services: %s has no test, or no Expect line", file)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("services: %s contains no services", dir)
	}
	return all, nil
}

func (s *Service) String() string { return s.Package + "/" + s.Name }

// Bug returns the name of the test with the bug.
func (s *Service) Bug() string { return "TestBug" + s.Name }

// Fixed returns the name of the test of the corrected twin.
func (s *Service) Fixed() string { return "TestFixed" + s.Name }

// Args returns the arguments of coir test that explore one of the service's tests.
func (s *Service) Args(test string, flags ...string) []string {
	args := append([]string{"-tags=corpus", "-run=^" + test + "$"}, flags...)
	if s.Faults {
		args = append(args, "-faults=net")
	}
	dir := s.Dir
	if !filepath.IsAbs(dir) {
		dir = "." + string(filepath.Separator) + dir
	}
	return append(args, dir)
}
