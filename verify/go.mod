module github.com/coir-go/coir/verify

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/coir-go/coir v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

replace github.com/coir-go/coir => ../
