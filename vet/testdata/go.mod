module example.com/testdata

go 1.26.0

require github.com/coir-go/coir v0.1.0

replace github.com/coir-go/coir => ../..
