//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// An image store answers an upload as soon as the image is stored and makes the thumbnail after that. The goroutine
// that does both adds itself to the wait group when it has answered. If the store is flushed between the answer and
// that, the wait has nothing to wait for.
//
// Class: waitgroup
// Expect: fail

type thumbStore struct {
	wg     sync.WaitGroup
	mu     sync.Mutex
	images []string
	thumbs []string
}

func (s *thumbStore) addImage(image string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images = append(s.images, image)
}

func (s *thumbStore) addThumb(image string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thumbs = append(s.thumbs, "small "+image)
}

func (s *thumbStore) upload(image string) {
	stored := make(chan struct{})
	go func() {
		s.addImage(image)
		close(stored)
		s.wg.Add(1)
		defer s.wg.Done()
		s.addThumb(image)
	}()
	<-stored
}

func (s *thumbStore) uploadFixed(image string) {
	stored := make(chan struct{})
	s.wg.Go(func() {
		s.addImage(image)
		close(stored)
		s.addThumb(image)
	})
	<-stored
}

func (s *thumbStore) flush() (images, thumbs int) {
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.images), len(s.thumbs)
}

func runThumbStore(t *testing.T, upload func(*thumbStore, string)) {
	s := &thumbStore{}
	upload(s, "cat")
	if images, thumbs := s.flush(); images != 1 || thumbs != 1 {
		t.Errorf("%d images and %d thumbnails, want one of each", images, thumbs)
	}
}

func TestBugThumbStore(t *testing.T) {
	runThumbStore(t, (*thumbStore).upload)
}

func TestFixedThumbStore(t *testing.T) {
	runThumbStore(t, (*thumbStore).uploadFixed)
}
