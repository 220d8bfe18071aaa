package granted

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A Host carries out what the one call of `sandbox run`, or a case of `sandbox check`, asks for.
type Host struct {
	egress *dial.Egress
	values *kv.Store
	space  options.ModuleNamespace
	dirs   []sandbox.Dir
}

var _ sandbox.Host = (*Host)(nil)

// New returns the host of a call of a module. It must be closed.
func New(module string, web dial.Options, rules dial.Rules, secrets []dial.Secret, dirs []sandbox.Dir) (*Host, error) {
	values, err := kv.Open("", kv.Options{})
	if err != nil {
		return nil, err
	}
	all := func(context.Context, dial.Target) error { return nil } // that the rules allow
	each := func(context.Context, string, dial.Target) error { return nil }
	return &Host{
		egress: dial.New(web).Egress(dial.Scope{Rules: rules, Secrets: secrets, Ask: all, AskSecret: each}),
		values: values, space: options.ModuleNamespace{Tool: module}, dirs: dirs,
	}, nil
}

// Close ends it.
func (h *Host) Close() error { return h.values.Close() }

// Set stores a value, as if the tool had done so before.
func (h *Host) Set(ctx context.Context, key string, value []byte) error {
	return h.values.Set(ctx, h.space, key, value, 0)
}

// Methods are those by which --http lets an origin be asked.
var Methods = []string{"GET", "HEAD", "POST"}

// Rules returns the rules that origins of the command line stand for.
func Rules(origins []string) ([]dial.Rule, error) {
	var rules []dial.Rule
	for _, origin := range origins {
		if _, err := dial.NewTarget("", origin); err != nil {
			return nil, fmt.Errorf("%q: %w", origin, err)
		}
		rules = append(rules, dial.Rule{Origin: origin, Methods: Methods, Private: IsPrivate(origin)})
	}
	_, err := dial.Compile(rules)
	return rules, err
}

// IsPrivate reports whether an origin is written as an address, or localhost, which is
// meant even if it is not public; a name leads to public addresses alone.
func IsPrivate(origin string) bool {
	t, err := dial.NewTarget("", origin)
	if err != nil {
		return false
	}
	_, notAddress := netip.ParseAddr(t.Host)
	return notAddress == nil || t.Host == "localhost"
}

// HTTP implements [sandbox.Host].
func (h *Host) HTTP(ctx context.Context, r sandbox.HTTPRequest) (sandbox.HTTPResponse, error) {
	res, err := h.egress.Do(ctx, dial.Request(r))
	var denied *dial.Denied
	if errors.As(err, &denied) {
		err = fmt.Errorf("%w: %s", sandbox.ErrDenied, denied.Reason)
	}
	return sandbox.HTTPResponse(res), err
}

// KV implements [sandbox.Host].
func (h *Host) KV(ctx context.Context, r sandbox.KVRequest) (res sandbox.KVResponse, err error) {
	switch r.Op {
	case "get":
		res.Value, res.Found, err = h.values.Get(ctx, h.space, r.Key)
	case "set":
		err = h.values.Set(ctx, h.space, r.Key, r.Value, r.TTL)
	case "delete":
		res.Found, err = h.values.Delete(ctx, h.space, r.Key)
	case "list":
		res.Keys, err = h.values.List(ctx, h.space, r.Key)
	default:
		err = fmt.Errorf("the op %.40q is not one of get, set, delete, list", r.Op)
	}
	return res, err
}

// File implements [sandbox.Host].
func (h *Host) File(_ context.Context, op, path string) error {
	for _, d := range h.dirs {
		below, err := filepath.Rel(d.Path, path)
		if err == nil && filepath.IsLocal(below) && (op == "read" || d.Write) {
			return nil
		}
	}
	return sandbox.ErrDenied
}
