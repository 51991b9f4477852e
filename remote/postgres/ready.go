package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/coir-go/coir/remote"
)

// tables are the tables of [SQL].
var tables = []string{"coir.queue", "coir.message", "coir.id", "coir.kept", "coir.serving", "coir.mail"}

// Ready implements [remote.Transport]. The error names the tables that are missing or may not be read. The transport
// cannot be used either if the server is a standby, or if its settings promise less than [remote.Info] says.
func (t *Transport) Ready(ctx context.Context) error {
	type state struct {
		settings string
		standby  bool
		missing  []string
	}
	names := make([]string, len(tables))
	for i, name := range tables {
		names[i] = t.sql(name)
	}
	is, err := call(ctx, t, "look at the tables", func(ctx context.Context) (is state, err error) {
		err = t.scan(ctx, `select coalesce(array_agg(name), '{}') from unnest($1::text[]) as t(name)
			where not coalesce(has_table_privilege(to_regclass(name), 'select'), false)`,
			[]any{names}, &is.missing)
		if err == nil && len(is.missing) == 0 {
			err = t.scan(ctx, "select coir.settings(), pg_is_in_recovery()", nil, &is.settings, &is.standby)
		}
		return is, err
	}, nil)
	switch {
	case err != nil:
		return err
	case len(is.missing) > 0:
		return fmt.Errorf("postgres: the tables %s are missing, or the user may not read them: run the statements of "+
			"postgres.SQL, and grant the user what they use", strings.Join(is.missing, ", "))
	case is.standby:
		return fmt.Errorf("postgres: %w: the server is a standby, which stores nothing", remote.ErrUnavailable)
	}
	if m := meaningOf(is.settings); m < t.meaning {
		return fmt.Errorf("postgres: the server's settings are now %q: a message is only %v, and was %v before",
			is.settings, m, t.meaning)
	}
	return nil
}
