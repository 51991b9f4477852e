module github.com/coir-go/coir/vet

go 1.26.0

require (
	github.com/coir-go/coir v0.1.0
	golang.org/x/tools v0.51.0
)

require (
	golang.org/x/mod v0.41.0 // indirect
	golang.org/x/sync v0.23.0 // indirect
)
