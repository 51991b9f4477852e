module github.com/coir-go/coir/remote

go 1.26.0

require github.com/coir-go/coir v0.1.0
