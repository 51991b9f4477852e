package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Put implements [remote.Transport]. The data stays until the program deletes it from the table kept of the schema.
func (t *Transport) Put(ctx context.Context, key string, data []byte) ([]byte, error) {
	type result struct {
		settings string
		stored   []byte
	}
	for {
		t.mu.Lock()
		expected := t.expected
		t.mu.Unlock()
		r, err := call(ctx, t, "put "+key, func(ctx context.Context) (r result, err error) {
			err = t.scan(ctx, "select * from coir.put($1, $2, $3)", []any{key, expected, data}, &r.settings, &r.stored)
			return r, err
		}, nil)
		if err != nil {
			return nil, err
		}
		if r.settings == expected {
			return r.stored, nil
		}
		if err := t.strengthen(r.settings); err != nil {
			return nil, err
		}
	}
}

// Get implements [remote.Transport].
func (t *Transport) Get(ctx context.Context, key string) ([]byte, error) {
	return call(ctx, t, "get "+key, func(ctx context.Context) (stored []byte, err error) {
		err = t.scan(ctx, "select data from coir.kept where key = $1", []any{key}, &stored)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		return stored, err
	}, nil)
}
