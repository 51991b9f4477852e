module github.com/coir-go/coir

go 1.26
