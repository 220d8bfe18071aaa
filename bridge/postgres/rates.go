package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/limits"
	"github.com/wasmgate/wasmgate/internal/pg"
)

// rates keeps a row for each bucket that is not full.
type rates struct{ db *pg.DB }

// Rates are the buckets that all gateways take portions of.
func (s *Store) Rates() limits.SharedRates { return rates{s.db} }

// exchange fills a bucket up to now, puts tokens back, and takes others. A crash of the database may
// undo it: a policy reads no rate, and to wait for the disk would make rates the slowest step of a call.
const exchange = `with was as (
	select calls, bytes, filled, clock_timestamp() as now from rates where tenant = $1 and owner = $2 and name = $3 for update
), had as (
	select now, least($4::float8, calls + share * $5::float8 + $9::float8) as calls,
		greatest(-$8::float8 * $6::float8, least($6::float8, bytes + share * $6::float8 + $10::float8)) as bytes
	from (select *, greatest(0, extract(epoch from now - filled)) / $7::float8 as share from was) as w
), goes as (
	select *, ($5::float8 = 0 or calls > 1 - 1e-9) and ($6::float8 = 0 or bytes > 1 - 1e-9) as ok from had
), takes as (
	select *, case when ok then least(calls, $11::float8) else 0 end as took_calls,
		case when ok then least(bytes, $12::float8) else 0 end as took_bytes from goes
)
update rates r set calls = t.calls - took_calls, bytes = t.bytes - took_bytes, filled = now,
	until = now + interval '1 second' * $7::float8 * coalesce(greatest(
		($4::float8 - t.calls + took_calls) / nullif($5::float8, 0), ($6::float8 - t.bytes + took_bytes) / nullif($6::float8, 0)), 0)
from takes t where r.tenant = $1 and r.owner = $2 and r.name = $3
returning took_calls, took_bytes, r.calls, r.bytes, set_config('synchronous_commit', 'off', true)`

func (r rates) Exchange(ctx context.Context, c gate.Charge, back, want limits.Tokens) (took, left limits.Tokens, err error) {
	of := *c.Rate
	burst, bytes := limits.Burst(of), float64(of.Bytes)
	try := func() error {
		return r.db.Row(ctx, exchange, []any{
			c.Owner.Tenant, c.Owner.ID, c.Limit, burst, float64(of.Calls), bytes, of.Per.Seconds(), float64(limits.MaxDebt),
			back.Calls, back.Bytes, want.Calls, want.Bytes,
		}, &took.Calls, &took.Bytes, &left.Calls, &left.Bytes, new(string))
	}
	if err = try(); !errors.Is(err, pgx.ErrNoRows) {
		return took, left, err
	}
	_, err = r.db.Exec(ctx, "insert into rates (tenant, owner, name, calls, bytes) values ($1, $2, $3, $4::float8, $5::float8) on conflict do nothing", c.Owner.Tenant, c.Owner.ID, c.Limit, burst, bytes)
	if err == nil {
		err = try()
	}
	return took, left, err
}
