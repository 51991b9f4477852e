package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// This file finds the message with which a test failed. The record has only the step that failed the test. The message,
// and the line that go test prints for it, are in the log. If t.Errorf is in a function that calls t.Helper, that line
// is the one of its caller.

// logged matches the first line of what a test has logged.
var logged = regexp.MustCompile(`(?m)^[ \t]*([^\s:][^\n]*?\.go:\d+): *(.*)$`)

// mostMessage is the number of characters of a message in a headline. The output contains the whole message.
const mostMessage = 200

// findMessage sets the message of the failure, and moves the step that failed the test to the line that go test prints.
func (r *record) findMessage() {
	if r.failure == nil {
		return
	}
	s := r.failStep()
	if s == nil {
		return
	}
	for _, log := range []string{r.shown, r.log} {
		log = r.withoutFailLine(log)
		all := logged.FindAllStringSubmatchIndex(log, -1)
		for _, m := range all {
			at := filepath.Base(log[m[2]:m[3]])
			i := slices.IndexFunc(s.stack, func(p place) bool { return p.base() == at })
			if i < 0 && len(all) > 1 {
				continue
			}
			if i >= 0 && s.stack[i] != s.place {
				r.helper, s.place = s.place, s.stack[i]
			}
			r.message = firstLine(log[m[4]:])
			return
		}
	}
}

// firstLine returns the first line of a message that says something. In the messages of package testify, that is the
// line after "Error:".
func firstLine(text string) string {
	for i, line := range strings.Split(text, "\n") {
		if i > 0 && logged.MatchString(line) {
			break
		}
		line = oneLine(line)
		if why, ok := strings.CutPrefix(line, "Error: "); ok && i > 0 {
			line = strings.TrimSpace(why)
		} else if strings.HasPrefix(line, "Error Trace:") || i > 0 && strings.Contains(text, "Error Trace:") {
			continue
		}
		if letters := []rune(line); len(letters) > mostMessage {
			line = string(letters[:mostMessage]) + "..."
		}
		if line != "" {
			return line
		}
	}
	return ""
}
