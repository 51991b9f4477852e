// Package guide holds the function of docs/guide/remote.md that connects to PostgreSQL. It has only tests, which start
// a PostgreSQL of their own.
package guide
