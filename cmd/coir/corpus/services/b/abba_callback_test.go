//go:build corpus

package b

import (
	"net"
	"net/rpc"
	"sync"
	"testing"
)

// A registry keeps a value and tells a watcher about each change by a call back with net/rpc, with its own lock held.
// The watcher keeps a copy of the value under a lock of its own, and holds it while it asks the registry for the value.
// When an update and such a question cross, the registry waits for the watcher and the watcher for the registry.
//
// Class: abba
// Expect: deadlock
type callbackRegistry struct {
	early   bool // give the lock back before the call
	watcher *rpc.Client

	mu    sync.Mutex
	value int
}

func (r *callbackRegistry) Ping(n int, reply *int) error {
	*reply = n
	return nil
}

func (r *callbackRegistry) Get(_ int, reply *int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	*reply = r.value
	return nil
}

func (r *callbackRegistry) Update(value int, reply *int) error {
	r.mu.Lock()
	r.value = value
	if r.early {
		r.mu.Unlock()
		return r.watcher.Call("Watcher.Changed", value, reply)
	}
	defer r.mu.Unlock()
	return r.watcher.Call("Watcher.Changed", value, reply)
}

type callbackWatcher struct {
	mu    sync.Mutex
	value int
}

func (w *callbackWatcher) Changed(value int, reply *int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value = value
	*reply = value
	return nil
}

func (w *callbackWatcher) refresh(registry *rpc.Client) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return registry.Call("Registry.Get", 0, &w.value)
}

// callbackListen offers a receiver under the name.
func callbackListen(t *testing.T, wg *sync.WaitGroup, name string, receiver any) net.Listener {
	srv := rpc.NewServer()
	if err := srv.RegisterName(name, receiver); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { srv.ServeConn(conn) })
		}
	})
	return ln
}

func callbackDial(t *testing.T, ln net.Listener) *rpc.Client {
	c, err := rpc.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func callbackRun(t *testing.T, early bool) {
	var wg, users sync.WaitGroup
	w := &callbackWatcher{}
	watcherLn := callbackListen(t, &wg, "Watcher", w)
	r := &callbackRegistry{early: early, watcher: callbackDial(t, watcherLn)}
	registryLn := callbackListen(t, &wg, "Registry", r)
	forWatcher, forUpdate := callbackDial(t, registryLn), callbackDial(t, registryLn)

	users.Go(func() {
		if err := w.refresh(forWatcher); err != nil {
			t.Error(err)
		}
	})
	users.Go(func() { // sees that the registry is there, then updates
		var reply int
		for n := range 5 {
			if err := forUpdate.Call("Registry.Ping", n, &reply); err != nil {
				t.Error(err)
			}
		}
		if err := forUpdate.Call("Registry.Update", 7, &reply); err != nil || reply != 7 {
			t.Errorf("update: %d, %v", reply, err)
		}
	})
	users.Wait()
	forWatcher.Close()
	forUpdate.Close()
	r.watcher.Close()
	registryLn.Close()
	watcherLn.Close()
	wg.Wait()
	if w.value != 7 {
		t.Errorf("watcher has %d, want 7", w.value)
	}
}

func TestBugCallbackLocks(t *testing.T) { callbackRun(t, false) }

func TestFixedCallbackLocks(t *testing.T) { callbackRun(t, true) }
