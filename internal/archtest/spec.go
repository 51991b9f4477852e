package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Rule is one bullet of spec/SPEC.md.
type Rule struct {
	ID    string // area, dash, number: PK-03
	Title string // a few words, which citations repeat
	Text  string // the sentence
}

// RuledOut reports whether the rule no longer holds. Its number stays, and its text says what replaced it.
func (r Rule) RuledOut() bool { return strings.HasPrefix(r.Text, "Ruled out: ") }

// Area returns the two letters that the id begins with.
func (r Rule) Area() string { return r.ID[:2] }

// A Spec is spec/SPEC.md as read.
type Spec struct {
	Areas []Area
	Rules []Rule
}

// An Area is one heading of the spec with rules under it.
type Area struct{ Code, Title string }

// rule returns the rule with this id, or a zero rule.
func (s *Spec) rule(id string) Rule {
	if i := slices.IndexFunc(s.Rules, func(r Rule) bool { return r.ID == id }); i >= 0 {
		return s.Rules[i]
	}
	return Rule{}
}

// Has reports whether the spec has a rule with this id.
func (s *Spec) Has(id string) bool { return s.rule(id).ID != "" }

// Title returns the title of a rule, or "" if there is no such rule.
func (s *Spec) Title(id string) string { return s.rule(id).Title }

var (
	areaHeading = regexp.MustCompile(`^## ([A-Z]{2}) (.+)$`)
	ruleBullet  = regexp.MustCompile(`^- \*\*([A-Z]{2})-([0-9]{2,})(?: \(([^()]+)\))?\*\* (.+)$`)
	boldBullet  = regexp.MustCompile(`^- \*\*`)
)

// ReadSpec reads spec/SPEC.md. Faults lists its mistakes as sentences; they do not stop the reading, so that a test
// reports all of them.
func ReadSpec(root string) (spec *Spec, faults []string, err error) {
	text, err := os.ReadFile(filepath.Join(root, "spec", "SPEC.md"))
	if err != nil {
		return nil, nil, err
	}
	spec, faults = parseSpec(string(text))
	return spec, faults, nil
}

// maxTitle keeps a citation on one line.
const maxTitle = 60

func parseSpec(text string) (*Spec, []string) {
	spec := &Spec{}
	var faults []string
	fault := func(line int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("spec/SPEC.md:%d: ", line)+fmt.Sprintf(format, args...))
	}
	titles := make(map[string]string)
	area, next := "", 0
	line := 0
	for raw := range strings.Lines(text) {
		line++
		s := strings.TrimRight(raw, "\r\n")
		if m := areaHeading.FindStringSubmatch(s); m != nil {
			if slices.ContainsFunc(spec.Areas, func(a Area) bool { return a.Code == m[1] }) {
				fault(line, "area %s appears a second time", m[1])
			}
			spec.Areas = append(spec.Areas, Area{m[1], m[2]})
			area, next = m[1], 1
			continue
		}
		if strings.HasPrefix(s, "## ") {
			area = ""
			continue
		}
		m := ruleBullet.FindStringSubmatch(s)
		if m == nil {
			if boldBullet.MatchString(s) {
				fault(line, "this bullet looks like a rule but is not of the form `- **PK-03 (title)** sentence.`")
			}
			continue
		}
		id := m[1] + "-" + m[2]
		n, _ := strconv.Atoi(m[2]) // the pattern admits only digits
		switch {
		case m[1] != area:
			fault(line, "%s stands under the heading of area %q", id, area)
		case spec.Has(id):
			fault(line, "%s is given twice", id)
		case n != next || m[2] != fmt.Sprintf("%02d", n):
			fault(line, "%s is out of line: the next number of the area is %s-%02d", id, area, next)
		}
		if title := m[3]; title == "" || len(title) > maxTitle || titles[title] != "" {
			fault(line, "%s needs a title of at most %d letters that no other rule has, in parentheses after its number", id, maxTitle)
		} else {
			titles[title] = id
		}
		next = n + 1
		spec.Rules = append(spec.Rules, Rule{id, m[3], m[4]})
	}
	return spec, faults
}
