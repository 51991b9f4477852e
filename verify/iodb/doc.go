// Package iodb holds the code of docs/guide/io.md that uses a database. It has only tests, which start a PostgreSQL of
// their own. They are skipped where PostgreSQL is not installed.
package iodb
