// Package iodb has the code of docs/guide/io.md that uses a database. It has only tests, which start their own
// PostgreSQL server. They are skipped if PostgreSQL is not installed.
package iodb
