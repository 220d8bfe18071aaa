package options

import (
	"context"
	"time"
)

// A ModuleNamespace is one tool of one tenant. No namespace sees the values of another.
type ModuleNamespace struct {
	Tenant string // "" is the only tenant of a gateway without tenants
	Tool   string // qualified name
}

// ModuleValues keep the values that modules store, where several gateways see them. Package bridge/postgres has
// one. The gateway checks keys, sizes and lifetimes before it calls a method. Implementations are used from several
// goroutines.
type ModuleValues interface {
	// Get returns a value that has not expired.
	Get(ctx context.Context, ns ModuleNamespace, key string) (value []byte, found bool, err error)
	// Set stores a value for ttl; zero does not expire. It calls fits with the number of other keys in the namespace
	// and the bytes of these and their values. If fits returns an error, Set stores nothing and returns that error.
	Set(ctx context.Context, ns ModuleNamespace, key string, value []byte, ttl time.Duration, fits func(keys, bytes int) error) error
	// Delete removes a value, and reports whether there was one.
	Delete(ctx context.Context, ns ModuleNamespace, key string) (found bool, err error)
	// List returns the keys with a prefix, sorted.
	List(ctx context.Context, ns ModuleNamespace, prefix string) (keys []string, err error)
}
