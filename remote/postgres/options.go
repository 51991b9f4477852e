package postgres

import (
	_ "embed" // for the text of the schema
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Option is an option of [New].
type Option func(*settings)

type settings struct {
	schema string
	lease  time.Duration
	window time.Duration
}

// WithSchema sets the schema of the tables, which is also the argument of [SQL]. The default is "coir". Transports with
// different schemas do not see each other.
func WithSchema(schema string) Option {
	checkSchema("WithSchema", schema)
	return func(s *settings) { s.schema = schema }
}

// WithLease sets how long a message is leased without progress. The default is 30 seconds.
func WithLease(d time.Duration) Option { return func(s *settings) { s.lease = d } }

// WithWindow sets how long the ID of a message that this process stores is remembered. The default is 2 minutes.
// Processes may have different windows.
func WithWindow(d time.Duration) Option { return func(s *settings) { s.window = d } }

//go:embed schema.sql
var schemaText string

// SQL returns the statements that make the schema with its tables and functions. They may be run again.
func SQL(schema string) string {
	checkSchema("SQL", schema)
	return inSchema(schemaText, schema)
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

func checkSchema(of, schema string) {
	if !schemaName.MatchString(schema) {
		panic(fmt.Sprintf("postgres: %s(%q): the name of a schema has small letters, digits and _ only", of, schema))
	}
}

// inSchema returns the statements, changed to use another schema.
func inSchema(text, schema string) string {
	text = strings.ReplaceAll(text, "create schema if not exists coir;", "create schema if not exists "+schema+";")
	return strings.ReplaceAll(text, "coir.", schema+".")
}
