package snapshot_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir/snapshot"
)

// Each uint64 of an object is a counter, except the numbers of objects and fibers, and has its name in JSON.
func TestCountersAreAllCountersOfAnObject(t *testing.T) {
	ids := []string{"id", "sender", "receiver", "senderBefore", "receiverBefore"}
	var o snapshot.Object
	v := reflect.ValueOf(&o).Elem()
	want := map[string]uint64{}
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if v.Field(i).Kind() == reflect.Uint64 && !slices.Contains(ids, name) {
			want[name] = uint64(i)
			v.Field(i).SetUint(uint64(i))
		}
	}
	got := map[string]uint64{}
	for _, c := range o.Counters() {
		got[c.Name] = c.Value
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the counters are %v, and the fields %v: add what is missing to Counters", got, want)
	}
}
