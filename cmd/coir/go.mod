module github.com/coir-go/coir/cmd/coir

go 1.26

require github.com/coir-go/coir v0.0.0-00010101000000-000000000000

replace github.com/coir-go/coir => ../../
