module example.com/user

go 1.26.0

require github.com/coir-go/coir v0.0.0

replace github.com/coir-go/coir => ../../../..
