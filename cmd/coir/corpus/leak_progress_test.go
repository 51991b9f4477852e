//go:build corpus

package corpus

import (
	"errors"
	"sync"
	"testing"
)

// An upload tells a progress reporter of each part. The reporter is stopped when all parts are through. An upload
// that is aborted before returns early and leaves the reporter waiting for the next part.
//
// Class: leak
// Expect: leak

var errUploadAborted = errors.New("upload aborted")

type uploadProgress struct {
	parts chan int
	done  chan struct{}
	bytes int
}

func startUploadProgress() *uploadProgress {
	p := &uploadProgress{parts: make(chan int), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for n := range p.parts {
			p.bytes += n
		}
	}()
	return p
}

func (p *uploadProgress) stop() int {
	close(p.parts)
	<-p.done
	return p.bytes
}

func uploadParts(parts <-chan int, abort <-chan struct{}) (int, error) {
	p := startUploadProgress()
	for {
		select {
		case n, ok := <-parts:
			if !ok {
				return p.stop(), nil
			}
			p.parts <- n
		case <-abort:
			return 0, errUploadAborted
		}
	}
}

func uploadPartsFixed(parts <-chan int, abort <-chan struct{}) (bytes int, err error) {
	p := startUploadProgress()
	defer func() { bytes = p.stop() }()
	for {
		select {
		case n, ok := <-parts:
			if !ok {
				return 0, nil
			}
			p.parts <- n
		case <-abort:
			return 0, errUploadAborted
		}
	}
}

func runUpload(t *testing.T, upload func(<-chan int, <-chan struct{}) (int, error)) {
	parts := make(chan int, 2)
	parts <- 400
	parts <- 100
	close(parts)
	abort := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { close(abort) })
	if bytes, err := upload(parts, abort); err == nil && bytes != 500 {
		t.Errorf("uploaded %d bytes, want 500", bytes)
	}
	wg.Wait()
}

func TestBugUpload(t *testing.T) {
	runUpload(t, uploadParts)
}

func TestFixedUpload(t *testing.T) {
	runUpload(t, uploadPartsFixed)
}
