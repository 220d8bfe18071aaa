package postgres

import (
	"context"
	"time"
)

const (
	// turnTime is for how long a turn lasts: longer than what is done in it may take.
	turnTime = time.Minute
	// turnLook is how often a gateway looks whether it is its turn.
	turnLook = 100 * time.Millisecond
)

// Lease gives this gateway a name for a time, if no other has it. What is given for long is done
// by one gateway only.
func (s *Store) Lease(ctx context.Context, name string, last time.Duration) (mine bool, err error) {
	node, boot := s.db.Node()
	n, err := s.db.Exec(ctx, `insert into leases as l (name, node, boot, until)
		values ($1, $2, $3, clock_timestamp() + $4 * interval '1 microsecond')
		on conflict (name) do update set node = excluded.node, boot = excluded.boot, until = excluded.until
		where l.until < clock_timestamp()`, name, node, boot, last.Microseconds())
	return n == 1, err
}

// Turn waits until this gateway has a name, for a minute at most, and returns what gives it back.
func (s *Store) Turn(ctx context.Context, name string) (end func(), err error) {
	for {
		mine, err := s.Lease(ctx, name, turnTime)
		if err != nil {
			return nil, err
		}
		if mine {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(turnLook):
		}
	}
	node, boot := s.db.Node()
	return func() { // if this fails, it ends by itself
		_, _ = s.db.Exec(context.WithoutCancel(ctx), "delete from leases where name = $1 and node = $2 and boot = $3", name, node, boot)
	}, nil
}
