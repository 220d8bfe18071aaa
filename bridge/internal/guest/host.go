package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/obligation"
	"github.com/wasmgate/wasmgate/gate/step"
	"github.com/wasmgate/wasmgate/internal/modules/kv"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A Grant is what the operator lets a module have.
type Grant struct {
	HTTP    []dial.Rule
	Dirs    []sandbox.Dir
	Secrets []string // names
	KV      bool
}

// Granted is a [Grant], checked. The zero Granted is nothing.
type Granted struct {
	rules   dial.Rules
	http    []dial.Rule
	dirs    []sandbox.Dir
	secrets []dial.Secret
	kv      bool
}

// Check checks a grant; secrets are all those that can be granted.
func Check(grant Grant, secrets []dial.Secret) (*Granted, error) {
	rules, err := dial.Compile(grant.HTTP)
	if err != nil {
		return nil, err
	}
	to := &Granted{rules: rules, http: grant.HTTP, dirs: grant.Dirs, kv: grant.KV}
	for _, name := range grant.Secrets {
		i := slices.IndexFunc(secrets, func(s dial.Secret) bool { return s.Name() == name })
		if i < 0 {
			return nil, fmt.Errorf("it is granted the secret %q, which the configuration does not define", name)
		}
		to.secrets = append(to.secrets, secrets[i])
	}
	return to, nil
}

// capabilities is what policies see as input.tool.capabilities, in the words of
// the configuration.
func (g *Granted) capabilities() (gate.Doc, error) {
	type rule struct {
		Origin  string   `json:"origin"`
		Methods []string `json:"methods"`
		Path    string   `json:"path"`
		Private bool     `json:"private,omitempty"`
	}
	type dir struct {
		Path  string `json:"path"`
		Write bool   `json:"write"`
	}
	var all struct {
		HTTP    []rule   `json:"http,omitempty"`
		Dirs    []dir    `json:"dirs,omitempty"`
		Secrets []string `json:"secrets,omitempty"`
		KV      bool     `json:"kv,omitempty"`
	}
	all.KV = g.kv
	for _, r := range g.http {
		methods, path := r.Methods, r.Path
		if len(methods) == 0 {
			methods = []string{"GET", "HEAD"}
		}
		if path == "" {
			path = "/"
		}
		all.HTTP = append(all.HTTP, rule{r.Origin, methods, path, r.Private})
	}
	for _, d := range g.dirs {
		all.Dirs = append(all.Dirs, dir{filepath.ToSlash(d.Path), d.Write})
	}
	for _, s := range g.secrets {
		all.Secrets = append(all.Secrets, s.Name())
	}
	b, err := json.Marshal(all)
	if err != nil {
		return gate.Doc{}, err
	}
	return gate.ParseDoc(b)
}

// A host is the host of one call of a sandboxed tool. Whatever the guest asks
// for must have been granted to its module, be left by the decision on the call,
// and be allowed and recorded by the gate; only then it is done.
type host struct {
	reach   *Reach
	granted *Granted
	permit  gate.Permit
	call    *gate.Call
	left    obligation.Narrowing
	egress  *dial.Egress                // made by the first request
	paused  func(context.Context) error // takes the call's slot again; nil while it has that
}

var _ sandbox.Host = (*host)(nil)

// ask puts a host call to the gate.
func (h *host) ask(ctx context.Context, action gate.Action, request any) error {
	return put(request, func(doc gate.Doc) error { return h.permit.HostCall(ctx, action, doc) })
}

// refuse has the gate record a host call that the guest may not make, whatever
// the policy says.
func (h *host) refuse(ctx context.Context, action gate.Action, request any, reason string) error {
	return put(request, func(doc gate.Doc) error { return h.permit.DenyHostCall(ctx, action, doc, reason) })
}

// put passes a request to the gate with to, and returns the error for the guest, if any.
func put(request any, to func(gate.Doc) error) error {
	b, err := json.Marshal(request)
	if err != nil {
		return err
	}
	doc, err := gate.ParseDoc(b)
	if err != nil {
		return denied("the request is malformed, so that no policy can decide on it")
	}
	err = to(doc)
	refusal, ok := errors.AsType[*gate.Refusal](err)
	switch {
	case !ok:
		return err
	case refusal.Step == step.Limit: // a guest that asks too often may ask again, and is not looking for a vulnerability
		return errors.New(refusal.Reason)
	}
	return denied(refusal.Reason)
}

// denied is an error that gives the guest the reason.
func denied(reason string) error { return fmt.Errorf("%w: %s", sandbox.ErrDenied, reason) }

// HTTP implements [sandbox.Host].
func (h *host) HTTP(ctx context.Context, r sandbox.HTTPRequest) (sandbox.HTTPResponse, error) {
	if h.egress == nil {
		scope, err := h.scope()
		if err != nil {
			return sandbox.HTTPResponse{}, denied(err.Error())
		}
		h.egress = h.reach.Dial.Egress(scope)
	}
	res, err := h.egress.Do(ctx, dial.Request(r))
	refused, is := errors.AsType[*dial.Denied](err)
	switch {
	case is && errors.Is(err, sandbox.ErrDenied): // by the gate, which has recorded it
		return sandbox.HTTPResponse{}, denied(refused.Reason)
	case is:
		return sandbox.HTTPResponse{}, h.refuse(ctx, actions.SandboxHTTP, httpRequest(refused.Target), refused.Reason)
	case err != nil:
		return sandbox.HTTPResponse{}, err
	}
	return sandbox.HTTPResponse(res), nil
}

// httpRequest is what policies see of a request.
func httpRequest(t dial.Target) any {
	return map[string]any{"method": t.Method, "scheme": t.Scheme, "host": t.Host, "port": t.Port, "path": t.Path, "names": t.Names()}
}

// scope is what the requests of the call may do.
func (h *host) scope() (s dial.Scope, err error) {
	s.Rules = h.granted.rules
	if h.left.HTTP != nil {
		if s.Rules, err = s.Rules.Narrow(h.left.HTTP); err != nil {
			return dial.Scope{}, err
		}
	}
	for _, secret := range h.granted.secrets {
		if h.left.Secret(secret.Name()) {
			s.Secrets = append(s.Secrets, secret)
		}
	}
	s.Ask = func(ctx context.Context, t dial.Target) error {
		return h.ask(ctx, actions.SandboxHTTP, httpRequest(t))
	}
	s.AskSecret = func(ctx context.Context, name string, t dial.Target) error {
		return h.ask(ctx, actions.SandboxSecret, map[string]any{"name": name, "origin": t.Origin()})
	}
	return s, nil
}

// KV implements [sandbox.Host].
func (h *host) KV(ctx context.Context, r sandbox.KVRequest) (sandbox.KVResponse, error) {
	request := map[string]any{"op": r.Op, "key": r.Key}
	if !h.granted.kv || h.left.NoKV {
		return sandbox.KVResponse{}, h.refuse(ctx, actions.SandboxKV, request, "this call may keep no values")
	}
	if err := h.ask(ctx, actions.SandboxKV, request); err != nil {
		return sandbox.KVResponse{}, err
	}
	var res sandbox.KVResponse
	var err error
	ns, store := options.ModuleNamespace{Tenant: h.call.Who.Tenant, Tool: h.call.Name}, h.reach.KV
	switch r.Op {
	case "get":
		res.Value, res.Found, err = store.Get(ctx, ns, r.Key)
	case "set":
		err = store.Set(ctx, ns, r.Key, r.Value, r.TTL)
	case "delete":
		res.Found, err = store.Delete(ctx, ns, r.Key)
	case "list":
		res.Keys, err = store.List(ctx, ns, r.Key)
	default:
		return res, fmt.Errorf("op must be get, set, delete or list")
	}
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, kv.ErrQuota), errors.Is(err, kv.ErrInvalid):
		return sandbox.KVResponse{}, err
	}
	h.reach.Log.Error("values not reached", "tool", h.call.Name, "call", h.call.ID, "error", err)
	return sandbox.KVResponse{}, errors.New("the key-value store of the module failed; the gateway's log says why")
}

// File implements [sandbox.Host].
func (h *host) File(ctx context.Context, op, path string) error {
	path = filepath.ToSlash(path)
	request := map[string]any{"op": op, "path": path}
	if !slices.Contains(h.left.Dir(path), path) { // that it was granted the sandbox sees to
		return h.refuse(ctx, actions.SandboxFile, request, "this call may not use that file")
	}
	return h.ask(ctx, actions.SandboxFile, request)
}
