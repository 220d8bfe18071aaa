package replay

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"iter"
	"maps"
	"os"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/policy"
)

// Recorded reads the sessions in a file, be it a trace or an audit log. For definitions
// see [Key].
func Recorded(ctx context.Context, in io.Reader, file string, definitions func() map[Key]*gate.Tool, documents Documents) iter.Seq2[policy.RecordedSession, error] {
	if file == "-" {
		return policy.ReadTrace(in)
	}
	return func(yield func(policy.RecordedSession, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(policy.RecordedSession{}, err)
			return
		}
		defer f.Close()
		r := bufio.NewReader(f)
		sessions := policy.ReadTrace(r)
		if audit.IsLog(r) {
			sessions = audited(ctx, file, definitions, documents)
		}
		sessions(yield)
	}
}

// audited reads the sessions in an audit log, in the order of their first calls.
func audited(ctx context.Context, file string, definitions func() map[Key]*gate.Tool, documents Documents) iter.Seq2[policy.RecordedSession, error] {
	return func(yield func(policy.RecordedSession, error) bool) {
		l := ledger{by: make(map[gate.SessionKey]*policy.RecordedSession), calls: make(map[string]*place), definitions: definitions}
		fill, err := documents.filled(ctx, file)
		if err != nil {
			yield(policy.RecordedSession{}, err)
			return
		}
		for e, err := range audit.Read(ctx, file, audit.Filter{}) {
			if err == nil {
				err = l.add(fill(e))
			}
			if err != nil {
				yield(policy.RecordedSession{}, err)
				return
			}
		}
		for _, s := range l.order {
			if !yield(*s, nil) {
				return
			}
		}
	}
}

// ledger puts the records of calls together to sessions. A call stands where it
// was granted, or else where it was refused; one that no policy decided on is left
// out. A session that was reset, or has read nothing after a restart, begins anew.
type ledger struct {
	order []*policy.RecordedSession
	by    map[gate.SessionKey]*policy.RecordedSession
	calls map[string]*place        // granted, and not done yet
	boot  string                   // whose records are read
	old   map[gate.SessionKey]bool // sessions of earlier boots that no record of this one names yet
	// definitions are the tools that are known; nil if they are not to be looked at.
	definitions func() map[Key]*gate.Tool
}

type place struct {
	session *policy.RecordedSession
	call    int
}

func (l *ledger) add(e audit.Entry) error {
	if e.Log != l.boot {
		l.boot, l.old = e.Log, make(map[gate.SessionKey]bool, len(l.by))
		for k := range l.by {
			l.old[k] = true
		}
	}
	if e.Event == audit.Label {
		delete(l.by, keyOf(e))
		return nil
	}
	decided := e.Effect != "" || e.Code == "refused_authorize" // without an effect if the policy failed
	if e.Action != gate.CallTool || e.Event != gate.Granted && e.Event != gate.Done || !decided {
		return nil
	}
	at := l.calls[e.ID]
	if at == nil {
		s, err := l.begin(e)
		if err != nil {
			return err
		}
		at = &place{s, len(s.Calls) - 1}
		l.calls[e.ID] = at
	}
	if e.Event == gate.Granted {
		return nil
	}
	delete(l.calls, e.ID)
	if len(e.Result) == 0 {
		return nil
	}
	result, err := gate.ParseDoc(e.Result)
	at.session.Calls[at.call].Result = result
	return err
}

// keyOf returns the session of a record.
func keyOf(e audit.Entry) gate.SessionKey {
	return gate.SessionKey{Owner: gate.Owner{Tenant: e.Tenant, ID: e.Principal}, ID: e.Session}
}

// begin adds the call of a record to its session.
func (l *ledger) begin(e audit.Entry) (*policy.RecordedSession, error) {
	k := keyOf(e)
	if l.old[k] && len(e.LabelsBefore) == 0 {
		delete(l.by, k)
	}
	delete(l.old, k)
	s := l.by[k]
	if s == nil {
		who := &gate.Principal{Owner: k.Owner, Auth: "local", Roles: e.Roles, Client: e.Client.ID}
		s = &policy.RecordedSession{ID: k.ID, Who: who}
		l.by[k], l.order = s, append(l.order, s)
	}
	c := policy.RecordedCall{Tool: e.Tool, Effect: cmp.Or(e.Effect, gate.Deny)}
	if len(e.Arguments) == 0 {
		c.Unknown = map[string]string{"input.arguments": unrecordedArguments, "input.provenance": unrecordedArguments, "input.carried": unrecordedArguments, "input.values": unrecordedArguments}
	} else {
		var err error
		if c.Args, err = gate.ParseDoc(e.Arguments); err != nil {
			return nil, err
		}
	}
	l.define(&c, e)
	if name, err := gate.ParseToolName(e.Tool); err == nil && gateway.Relays(name.Server) && c.Definition == nil {
		c.Definition = &gate.Tool{Name: name, Local: name.Tool, Offered: e.Tool, Digest: e.ToolDigest, Relay: true}
		maps.DeleteFunc(c.Unknown, func(_, why string) bool { return why == undefined })
	}
	s.Calls = append(s.Calls, c)
	return s, nil
}

// undefined is what is missing of a call whose tool has changed since, or cannot be
// asked for: rules may look at anything that a definition says.
const undefined = "the tool's definition is not known"

// unrecordedArguments is what is missing of a call in a log with record: digest.
const unrecordedArguments = "arguments not recorded"

// define completes a call by what its tool is.
func (l *ledger) define(c *policy.RecordedCall, e audit.Entry) {
	if l.definitions == nil {
		return
	}
	if c.Definition = l.definitions()[Key{e.Server, e.ToolDigest}]; c.Definition == nil {
		if c.Unknown == nil {
			c.Unknown = make(map[string]string)
		}
		for _, part := range []string{"tool.annotations", "tool.sandboxed", "tool.capabilities", "tool.origin", "tool.pinned", "tool.findings", "tool.groups", "provenance"} {
			if c.Unknown["input."+part] == "" {
				c.Unknown["input."+part] = undefined
			}
		}
	}
}

// Key names a tool as a record does: by its server, and by the digest of
// its definition.
type Key struct{ server, digest string }

// DefinitionsOf returns tools as policies see them.
func DefinitionsOf(tools []app.Tool) (map[Key]*gate.Tool, error) {
	known := make(map[Key]*gate.Tool, len(tools))
	for _, t := range tools {
		described, err := t.Described()
		if err != nil {
			return nil, err
		}
		if described != nil && described.Digest != "" {
			known[Key{described.Name.Server, described.Digest}] = described
		}
	}
	return known, nil
}
