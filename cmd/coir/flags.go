package main

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// coir test accepts or refuses each flag of go test and go build. parse defines the flags that coir test uses itself,
// passedOn lists flags for the go command, and refused lists flags whose meaning would change. A flag that coir test
// would ignore is also refused, unless the result without it is the one that go test promises.

// passedOn lists the flags of go build that coir test passes to the go command when it builds the tests. The value is
// true if the flag takes no value.
var passedOn = map[string]bool{
	"a": true, "race": true, "msan": true, "asan": true, "trimpath": true, "x": true, "work": true, "modcacherw": true,
	"buildvcs": true, "tags": false, "mod": false, "modfile": false, "ldflags": false, "gcflags": false,
	"asmflags": false, "pgo": false, "buildmode": false, "installsuffix": false, "toolexec": false,
}

// refusal says why a flag is refused, and what to do instead.
type refusal struct {
	why    string
	bare   bool     // the flag has no value
	unless []string // accepted values, because they change nothing
}

const (
	noCoverage  = "coir test runs each test in many schedules and does not count what they cover; run go test -cover"
	noBenchmark = "coir test runs one goroutine at a time, on a virtual clock, where a benchmark measures nothing; " +
		"run go test -bench"
	noProfile = "a profile would show the changed runtime and all schedules of a test; run go test with this flag"
	noFuzzing = "coir test runs the seeds of fuzz tests and does not search for other inputs; run go test -fuzz"
	noGccgo   = "coir test changes the runtime of the gc compiler, which gccgo does not use; leave the flag out"
)

var refused = map[string]refusal{
	"C": {why: "it must be the first flag, as for go test; write it directly after coir test"},
	"artifacts": {bare: true, unless: []string{"false"},
		why: "each schedule of a test would write its artifacts again; run go test -artifacts"},
	"bench":                {why: noBenchmark},
	"benchmem":             {why: noBenchmark, bare: true, unless: []string{"false"}},
	"benchtime":            {why: noBenchmark},
	"blockprofile":         {why: noProfile},
	"blockprofilerate":     {why: noProfile},
	"compiler":             {why: noGccgo, unless: []string{"gc"}},
	"cover":                {why: noCoverage, bare: true, unless: []string{"false"}},
	"covermode":            {why: noCoverage},
	"coverpkg":             {why: noCoverage},
	"coverprofile":         {why: noCoverage},
	"cpu":                  {why: "each test sees two processors, so that a token is valid on all machines; leave the flag out"},
	"cpuprofile":           {why: noProfile},
	"exec":                 {why: "coir test starts the tests itself and watches them; run go test -exec"},
	"fuzz":                 {why: noFuzzing},
	"fuzzminimizetime":     {why: noFuzzing},
	"fuzztime":             {why: noFuzzing},
	"gccgoflags":           {why: noGccgo},
	"memprofile":           {why: noProfile},
	"memprofilerate":       {why: noProfile},
	"mutexprofile":         {why: noProfile},
	"mutexprofilefraction": {why: noProfile},
	"linkshared": {bare: true, unless: []string{"false"},
		why: "the shared standard library does not have the edits of coir test; leave the flag out"},
	"n": {bare: true, unless: []string{"false"},
		why: "coir test needs the tests that it builds; run go test -n to see the commands"},
	"outputdir": {why: "coir test writes no profiles and keeps no artifacts; run go test -outputdir"},
	"overlay": {
		why: "coir test builds with an overlay, and the go command takes only one; put your files into a copy of the module"},
	"parallel": {
		why: "all parallel subtests of a schedule may run at the same time; leave the flag out, or limit processes with -p"},
	"pkgdir": {why: "coir test needs a standard library of its own, and would mix it with that directory; leave the flag out"},
	"trace":  {why: noProfile},
	"vet": {unless: []string{"off"},
		why: "go vet does not work on the changed standard library; run go vet, or go test -vet, without coir"},
}

// passed is a flag for the go command.
type passed struct {
	name string
	bare bool
	to   *[]string
}

func (p passed) String() string   { return "" }
func (p passed) IsBoolFlag() bool { return p.bare }
func (p passed) Set(v string) error {
	*p.to = append(*p.to, "-"+p.name+"="+v)
	return nil
}

// refusing is a flag that is refused. Set stores the error instead of returning it, because package flag would put a
// returned error into a sentence of its own.
type refusing struct {
	name string
	refusal
	err *error
}

func (r refusing) String() string   { return "" }
func (r refusing) IsBoolFlag() bool { return r.bare }
func (r refusing) Set(v string) error {
	for _, ok := range r.unless {
		if v == ok {
			return nil
		}
	}
	if *r.err == nil {
		*r.err = fmt.Errorf("-%s is not accepted: %s", r.name, r.why)
	}
	return nil
}

// defineOthers defines the flags of go test and go build that parse does not handle itself. The first refused
// flag sets err.
func defineOthers(f *flag.FlagSet, build *[]string, err *error) {
	for name, bare := range passedOn {
		f.Var(passed{name, bare, build}, name, "")
	}
	for name, r := range refused {
		f.Var(refusing{name, r, err}, name, "")
	}
	f.Func("count", "", func(s string) error { // running a schedule again has the same result
		if n, err := strconv.Atoi(s); err != nil || n < 1 {
			return errors.New("must be a positive number")
		}
		return nil
	})
	f.Func("shuffle", "", func(s string) error { // each test has a process of its own
		if _, err := strconv.ParseInt(s, 10, 64); err != nil && s != "on" && s != "off" {
			return errors.New("must be on, off, or a number")
		}
		return nil
	})
	for _, name := range []string{ // go test also accepts its flags for the tests with this prefix
		"artifacts", "bench", "benchmem", "benchtime", "blockprofile", "blockprofilerate", "count", "coverprofile", "cpu",
		"cpuprofile", "failfast", "fullpath", "fuzz", "fuzzminimizetime", "fuzztime", "list", "memprofile",
		"memprofilerate", "mutexprofile", "mutexprofilefraction", "outputdir", "parallel", "run", "short", "shuffle",
		"skip", "timeout", "trace", "v",
	} {
		f.Var(f.Lookup(name).Value, "test."+name, "")
	}
}

// explained replaces an error of package flag about an unknown flag by one that says what to do.
func explained(err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: "); ok {
		return fmt.Errorf("unknown flag %s; put the test's own flags after -args", name)
	}
	if m := noUnit.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%[2]s %[1]s has no unit: write %[2]s %[1]ss for %[1]s seconds", m[1], m[2])
	}
	return err
}

// noUnit matches the error of a flag that takes a time, if its value is only a number.
var noUnit = regexp.MustCompile(`^invalid value "(\d+)" for flag (-\w+): parse error$`)

// changeDir removes -C from the front of the arguments. Like go test, coir test accepts it only there.
func changeDir(args []string) (dir string, rest []string, err error) {
	if len(args) == 0 {
		return "", args, nil
	}
	name, dir, given := strings.Cut(args[0], "=")
	if name != "-C" && name != "--C" {
		return "", args, nil
	}
	if args = args[1:]; !given {
		if len(args) == 0 {
			return "", nil, errors.New("-C needs a directory")
		}
		dir, args = args[0], args[1:]
	}
	return dir, args, nil
}

// pattern is a value of -run or -skip, as package testing reads it: a list of alternatives. Each has an expression for
// the test, and one for each level of subtests.
type pattern [][]string

// parsePattern splits a pattern at each / and | that is not in brackets.
func parsePattern(s string) (pattern, error) {
	if s == "" {
		return nil, nil
	}
	all := pattern{nil}
	begin, class, group := 0, 0, 0
	add := func(end int) error {
		if _, err := regexp.Compile(s[begin:end]); err != nil {
			return fmt.Errorf("%q is not a regular expression: %w", s[begin:end], err)
		}
		last := &all[len(all)-1]
		*last = append(*last, s[begin:end])
		begin = end + 1
		return nil
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			class++
		case c == ']':
			class = max(class-1, 0)
		case c == '(' && class == 0:
			group++
		case c == ')' && class == 0:
			group--
		case (c == '/' || c == '|') && class == 0 && group == 0:
			if err := add(i); err != nil {
				return nil, err
			}
			if c == '|' {
				all = append(all, nil)
			}
		}
	}
	return all, add(len(s))
}

// of returns the alternatives that match a test, without the expression for the test itself.
func (p pattern) of(test string) (rest [][]string) {
	for _, elements := range p {
		if regexp.MustCompile(elements[0]).MatchString(test) {
			rest = append(rest, elements[1:])
		}
	}
	return rest
}

// whole reports whether the pattern matches the test with all its subtests.
func (p pattern) whole(test string) bool {
	for _, rest := range p.of(test) {
		if len(rest) == 0 {
			return true
		}
	}
	return false
}

// narrowed returns the pattern for a process that runs one test. It selects the same subtests of that test.
func (p pattern) narrowed(test string) string {
	if p == nil || p.whole(test) {
		return "^" + test + "$"
	}
	var all []string
	for _, rest := range p.of(test) {
		all = append(all, strings.Join(append([]string{"^" + test + "$"}, rest...), "/"))
	}
	return strings.Join(all, "|")
}
