//go:build corpus

package corpus

import (
	"sync"
	"testing"
)

// A service opens one database per tenant, when it is first asked for. It looks into the map under the lock, opens
// the database without it and stores it under the lock again. Two requests that both look before either stores open
// two.
//
// Class: atomicity
// Expect: fail

type tenantDB struct {
	name string
}

type tenantDBs struct {
	mu     sync.Mutex
	opened int
	dbs    map[string]*tenantDB
}

func (d *tenantDBs) lookup(name string) (*tenantDB, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	db, ok := d.dbs[name]
	return db, ok
}

func (d *tenantDBs) store(db *tenantDB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened++
	d.dbs[db.name] = db
}

func (d *tenantDBs) get(name string) *tenantDB {
	if db, ok := d.lookup(name); ok {
		return db
	}
	db := &tenantDB{name: name}
	d.store(db)
	return db
}

func (d *tenantDBs) getFixed(name string) *tenantDB {
	d.mu.Lock()
	defer d.mu.Unlock()
	if db, ok := d.dbs[name]; ok {
		return db
	}
	db := &tenantDB{name: name}
	d.opened++
	d.dbs[name] = db
	return db
}

func runTenantDBs(t *testing.T, get func(*tenantDBs, string) *tenantDB) {
	d := &tenantDBs{dbs: make(map[string]*tenantDB)}
	var got [2]*tenantDB
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = get(d, "acme") })
	}
	wg.Wait()
	if d.opened != 1 || got[0] != got[1] {
		t.Errorf("opened %d databases for one tenant", d.opened)
	}
}

func TestBugTenantDBs(t *testing.T) {
	runTenantDBs(t, (*tenantDBs).get)
}

func TestFixedTenantDBs(t *testing.T) {
	runTenantDBs(t, (*tenantDBs).getFixed)
}
