package postgres

import (
	"cmp"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/pg"
)

// moduleValues keeps a row for each value of a module, sealed.
type moduleValues struct {
	db   *pg.DB
	seal cipher.AEAD
}

// ModuleValues are what modules keep for all gateways.
func (s *Store) ModuleValues() (options.ModuleValues, error) {
	seal, err := s.seal("wasmgate kv 1")
	if err != nil {
		return nil, err
	}
	return moduleValues{s.db, seal}, nil
}

// lives is true of values that have not expired.
const lives = "(until is null or until > clock_timestamp())"

// row names the row of a value in what seals it.
func (moduleValues) row(ns options.ModuleNamespace, key string) []byte {
	return fmt.Appendf(nil, "%q %q %q", ns.Tenant, ns.Tool, key)
}

func (v moduleValues) Get(ctx context.Context, ns options.ModuleNamespace, key string) (value []byte, found bool, err error) {
	var sealed []byte
	err = v.db.Row(ctx, "select value from kv where tenant = $1 and tool = $2 and key = $3 and "+lives, []any{[]byte(ns.Tenant), []byte(ns.Tool), []byte(key)}, &sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if value, err = v.seal.Open(nil, nil, sealed, v.row(ns, key)); err != nil {
		return nil, false, fmt.Errorf("the value %.40q of tool %q cannot be read: its row was changed, or is of another secret: %w", key, ns.Tool, err)
	}
	return value, true, nil
}

func (v moduleValues) Set(ctx context.Context, ns options.ModuleNamespace, key string, value []byte, ttl time.Duration, fits func(keys, bytes int) error) error {
	var refused error
	tenant, tool := []byte(ns.Tenant), []byte(ns.Tool)
	err := v.db.Within(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// Changes of one namespace wait for each other.
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended(encode($1::bytea, 'hex') || ' ' || encode($2::bytea, 'hex'), 0))", tenant, tool); err != nil {
			return err
		}
		var keys, bytes int
		err := tx.QueryRow(ctx, "select count(*), coalesce(sum(size), 0)::bigint from kv where tenant = $1 and tool = $2 and key <> $3 and "+lives, tenant, tool, []byte(key)).Scan(&keys, &bytes)
		if err != nil {
			return err
		}
		if refused = fits(keys, bytes); refused != nil {
			return nil
		}
		_, err = tx.Exec(ctx, `insert into kv (tenant, tool, key, value, size, until)
			values ($1, $2, $3, $4, $5, case when $6::bigint > 0 then clock_timestamp() + $6::bigint * interval '1 microsecond' end)
			on conflict (tenant, tool, key) do update set value = excluded.value, size = excluded.size, until = excluded.until`,
			tenant, tool, []byte(key), v.seal.Seal(nil, nil, value, v.row(ns, key)), len(key)+len(value), ttl.Microseconds())
		return err
	})
	return cmp.Or(err, refused)
}

func (v moduleValues) Delete(ctx context.Context, ns options.ModuleNamespace, key string) (found bool, err error) {
	err = v.db.Row(ctx, "delete from kv where tenant = $1 and tool = $2 and key = $3 returning "+lives, []any{[]byte(ns.Tenant), []byte(ns.Tool), []byte(key)}, &found)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return found, err
}

func (v moduleValues) List(ctx context.Context, ns options.ModuleNamespace, prefix string) (keys []string, err error) {
	err = v.db.Rows(ctx, "select key from kv where tenant = $1 and tool = $2 and substring(key from 1 for $4::int) = $3::bytea and "+lives+" order by key",
		[]any{[]byte(ns.Tenant), []byte(ns.Tool), []byte(prefix), len(prefix)}, func(row pgx.CollectableRow) error {
			var key []byte
			err := row.Scan(&key)
			keys = append(keys, string(key))
			return err
		})
	return keys, err
}
