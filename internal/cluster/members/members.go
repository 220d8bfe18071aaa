// Package members looks at the gateways of a database, and at the database, for commands: no gateway has to
// run.
package members

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/bridge/postgres"
	"github.com/wasmgate/wasmgate/internal/cluster"
	"github.com/wasmgate/wasmgate/internal/cluster/heads"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/pg"
	"github.com/wasmgate/wasmgate/internal/product"
)

// ErrNoStore says that a configuration has no database that gateways share.
var ErrNoStore = errors.New("the configuration has no store; see docs/how-to/cluster.md")

// ErrNoCluster says that gateways do not reach each other.
var ErrNoCluster = errors.New("the configuration has no cluster; see docs/how-to/cluster.md")

// ClusterKey is the purpose of the key by which gateways know each other.
const ClusterKey = "wasmgate cluster 1"

// operatorNode is the name of a command among gateways, which none of them has.
const operatorNode = "operator"

// Options are those by which the gateway of a configuration opens the database.
func Options(c *config.Config, node string) postgres.Options {
	return postgres.Options{
		URL: string(c.Store.Postgres), Secret: []byte(c.Store.Secret), Node: node, Version: product.Version(), Pooled: c.Store.Pooled, Timeout: c.Store.Timeout, Listens: c.Cluster.At(),
	}
}

// Key returns a key for a purpose, which all gateways of the database have.
func Key(c *config.Config, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, []byte(c.Store.Secret), nil, purpose, 32)
}

func database(c *config.Config) (pg.Options, error) {
	if !c.Store.On() {
		return pg.Options{}, ErrNoStore
	}
	return pg.Options{URL: string(c.Store.Postgres), Secret: []byte(c.Store.Secret), Node: operatorNode, Version: product.Version(), Pooled: c.Store.Pooled, Timeout: c.Store.Timeout}, nil
}

// CheckStore looks whether a gateway can use the database of a configuration.
func CheckStore(ctx context.Context, c *config.Config) ([]pg.Finding, error) {
	o, err := database(c)
	if err != nil {
		return nil, err
	}
	return pg.Check(ctx, o), nil
}

// Migrate brings the tables of the database up to date. It returns the steps that they had, and
// that they have.
func Migrate(ctx context.Context, c *config.Config) (had, has int, err error) {
	o, err := database(c)
	if err != nil {
		return 0, 0, err
	}
	return pg.Migrate(ctx, o)
}

// A Cluster is the gateways of a database.
type Cluster struct {
	Nodes    []postgres.Node `json:"nodes"`
	Problems []string        `json:"problems,omitempty"`
}

// Inspect returns the gateways of the database of a configuration. None has to run.
func Inspect(ctx context.Context, c *config.Config) (*Cluster, error) {
	s, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	return Look(ctx, s)
}

// Look returns the gateways of a database.
func Look(ctx context.Context, s *postgres.Store) (*Cluster, error) {
	all, err := s.Overview(ctx)
	if err != nil {
		return nil, err
	}
	problems := differences(all, "version", "all gateways should run the same one after an upgrade", func(n postgres.Node) string { return n.Version })
	problems = append(problems, differences(all, "configuration", "give all gateways the same configuration and lockfile; write what differs as ${NODE}", func(n postgres.Node) string { return n.Config })...)
	problems = append(problems, differences(all, "policy", "an approval that was given under one policy is asked for again under another", func(n postgres.Node) string { return n.Policy })...)
	return &Cluster{Nodes: all, Problems: problems}, nil
}

// Drain has a gateway take no home any more, and give its own away, until it starts again.
func Drain(ctx context.Context, c *config.Config, node string) error {
	s, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	runs, err := s.Drain(ctx, node)
	if err == nil && !runs {
		return &NameError{node}
	}
	return err
}

// A NameError says that no gateway of a name runs.
type NameError struct{ Node string }

func (e *NameError) Error() string {
	return fmt.Sprintf("no gateway %s runs; `wasmgate cluster` lists those that do", e.Node)
}

// Drained reports whether a gateway has no homes any more and answers nothing, or has stopped.
func Drained(ctx context.Context, c *config.Config, node string) (bool, error) {
	all, err := Inspect(ctx, c)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(all.Nodes, func(n postgres.Node) bool { return n.Name == node && !n.Gone })
	return at < 0 || all.Nodes[at].Homes == 0 && all.Nodes[at].Busy == 0, nil
}

func open(ctx context.Context, c *config.Config) (*postgres.Store, error) {
	if !c.Store.On() {
		return nil, ErrNoStore
	}
	return postgres.Inspect(ctx, Options(c, operatorNode))
}

// Grants returns the grants that the gateways of a database share, in the form of a grants file.
func Grants(ctx context.Context, c *config.Config) (all []byte, err error) {
	err = WithGrants(ctx, c, func(at state.Document) error {
		all, _, err = at.Load(ctx, 0)
		return err
	})
	return all, err
}

// WithGrants does something with the grants that commands change: the file of a configuration, or those
// that its gateways share.
func WithGrants(ctx context.Context, c *config.Config, do func(at state.Document) error) error {
	if !c.Store.On() {
		return do(policydata.GrantsFile(c.Policy.Grants))
	}
	s, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	return do(s.Document(policydata.GrantsName))
}

// Approved returns the pins that are approved: in the lockfile of a configuration, and by the gateways that share its database.
func Approved(ctx context.Context, c *config.Config) (*lock.File, error) {
	if !c.Store.On() {
		return lock.Load(c.Pins.Lockfile)
	}
	s, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	f, err := lock.LoadShared(c.Pins.Lockfile, func(name string) options.Document { return s.Document(name) })
	return f, errors.Join(err, s.Close(ctx))
}

// differences says which gateways that run differ in something, and what to do about it; nothing if
// none does.
func differences(nodes []postgres.Node, what, do string, of func(postgres.Node) string) []string {
	var values []string
	names := map[string][]string{}
	for _, n := range nodes {
		v := of(n)
		if n.Gone || v == "" {
			continue
		}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
		names[v] = append(names[v], n.Name)
	}
	if len(values) < 2 {
		return nil
	}
	var parts []string
	for _, v := range values {
		parts = append(parts, fmt.Sprintf("%s at %s", v, strings.Join(names[v], ", ")))
	}
	return []string{fmt.Sprintf("the %s differs: %s; %s", what, strings.Join(parts, "; "), do)}
}

// Peers are the gateways that run, for a command to ask.
type Peers struct {
	*cluster.Peers
	Nodes []string // their names
	store *postgres.Store
}

// OpenPeers opens the database, and returns the gateways that run. It must be closed.
func OpenPeers(ctx context.Context, c *config.Config) (*Peers, error) {
	if c.Cluster.Listen == "" {
		return nil, ErrNoCluster
	}
	s, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &Peers{store: s}
	all, err := s.Overview(ctx)
	for _, n := range all {
		if !n.Gone {
			p.Nodes = append(p.Nodes, n.Name)
		}
	}
	var key []byte
	if err == nil {
		key, err = Key(c, ClusterKey)
	}
	if err == nil {
		p.Peers, err = cluster.New(cluster.Options{Node: operatorNode, Listen: c.Cluster.Listen, Key: key, Timeout: c.Store.Timeout, Find: s.Find})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return p, nil
}

// Close closes the database.
func (p *Peers) Close(ctx context.Context) error {
	p.Shutdown(ctx)
	return p.store.Close(ctx)
}

// VerifyLogs has each gateway verify its audit log against what the others have recorded of it.
func VerifyLogs(ctx context.Context, c *config.Config) ([]heads.Report, error) {
	p, err := OpenPeers(ctx, c)
	if err != nil {
		return nil, err
	}
	defer p.Close(ctx)
	return heads.Verify(ctx, p.Nodes, p.Ask), nil
}
