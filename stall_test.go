package coir

import (
	"testing"
	"testing/synctest"

	"github.com/coir-go/coir/internal/policy"
)

// A runtime logs its stalls unless OnStall was given, it is simulated, or it belongs to a bubble.
func TestWhichRuntimesLogStalls(t *testing.T) {
	logs := func(set *settings) bool {
		r := onStalls(set, nil)
		return r != nil && r.log
	}
	own := new(settings)
	OnStall(0, nil)(own)
	simulated := &settings{policy: struct{ policy.Policy }{}}
	if !logs(new(settings)) || logs(own) || logs(simulated) {
		t.Errorf("logs: %v by default, %v with OnStall, %v in a simulation", logs(new(settings)), logs(own), logs(simulated))
	}
	synctest.Test(t, func(t *testing.T) {
		if logs(new(settings)) {
			t.Error("a runtime of a bubble logs")
		}
	})
}

// The place of a stall is the innermost call that is not in the standard library, unless that is one of coir's own.
func TestPlaceInAStack(t *testing.T) {
	const tail = `github.com/coir-go/coir.(*thunk).RunThunk(0xc0001f8240)
	/src/coir/fiber.go:374 +0x25d
created by github.com/coir-go/coir/internal/coro.(*Coro).Init in goroutine 5
	/src/coir/internal/coro/handoff.go:29 +0x9d`
	for _, c := range []struct{ stack, want string }{
		{"", ""},
		{"goroutine 7 [sleep]:\n" + tail, ""},
		{`goroutine 7 [sleep]:
time.Sleep(0x47868c00)
	/usr/local/go/src/runtime/time.go:363 +0x165
net/http.(*Client).Do(...)
	/usr/local/go/src/net/http/client.go:12
example.com/shop/orders.(*Store).load({0xc0004c5958?, 0x100000070a56b?}, 0x7fd18132bc28?)
	/projects/shop/orders/store.go:227 +0x25
main.main.func1()
	/projects/shop/main.go:3 +0x25
` + tail, "/projects/shop/orders/store.go:227"},
		{`goroutine 7 [running]:
main.spin[...](...)
	/projects/shop/main.go:33
` + tail, "/projects/shop/main.go:33"},
		{`goroutine 7 [chan receive]:
sync.(*Mutex).Lock(...)
	sync/mutex.go:46
example.com/shop.F(0x1)
	example.com/shop/f.go:9 +0x1
` + tail, "example.com/shop/f.go:9"},
		{`goroutine 7 [chan receive]:
github.com/coir-go/coir/internal/coro.Transfer(0x1)
	/src/coir/internal/coro/handoff.go:53 +0x1
example.com/shop.F(0x1)
	/projects/shop/f.go:9 +0x1
` + tail, ""},
	} {
		if got := placeIn(c.stack); got != c.want {
			t.Errorf("found %q, want %q in\n%s", got, c.want, c.stack)
		}
	}
}
