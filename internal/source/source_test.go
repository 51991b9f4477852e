package source

import (
	"testing"

	"github.com/coir-go/coir/internal/archtest"
)

func TestOwn(t *testing.T) {
	const (
		shop  = "example.com/shop.serve"
		loop  = shop + ".(*Chan[...]).All.func1"
		cache = "/go/pkg/mod/github.com/coir-go/coir"
	)
	for _, c := range []struct {
		function, file string
		want           bool
	}{
		{"github.com/coir-go/coir.(*Chan[...]).Recv(...)", cache + "@v0.1.0/chan.go", true},
		{"github.com/coir-go/coir/internal/sched.(*Task).Park", cache + "@v0.1.0/internal/sched/task.go", true},
		{"github.com/coir-go/coir/remote.(*Chan[...]).Recv", cache + "/remote@v0.1.0/chan.go", true},
		{"github.com/coir-go/coir/buf/shm.(*Receiver).Recv", "elsewhere/receiver.go", true},
		{shop, "/projects/shop/serve.go", false},
		{"main.main", "/projects/shop/main.go", false},

		// An iterator that was inlined: only its file is coir's.
		{loop, cache + "@v0.1.0/chan.go", true},
		{loop, cache + "@v0.1.0-rc.1/pubsub/broadcast.go", true},
		{loop, cache + "/remote@v0.1.0/chan.go", true},
		{loop, cache + "/remote/postgres@v0.1.0/queue.go", true},
		{loop, "github.com/coir-go/coir@v0.1.0/chan.go", true}, // -trimpath
		{loop, "/projects/shop/vendor/github.com/coir-go/coir/chan.go", true},
		{loop, "/projects/shop/vendor/github.com/coir-go/coir/remote/chan.go", true},
		{loop, sources + "chan.go", true},
		{loop, sources + "remote/chan.go", true},
		{loop, "/projects/shop/chan.go", false},

		// Programs of coir's own repository, and others with similar names.
		{"github.com/coir-go/coir_test.TestSend", sources + "chan_test.go", false},
		{"github.com/coir-go/coir.TestSend", sources + "chan_test.go", false},
		{"github.com/coir-go/coir/examples/stuck.Ring", sources + "examples/stuck/ring.go", false},
		{"main.main", sources + "remote/nats/examples/payments/main.go", false},
		{"main.main", sources + "bench/report/main.go", false},
		{"github.com/coir-go/coirs.F", "/go/pkg/mod/github.com/coir-go/coirs@v0.1.0/f.go", false},
		{"main.main", "/projects/notgithub.com/coir-go/coir/main.go", false},
	} {
		if got := Own(c.function, c.file); got != c.want {
			t.Errorf("Own(%q, %q) is %v", c.function, c.file, got)
		}
	}
	for _, dir := range archtest.Satellites {
		if !Own("github.com/coir-go/coir/"+dir+".F", "") {
			t.Errorf("%s is taken for a program: add it to packages", dir)
		}
	}
}

func TestSpawned(t *testing.T) {
	const stack = "goroutine 7 [running]:\nmain.f()\n\t/src/main.go:9 +0x1d\n"
	for _, c := range []struct{ stack, want string }{
		{"", ""},
		{stack, ""}, // the first goroutine
		{stack + "created by main.main in goroutine 1\n\t/src/main.go:29 +0x9d\n", "/src/main.go:29"},
		{stack + "created by main.main in goroutine 1\n\t/src/main.go:29", "/src/main.go:29"},
		{stack + "created by github.com/coir-go/coir.Go in goroutine 1\n\t" + sources + "fiber.go:2 +0x9d\n", ""},
		{stack + "created by net/http.(*Server).Serve in goroutine 1\n\t" + goSources + "net/http/server.go:3 +0x9d\n", ""},
	} {
		if got := Spawned(c.stack); got != c.want {
			t.Errorf("found %q, want %q in\n%s", got, c.want, c.stack)
		}
	}
}

func TestLine(t *testing.T) {
	const tail = `github.com/coir-go/coir.(*thunk).RunThunk(0xc0001f8240)
	/src/coir/fiber.go:374 +0x25d
created by example.com/shop.Start in goroutine 5
	/projects/shop/start.go:29 +0x9d
`
	for _, c := range []struct{ stack, want string }{
		{"", ""},
		{"goroutine 7 [coroutine]:\n" + tail, ""},
		{`goroutine 7 [coroutine]:
iter.Pull[...].func1.1()
	` + goSources + `iter/iter.go:287 +0x4f
github.com/coir-go/coir.(*Chan[...]).recv(0x849580, {0x83d8b8, 0x1a0d5fbc8510}, 0xffffffffffffffff?)
	/src/coir/chan.go:347 +0x63e
example.com/shop.serve.serve.(*Chan[...]).All.func2(...)
	/go/pkg/mod/github.com/coir-go/coir@v0.1.0/chan.go:603
example.com/shop.serve-range1(...)
	/projects/shop/serve.go:62
example.com/shop.serve.(*Chan[...]).All.func1(...)
	/go/pkg/mod/github.com/coir-go/coir@v0.1.0/chan.go:604
example.com/shop.serve({0x83d818, 0x31d77b0efc0}, 0x31d77b0dc80, 0x31d778d2180)
	/projects/shop/serve.go:55 +0x1f2
` + tail, "/projects/shop/serve.go:62"},
		{`goroutine 7 [IO wait]:
net.(*conn).Read(0xc0001f8240, {0xc0004c5958?, 0x100000070a56b?, 0x7fd18132bc28?})
	` + goSources + `net/net.go:196 +0x45
example.com/shop.read(...)
	/projects/shop/read.go:9
` + tail, "/projects/shop/read.go:9"},
	} {
		if got := Line(c.stack); got != c.want {
			t.Errorf("found %q, want %q in\n%s", got, c.want, c.stack)
		}
	}
}
