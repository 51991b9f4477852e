// Package maps has maps whose keys hold addresses. Each test sends in the order of a map, and a goroutine for each key
// receives, so the trace depends on that order.
package maps

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"unsafe"
)

type pair struct {
	name string
	_    int
	p    *int
}

type stringer interface{ String() string }

func (p *pair) String() string { return p.name }

// channels makes 40 channels, and for each a goroutine that receives from it.
func channels() []chan int {
	all := make([]chan int, 40)
	for i := range all {
		all[i] = make(chan int)
		go func() { <-all[i] }()
	}
	return all
}

// filled returns a map with 40 keys, whose values are channels.
func filled[K comparable](key func(i int) K) map[K]chan int {
	m := map[K]chan int{}
	for i, c := range channels() {
		m[key(i)] = c
		_ = make([]byte, i)
	}
	return m
}

// send sends to all channels.
func send(all iter.Seq[chan int]) {
	for c := range all {
		c <- 1
	}
}

func ordered[K comparable](t *testing.T, key func(i int) K) {
	m := filled(key)
	send(maps.Values(m))
	for k, c := range m {
		if m[k] != c {
			t.Errorf("%v is not found", k)
		}
		delete(m, k)
	}
	if len(m) != 0 {
		t.Errorf("%d keys are left", len(m))
	}
}

func TestPointers(t *testing.T) { ordered(t, func(int) *int { return new(int) }) }
func TestChannels(t *testing.T) { ordered(t, func(int) chan int { return make(chan int) }) }
func TestUnsafe(t *testing.T) {
	ordered(t, func(int) unsafe.Pointer { return unsafe.Pointer(new([3]int)) })
}
func TestAny(t *testing.T)       { ordered(t, func(int) any { return new(int) }) }
func TestInterface(t *testing.T) { ordered(t, func(int) stringer { return new(pair) }) }
func TestStructs(t *testing.T) {
	ordered(t, func(i int) pair { return pair{name: strconv.Itoa(i % 3), p: new(int)} })
}
func TestArrays(t *testing.T) {
	ordered(t, func(int) [2]*string { return [2]*string{new(string), nil} })
}
func TestStructInAny(t *testing.T) {
	ordered(t, func(i int) any { return pair{name: strconv.Itoa(i % 3), p: new(int)} })
}

// Keys inside of one object differ by their offsets.
func TestElements(t *testing.T) {
	all := make([]int, 40)
	ordered(t, func(i int) *int { return &all[i] })
}

func TestSyncMap(t *testing.T) {
	var m sync.Map
	for _, c := range channels() {
		m.Store(new(int), c)
	}
	send(func(yield func(chan int) bool) {
		m.Range(func(_, c any) bool { return yield(c.(chan int)) })
	})
}

func TestReflect(t *testing.T) {
	m := reflect.MakeMap(reflect.MapOf(reflect.ArrayOf(2, reflect.TypeFor[*int]()), reflect.TypeFor[chan int]()))
	for _, c := range channels() {
		m.SetMapIndex(reflect.ValueOf([2]*int{new(int), new(int)}), reflect.ValueOf(c))
	}
	send(func(yield func(chan int) bool) {
		for _, c := range m.Seq2() {
			if !yield(c.Interface().(chan int)) {
				return
			}
		}
	})
}

// global was made before the first schedule, and its keys are found in all of them.
var global, globals = func() (map[*int]int, []*int) {
	m, all := map[*int]int{}, []*int{}
	for i := range 100 {
		all = append(all, new(int))
		m[all[i]] = i
	}
	return m, all
}()

func TestGlobal(t *testing.T) {
	for i, p := range globals {
		if n, ok := global[p]; n != i || !ok {
			t.Fatalf("key %d has the value %d, %v", i, n, ok)
		}
	}
	c := make(chan int)
	go func() { c <- 1 }()
	if _, ok := global[new(int)]; ok {
		t.Error("a new key is found")
	}
	var local int
	if _, ok := global[&local]; ok {
		t.Error("a key on the stack is found")
	}
	<-c
	ordered(t, func(int) *int { return new(int) })
}

// Objects are freed, and others get their addresses; keys of maps that live are found all the same.
func TestCollected(t *testing.T) {
	kept := map[*[2]int]int{}
	for i := range 20 {
		gone := map[*[2]int]int{}
		for k := range 200 {
			p := new([2]int)
			gone[p] = k
			if k%20 == 0 {
				kept[p] = i*10 + k/20
				p[0] = kept[p]
			}
		}
		runtime.GC()
		for p, n := range kept {
			if kept[p] != n || p[0] != n {
				t.Fatalf("the key of %d has the value %d", n, kept[p])
			}
		}
	}
	if len(kept) != 200 {
		t.Errorf("%d keys", len(kept))
	}
	send(maps.Values(filled(func(int) *[2]int { return new([2]int) })))
}

// Keys without addresses are hashed as ever: equal keys are one.
func TestOthers(t *testing.T) {
	type key struct {
		a float64
		_ string
		b string
		c any
	}
	m := map[key]int{}
	zero := 0.0
	for i := range 20 {
		m[key{a: zero, b: fmt.Sprint(i), c: i}]++
		m[key{a: -zero, b: fmt.Sprint(i), c: i}]++
	}
	if len(m) != 20 {
		t.Errorf("%d keys", len(m))
	}
	defer func() {
		if fmt.Sprint(recover()) != "runtime error: hash of unhashable type []int" {
			t.Error("a slice is a key")
		}
	}()
	m[key{c: []int{1}}] = 1
}
