package otelcoir_test

import (
	"fmt"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/metrics"
	"github.com/coir-go/coir/metrics/otelcoir"
	"go.opentelemetry.io/otel"
)

// A program registers the metrics of its fibers with the meter of its provider. The setup of the SDK, which reads and
// exports them, is not shown.
func ExampleRegister() {
	registration, err := otelcoir.Register(otel.Meter("github.com/coir-go/coir"), metrics.New(coir.Default()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = registration.Unregister() }()
	// The program runs here.
}
