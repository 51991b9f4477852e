package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
)

func main() {
	names := stream.Lines(os.Stdin)
	counts := stream.Parallel(names, 8, count)
	err := stream.ForEach(context.Background(), counts, func(_ context.Context, text string) error {
		_, err := fmt.Println(text)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

func count(ctx context.Context, name string) (string, error) {
	text, err := coir.Blocking(ctx, func() ([]byte, error) { return os.ReadFile(name) })
	return fmt.Sprint(bytes.Count(text, []byte("\n")), " ", name), err
}
