package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// looking returns a strategy that decides as s does, and takes snapshots in some schedules: see looker. It writes what
// it has counted to a file of the directory $COIR_LOOKS, after each of them.
func looking(s Strategy, seed uint64) Strategy {
	switch s.(type) {
	case *dpor, *drawn:
		return s
	}
	most, err := strconv.Atoi(os.Getenv("COIR_LOOKS_MOST"))
	if err != nil {
		panic(err)
	}
	t := newTally()
	path := filepath.Join(os.Getenv("COIR_LOOKS"), fmt.Sprint(filepath.Base(os.Args[0]), "-", lookers.Add(1), ".json"))
	t.ended = func() {
		text, err := json.Marshal(t)
		if err == nil {
			err = os.WriteFile(path, text, 0o666)
		}
		if err != nil {
			panic(err)
		}
	}
	return &looker{Strategy: s, tally: t, seed: seed, most: most}
}

var lookers atomic.Int64
