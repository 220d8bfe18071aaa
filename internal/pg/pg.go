package pg

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// MinSecret is how many bytes the secret has at least.
	MinSecret = 32
	// lease is how long a gateway has its name without a sign of life, and beat how often it
	// gives one.
	lease = 15 * time.Second
	beat  = lease / 3
	// maxSkew is how far the clocks of a gateway and the database may differ.
	maxSkew = time.Minute
	// usualTimeout bounds each query unless the configuration says otherwise.
	usualTimeout = 2 * time.Second
)

// Options say which database is used, and who uses it.
type Options struct {
	URL     string
	Secret  []byte // that all gateways of the database have
	Node    string // the name of this one
	Version string // of the program
	// Pooled says that a pooler such as PgBouncer lends connections for one transaction each.
	Pooled bool
	// Connections is how many there are at most. Zero means 4.
	Connections int32
	// Timeout bounds each query. Zero means 2 s.
	Timeout time.Duration
	// Listens is the URL at which it listens for other gateways; "" if it does not.
	Listens string
	// Boot tells this run of the node from others.
	Boot string
	// Observe gets how long each use of the database took, by "read", "write" or "transaction", and why it failed: "timeout", "connection", "server" or
	// "other"; "" if it did not. Nil does nothing.
	Observe func(op string, took time.Duration, failed string)
	// Lost is called once if another process has the name of this gateway; nil does nothing.
	Lost func(error)

	now      func() time.Time // nil is the clock
	patience time.Duration    // how long it waits for its name; zero means a lease and a beat
}

// A DB is an open database. Use it from several goroutines.
type DB struct {
	o      Options
	pool   *pgxpool.Pool
	drains atomic.Bool
	leased atomic.Int64 // when the last sign of life was given, in nanoseconds of this machine's clock
	skew   atomic.Int64 // time.Duration by which this machine's clock is ahead of the database's
}

// Open connects to a database, brings its schema up to date, and takes the name of the node. It
// waits for the lease of a process that has died.
func Open(ctx context.Context, o Options) (*DB, error) {
	return connect(ctx, o, func(d *DB) error {
		if _, err := d.migrate(ctx, steps); err != nil {
			return err
		}
		return d.join(ctx)
	})
}

// Inspect connects to a database whose gateways are to be looked at. It changes nothing, and takes no name.
func Inspect(ctx context.Context, o Options) (*DB, error) {
	return connect(ctx, o, func(d *DB) error {
		have, err := d.step(ctx)
		if err == nil {
			err = current(have)
		}
		return cmp.Or(err, d.holdsSecret(ctx))
	})
}

// connect opens a database that ready says nothing against.
func connect(ctx context.Context, o Options, ready func(*DB) error) (*DB, error) {
	if o.now == nil {
		o.now = time.Now
	}
	if o.Timeout <= 0 {
		o.Timeout = usualTimeout
	}
	if o.Connections <= 0 {
		o.Connections = 4
	}
	if o.patience <= 0 {
		o.patience = lease + beat
	}
	if len(o.Secret) < MinSecret {
		return nil, fmt.Errorf("store: the secret has %d bytes; give all gateways of the database the same %d random bytes or more, such as of `openssl rand -hex 32`", len(o.Secret), MinSecret)
	}
	c, err := o.pool()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	d := &DB{o: o, pool: pool}
	if err := ready(d); err != nil {
		pool.Close()
		return nil, d.advise(err)
	}
	return d, nil
}

// pool returns how connections are made.
func (o *Options) pool() (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil { // its text may hold the password
		return nil, errors.New("store: the URL of the database cannot be read; write postgres://USER@HOST/DATABASE?sslmode=verify-full")
	}
	if err := verified(&c.ConnConfig.Config); err != nil {
		return nil, err
	}
	c.MaxConns = o.Connections
	c.MaxConnLifetime, c.MaxConnLifetimeJitter = 30*time.Minute, 5*time.Minute
	c.ConnConfig.ConnectTimeout = o.Timeout
	c.ConnConfig.ValidateConnect = writable
	p := c.ConnConfig.RuntimeParams
	p["application_name"] = "wasmgate/" + o.Node
	if o.Pooled {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		return c, nil // a pooler does not pass other parameters on
	}
	ms := func(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
	p["statement_timeout"], p["lock_timeout"] = ms(o.Timeout), ms(o.Timeout/2)
	p["idle_in_transaction_session_timeout"] = "5000"
	return c, nil
}

// verified refuses connections that somebody on the way could read or answer.
func verified(c *pgconn.Config) error {
	check := func(host string, encrypted bool) error {
		if addr, err := netip.ParseAddr(host); strings.HasPrefix(host, "/") || host == "localhost" || err == nil && addr.IsLoopback() || encrypted {
			return nil
		}
		return fmt.Errorf("store: the connection to %s would not be verified; add sslmode=verify-full to the URL, and sslrootcert=PATH if the system does not know its authority", host)
	}
	if err := check(c.Host, c.TLSConfig != nil && !c.TLSConfig.InsecureSkipVerify); err != nil {
		return err
	}
	for _, f := range c.Fallbacks {
		if err := check(f.Host, f.TLSConfig != nil && !f.TLSConfig.InsecureSkipVerify); err != nil {
			return err
		}
	}
	return nil
}

// errStandby and errReadOnly are of a database that cannot keep anything.
var (
	errStandby  = errors.New("it is a standby; name the primary in the URL, or all servers and target_session_attrs=read-write")
	errReadOnly = errors.New("it is read-only (default_transaction_read_only); let the user of the URL write, or name another database")
)

// writable refuses a server that cannot keep anything, so that the next one of the URL is tried.
func writable(ctx context.Context, c *pgconn.PgConn) error {
	r, err := c.Exec(ctx, "select pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'").ReadAll()
	if err != nil {
		return err
	}
	if len(r) != 1 || len(r[0].Rows) != 1 || len(r[0].Rows[0]) != 2 {
		return errors.New("it answers as no PostgreSQL does")
	}
	switch row := r[0].Rows[0]; {
	case string(row[0]) != "f":
		return errStandby
	case string(row[1]) != "f":
		return errReadOnly
	}
	return nil
}

// join makes this gateway one of those of the database.
func (d *DB) join(ctx context.Context) error {
	if _, err := d.Exec(ctx, "update meta set secret = $1 where secret is null", d.proof()); err != nil {
		return err
	}
	if err := d.holdsSecret(ctx); err != nil {
		return err
	}
	if err := d.checkClock(ctx); err != nil {
		return err
	}
	if _, err := d.Exec(ctx, note); err != nil {
		return err
	}
	return d.claim(ctx)
}

// proof is what shows the secret to those that have it.
func (d *DB) proof() []byte {
	h := hmac.New(sha256.New, d.o.Secret)
	h.Write([]byte("wasmgate store 1"))
	return h.Sum(nil)
}

// holdsSecret refuses a secret that is not the one of the other gateways.
func (d *DB) holdsSecret(ctx context.Context) error {
	var theirs []byte
	err := d.Row(ctx, "select secret from meta", nil, &theirs)
	if err == nil && theirs != nil && !hmac.Equal(d.proof(), theirs) {
		return errors.New("this gateway's secret differs from that of the other gateways of the database; give all gateways the same secret")
	}
	return err
}

// checkClock refuses to run with a clock by which what is sealed would end at another time.
func (d *DB) checkClock(ctx context.Context) error {
	var theirs time.Time
	if err := d.Row(ctx, "select clock_timestamp()", nil, &theirs); err != nil {
		return err
	}
	return d.compare(theirs)
}

func (d *DB) compare(theirs time.Time) error {
	skew := d.o.now().Sub(theirs)
	d.skew.Store(int64(skew))
	if skew.Abs() <= maxSkew {
		return nil
	}
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	return fmt.Errorf("the clock of this machine is %v %s the database's; set both by NTP", skew.Abs().Round(time.Second), where)
}

// Problem says what is wrong with the clocks; nil if nothing is.
func (d *DB) Problem() error {
	return d.advise(d.compare(d.o.now().Add(-time.Duration(d.skew.Load()))))
}

// errTaken says that another process has the name of this gateway.
type errTaken struct{ node string }

func (e *errTaken) Error() string {
	return fmt.Sprintf("another gateway runs as node %s; give each a name of its own under store.node, and do not copy state folders", e.node)
}

// claim takes the name of a node once its lease has ended, if a condition holds that ends in "and". If the run that had it may have known what is lost, it
// is lost for good.
func claim(only string) string {
	return `with lost as (update meta m set lost = coalesce(m.lost, m.promoted) from nodes x
			where x.node = $1 and x.boot <> $2 and x.lease_until < clock_timestamp() and ` + silent + `)
		insert into nodes as n (node, boot, version, started, lease_until, url, timeline)
		values ($1, $2, $3, clock_timestamp(), clock_timestamp() + $4 * interval '1 microsecond', $5, (select timeline from meta))
		on conflict (node) do update set boot = excluded.boot, version = excluded.version, started = excluded.started, lease_until = excluded.lease_until, url = excluded.url,
			draining = false, timeline = excluded.timeline
		where ` + only + ` n.lease_until < clock_timestamp()`
}

// claimed are the arguments of [claim].
func (d *DB) claimed() []any {
	return []any{d.o.Node, d.o.Boot, d.o.Version, lease.Microseconds(), d.o.Listens}
}

// claim takes the name of the node, as soon as it is free.
func (d *DB) claim(ctx context.Context) error {
	until := time.Now().Add(d.o.patience)
	for {
		tag, err := d.Exec(ctx, claim(""), d.claimed()...)
		if err == nil && tag == 1 {
			d.leased.Store(d.o.now().UnixNano())
			return nil
		}
		if err != nil {
			return err
		}
		if time.Now().After(until) {
			return &errTaken{d.o.Node}
		}
		select {
		case <-ctx.Done():
			return errors.Join(&errTaken{d.o.Node}, ctx.Err())
		case <-time.After(beat / 10):
		}
	}
}

// A Sign is what a gateway tells the others of itself.
type Sign struct {
	Config, Policy string // what identifies them
	AuditSeq       uint64 // of the last record of its audit log
	AuditHead      string // the hash of that record
	Busy           int    // calls and requests that it answers
}

// Run keeps the name of the node until ctx ends, and calls each now and then.
func (d *DB) Run(ctx context.Context, sign func() Sign, each func(ctx context.Context)) {
	t := time.NewTicker(beat)
	defer t.Stop()
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		if _, err := d.Exec(ctx, note); err != nil { // signs of life may not hide when the last one before it was
			continue
		}
		var theirs time.Time
		var drains bool
		now := sign()
		err := d.Row(ctx, `update nodes set lease_until = clock_timestamp() + $3 * interval '1 microsecond', seen = clock_timestamp(),
			config = $4, policy = $5, audit_seq = $6, audit_head = $7, busy = $8
			where node = $1 and boot = $2 returning clock_timestamp(), draining`,
			[]any{d.o.Node, d.o.Boot, lease.Microseconds(), now.Config, now.Policy, int64(now.AuditSeq), now.AuditHead, now.Busy}, &theirs, &drains)
		if errors.Is(err, pgx.ErrNoRows) && d.taken(ctx) {
			if d.o.Lost != nil {
				d.o.Lost(&errTaken{d.o.Node})
			}
			return
		}
		if err == nil {
			_ = d.compare(theirs) // Problem tells
			d.leased.Store(d.o.now().UnixNano())
			if drains {
				d.drains.Store(true)
			}
		}
		each(ctx)
	}
}

// taken reports whether another process has the name of this gateway, and tries to take it again if only that is lost that this one had it.
func (d *DB) taken(ctx context.Context) (is bool) {
	if _, _, err := d.Promoted(ctx); err == nil {
		return false
	}
	err := d.Row(ctx, "select n.boot <> $2 and n.timeline >= m.timeline from meta m, nodes n where n.node = $1", []any{d.o.Node, d.o.Boot}, &is)
	return err == nil && is
}

// Drain has a gateway take no home any more, and give its own away, until it starts again. It is false if
// none of that name runs.
func (d *DB) Drain(ctx context.Context, node string) (bool, error) {
	n, err := d.Exec(ctx, "update nodes set draining = true where node = $1 and lease_until >= clock_timestamp()", node)
	if err == nil && n > 0 && node == d.o.Node {
		d.drains.Store(true)
	}
	return n > 0, err
}

// Drains reports whether that was asked of this gateway.
func (d *DB) Drains() bool { return d.drains.Load() }

// URL returns where a gateway listens for others; "" if it does not, or does not run.
func (d *DB) URL(ctx context.Context, node string) (url string, err error) {
	err = d.Row(ctx, "select url from nodes where node = $1 and lease_until >= clock_timestamp()", []any{node}, &url)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return url, err
}

// Close gives the name of the node back, if it was taken.
func (d *DB) Close(ctx context.Context) error {
	if d.o.Boot == "" {
		d.pool.Close()
		return nil
	}
	// Its run has no name any more if all that it has written is there.
	_, err := d.Exec(ctx, `update nodes n set lease_until = clock_timestamp(), boot = case when n.timeline = `+Timeline+` then '' else n.boot end
		where n.node = $1 and n.boot = $2`, d.o.Node, d.o.Boot)
	d.pool.Close()
	return err
}

// Reader names this run of this gateway.
func (d *DB) Reader() string { return d.o.Node + "/" + d.o.Boot }

// Node and Boot are the two parts of [DB.Reader].
func (d *DB) Node() (node, boot string) { return d.o.Node, d.o.Boot }

// Taken is the error of a gateway whose name another process has.
func (d *DB) Taken() error { return d.advise(&errTaken{d.o.Node}) }

// Key returns a key for a purpose, which all gateways of the database have.
func (d *DB) Key(purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, d.o.Secret, nil, purpose, 32)
}

// Row scans the one row of a query. Without one the error is pgx.ErrNoRows.
func (d *DB) Row(ctx context.Context, query string, args []any, to ...any) (err error) {
	defer d.observe(op(query), time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	return d.advise(d.pool.QueryRow(ctx, query, args...).Scan(to...))
}

// Exec returns how many rows a statement has changed.
func (d *DB) Exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	defer d.observe(op(query), time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	tag, err := d.pool.Exec(ctx, query, args...)
	return tag.RowsAffected(), d.advise(err)
}

// Rows calls scan for each row of a query.
func (d *DB) Rows(ctx context.Context, query string, args []any, scan func(row pgx.CollectableRow) error) (err error) {
	defer d.observe(op(query), time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	rows, err := d.pool.Query(ctx, query, args...)
	if err != nil {
		return d.advise(err)
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, scan(row) })
	return d.advise(err)
}

// Within does something in one transaction.
func (d *DB) Within(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) (err error) {
	defer d.observe("transaction", time.Now(), &err)
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	return d.advise(pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return do(ctx, tx) }))
}

// op says what a query does: "read" or "write".
func op(query string) string {
	if strings.HasPrefix(query, "select") {
		return "read"
	}
	return "write"
}

func (d *DB) observe(op string, began time.Time, err *error) {
	if d.o.Observe != nil {
		d.o.Observe(op, time.Since(began), kind(*err))
	}
}

// kind names the kind of an error of the database; "" is none.
func kind(err error) string {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		return ""
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "timeout"
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "server"
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return "connection"
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return "connection"
	}
	return "other"
}

// LeaseLeft returns how long this gateway still has its name, by its last sign of life; zero or less if the lease has ended.
func (d *DB) LeaseLeft() time.Duration { return lease - d.o.now().Sub(time.Unix(0, d.leased.Load())) }

// Skew returns by how much the clock of this machine is ahead of the database's.
func (d *DB) Skew() time.Duration { return time.Duration(d.skew.Load()) }

// An Error is of a database that cannot be used now.
type Error struct{ Err error }

func (e *Error) Error() string { return "store: " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Code is that of calls that are refused for it.
func (e *Error) Code() string { return "refused_store" }

// advise says what to do about the errors that an operator can do something about.
func (d *DB) advise(err error) error {
	var e *Error
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.As(err, &e) {
		return err
	}
	for _, known := range []error{errStandby, errReadOnly} {
		if errors.Is(err, known) {
			return &Error{fmt.Errorf("the database at %s cannot be used: %w", d.host(), known)}
		}
	}
	if p, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch p.Code {
		case "28P01", "28000":
			return &Error{fmt.Errorf("the database at %s refuses the user: %s; look at the user and password of the URL, and at pg_hba.conf", d.host(), p.Message)}
		case "3D000":
			return &Error{fmt.Errorf("%s at %s; create it, or name another one in the URL", p.Message, d.host())}
		case "42501":
			return &Error{fmt.Errorf("%s; grant the user of the URL select, insert, update and delete on the tables, and create on the schema for updates", p.Message)}
		case "25006":
			return &Error{fmt.Errorf("the database at %s cannot be used: %w", d.host(), errReadOnly)}
		case "42P05", "26000", "08P01": // statements of other clients, and parameters that it does not pass on
			return &Error{fmt.Errorf("%s: a pooler is in between that lends connections for one transaction; set store.pooled: true", p.Message)}
		case "57P01", "57P02", "57P03", "57014":
			return &Error{fmt.Errorf("the database at %s does not answer: %s", d.host(), p.Message)}
		}
		return &Error{err}
	}
	if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return &Error{fmt.Errorf("the database at %s does not answer: %w", d.host(), err)}
	}
	return &Error{err}
}

func (d *DB) host() string {
	c := d.pool.Config().ConnConfig
	return net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
}
