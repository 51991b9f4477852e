module github.com/coir-go/coir/cmd/coir

go 1.26
