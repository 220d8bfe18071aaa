package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// A standby that is promoted, and a backup that is restored, may lack what was committed last. The server then has another timeline,
// by which gateways notice it:
//
//  1. The first one notes it in meta. All approvals end, since which of them were used may be lost.
//  2. Each gateway writes its labels again, and notes the timeline in its row of nodes.
//  3. Until all have, calls wait whose labels others may know. What a gateway knew that is gone by then is lost for good:
//     sessions that none of the others vouches for count as having read everything.

// Timeline is the timeline of the server, in SQL. It is of the write-ahead log: what a checkpoint says of it may be minutes old.
const Timeline = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int"

// silent is, in SQL, that a run of a gateway x has not written its labels again since the promotion in m, and may have been able to raise some just
// before. One that ended in order had its last write kept, and all before it.
const silent = "x.timeline < m.timeline and x.boot <> '' and x.lease_until > m.kept"

// restoreTime is how long gateways that run may take to write their labels again.
const restoreTime = "interval '1 minute'"

// Doubt is, in SQL, what is to be thought of a session that no gateway vouches for: 0 if nothing is lost, 1 if gateways have yet
// to write their labels again, and 2 if what a gateway knew is lost.
const Doubt = `case
	when m.lost is not null or exists (select from nodes x where ` + silent + ` and (x.lease_until < clock_timestamp() or m.promoted < clock_timestamp() - ` + restoreTime + `)) then 2
	when exists (select from nodes x where ` + silent + `) then 1
	else 0 end`

// note notes a timeline that no gateway has noted yet. Generations go on from a number that none had before, and doubts of an earlier promotion
// on a day go on, too.
const note = `with noted as (
	update meta m set timeline = ` + Timeline + `, promoted = case when timeline > 0 then clock_timestamp() end, kept = (select max(seen) from nodes),
		gen = gen + case when timeline > 0 then 4294967296 else 0 end,
		lost = case when promoted > clock_timestamp() - interval '1 day' and (lost is not null or exists (select from nodes x where ` + silent + `)) then coalesce(lost, promoted) end
	where timeline <> ` + Timeline + ` returning promoted)
delete from approvals where exists (select from noted where promoted is not null)`

// Promoted notes a new timeline, and reports whether this gateway has to write again what it knows, and on which timeline.
func (d *DB) Promoted(ctx context.Context) (timeline int, behind bool, err error) {
	if _, err = d.Exec(ctx, note); err != nil {
		return 0, false, err
	}
	row := func() error {
		return d.Row(ctx, "select m.timeline, abs(n.timeline) <> m.timeline from meta m, nodes n where n.node = $1 and n.boot = $2", []any{d.o.Node, d.o.Boot}, &timeline, &behind)
	}
	if err = row(); !errors.Is(err, pgx.ErrNoRows) {
		return timeline, behind, err
	}
	// That this gateway took its name may be lost, too.
	if _, err = d.Exec(ctx, claim("n.timeline < (select timeline from meta) and"), d.claimed()...); err != nil {
		return 0, false, err
	}
	if err = row(); errors.Is(err, pgx.ErrNoRows) {
		err = d.Taken()
	}
	return timeline, true, err
}

// Restored notes that this gateway has written again what it knows, since the database has a timeline. Whole says that this was all that it had written
// just before.
func (d *DB) Restored(ctx context.Context, timeline int, whole bool) error {
	if !whole {
		timeline = -timeline
	}
	_, err := d.Exec(ctx, "update nodes set timeline = $3 where node = $1 and boot = $2", d.o.Node, d.o.Boot, timeline)
	return err
}
