package postgres

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/wasmgate/wasmgate/gate/session"
	"github.com/wasmgate/wasmgate/internal/pg"
)

// Options say which database is used, and who uses it.
type Options struct {
	URL    string // postgres://...; verified by TLS unless it is on this machine
	Secret []byte // at least 32 random bytes, the same for all gateways of the database
	Node   string // the name of this gateway, which no other of the database has
	// Version is that of the program, for people who look at the database.
	Version string
	Pooled  bool          // a pooler lends connections for one transaction each
	Timeout time.Duration // of each query; zero means 2 s
	// Listens is the URL at which this gateway answers what others forward; "" if it does not.
	Listens string
	// Observe gets each use of the database: whether it was a "read", a "write" or a "transaction", how long it took, and why it failed, "timeout",
	// "connection", "server" or "other"; "" if it did not. Nil does nothing.
	Observe func(op string, took time.Duration, failed string)
	// Lost is called once if another process has the name of this gateway. From then on no call
	// is admitted. Nil does nothing.
	Lost func(error)
}

// A Node is a gateway of the database.
type Node struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Gone    bool      `json:"gone,omitempty"` // it has stopped, or given no sign of life for the time of its lease
	URL     string    `json:"url,omitempty"`  // where it listens for other gateways
	Seen    float64   `json:"seen_seconds"`   // how long ago it gave a sign of life
	// Config and Policy identify what it runs on.
	Config string `json:"config,omitempty"`
	Policy string `json:"policy,omitempty"`
	Audit  string `json:"audit_head,omitempty"` // the last record of its audit log, as `wasmgate audit verify --head` takes it
	// Draining says that it takes no home any more, and gives its own away.
	Draining bool `json:"draining,omitempty"`
	Busy     int  `json:"busy"`  // calls and requests that it answers
	Homes    int  `json:"homes"` // principals whose requests it answers; counted by Overview only
}

// A Store is an open database. Use it from several goroutines.
type Store struct {
	db     *pg.DB
	nodes  atomic.Pointer[[]Node]
	values cipher.AEAD // seals values on their way
	homes  homes
	reads  reads

	restoring sync.Mutex
}

// A Sign is what a gateway tells the others of itself.
type Sign struct {
	Config, Policy string // what identifies them
	AuditSeq       uint64 // of the last record of its audit log
	AuditHead      string // the hash of that record
	Busy           int    // calls and requests that it answers
}

func (o Options) pg() pg.Options {
	return pg.Options{URL: o.URL, Secret: o.Secret, Node: o.Node, Version: o.Version, Pooled: o.Pooled, Timeout: o.Timeout, Listens: o.Listens, Observe: o.Observe, Lost: o.Lost}
}

// Inspect opens a database for a look at its gateways. It takes no name, and must be closed.
func Inspect(ctx context.Context, o Options) (*Store, error) {
	db, err := pg.Inspect(ctx, o.pg())
	if err != nil {
		return nil, err
	}
	return &Store{db: db}, nil
}

// Open connects to a database, creates its tables or brings them up to date, and takes the name
// of the node. It must be closed.
func Open(ctx context.Context, o Options) (*Store, error) {
	p := o.pg()
	p.Boot = rand.Text()[:10]
	db, err := pg.Open(ctx, p)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db}
	if s.values, err = s.seal(valuesPurpose); err != nil {
		return nil, errors.Join(err, db.Close(ctx))
	}
	s.look(ctx)
	return s, nil
}

// Run keeps the name of the node, tells others of it, and removes what has ended, until ctx ends. TTL
// returns how long sessions last without use.
func (s *Store) Run(ctx context.Context, sign func() Sign, ttl func() time.Duration) {
	s.db.Run(ctx, func() pg.Sign { return pg.Sign(sign()) }, func(ctx context.Context) {
		_ = s.sweep(ctx, ttl()) // the next one removes what this one could not
		s.look(ctx)
	})
}

// look finds the gateways of the database. While it is away they are those of before.
func (s *Store) look(ctx context.Context) {
	if all, err := s.read(ctx, "0"); err == nil {
		s.nodes.Store(&all)
		s.homes.prune(all)
	}
}

// Overview returns the gateways of the database, by name, with all that is known of them.
func (s *Store) Overview(ctx context.Context) ([]Node, error) {
	return s.read(ctx, "(select count(*) from homes h where h.node = nodes.node and h.boot = nodes.boot)")
}

// read returns the gateways that run, and those that ran in the last day.
func (s *Store) read(ctx context.Context, homes string) (all []Node, err error) {
	err = s.db.Rows(ctx, `select node, version, started, lease_until < clock_timestamp(), url, config, policy, audit_seq, audit_head,
			extract(epoch from clock_timestamp() - seen)::float8, draining, busy, `+homes+` from nodes
		where lease_until > clock_timestamp() - interval '1 day' order by node`, nil, func(row pgx.CollectableRow) error {
		var n Node
		var seq int64
		var head string
		err := row.Scan(&n.Name, &n.Version, &n.Started, &n.Gone, &n.URL, &n.Config, &n.Policy, &seq, &head, &n.Seen, &n.Draining, &n.Busy, &n.Homes)
		if head != "" {
			n.Audit = strconv.FormatInt(seq, 10) + ":" + head
		}
		all = append(all, n)
		return err
	})
	return all, err
}

// Drain has a gateway take no home any more, and give its own away, until it starts again. It is false if
// none of that name runs.
func (s *Store) Drain(ctx context.Context, node string) (bool, error) { return s.db.Drain(ctx, node) }

// Drains reports whether that was asked of this gateway.
func (s *Store) Drains() bool { return s.db.Drains() }

// Nodes returns the gateways of the database as they were a few seconds ago, by name.
func (s *Store) Nodes() []Node {
	if all := s.nodes.Load(); all != nil {
		return *all
	}
	return nil
}

// Find returns the URL at which a gateway answers what others forward; "" if it does not, or does not
// run: as it was a few seconds ago, or now.
func (s *Store) Find(ctx context.Context, node string, now bool) (string, error) {
	if now {
		return s.db.URL(ctx, node)
	}
	for _, n := range s.Nodes() {
		if n.Name == node && !n.Gone {
			return n.URL, nil
		}
	}
	return "", nil
}

// Close gives the name of the node back.
func (s *Store) Close(ctx context.Context) error { return s.db.Close(ctx) }

// Problem says what is wrong with the clocks of the machine and the database; nil if nothing is.
func (s *Store) Problem() error { return s.db.Problem() }

// LeaseLeft returns how long this gateway still has its name, by its last sign of life; zero or less if others may take its homes over.
func (s *Store) LeaseLeft() time.Duration { return s.db.LeaseLeft() }

// Skew returns by how much the clock of this machine is ahead of the database's.
func (s *Store) Skew() time.Duration { return s.db.Skew() }

// Node is the name of this gateway.
func (s *Store) Node() string {
	node, _ := s.db.Node()
	return node
}

// Reader names this run of this gateway among those that read: see [session.Options].
func (s *Store) Reader() string { return s.db.Reader() }

// Generation returns how many changes there were by which calls are refused.
func (s *Store) Generation(ctx context.Context) (generation uint64, err error) {
	return generation, s.db.Row(ctx, "select gen from meta", nil, &generation)
}

// Sessions are what all gateways know of sessions.
func (s *Store) Sessions() session.Shared { return sessions{s.db, s.values, &s.reads, &s.restoring} }

// Document returns one of a name.
func (s *Store) Document(name string) Document { return Document{s.db, name} }
