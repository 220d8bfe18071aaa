package replay

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"iter"
	"maps"
	"os"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/policy/study"
)

// Recorded reads the sessions in a file, be it a trace or an audit log. For definitions and
// documents see [Log].
func Recorded(ctx context.Context, in io.Reader, file string, definitions func() map[Key]*gate.Tool, documents Documents) iter.Seq2[study.RecordedSession, error] {
	if file == "-" {
		return study.ReadTrace(in)
	}
	return func(yield func(study.RecordedSession, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(study.RecordedSession{}, err)
			return
		}
		defer f.Close()
		r := bufio.NewReader(f)
		sessions := study.ReadTrace(r)
		if audit.IsLog(r) {
			sessions = func(yield func(study.RecordedSession, error) bool) {
				for s, err := range (Log{File: file, Definitions: definitions, Documents: documents}).Sessions(ctx) {
					if !yield(s.RecordedSession, err) {
						return
					}
				}
			}
		}
		sessions(yield)
	}
}

// A Log is an audit log whose sessions are read.
type Log struct {
	File string
	// Since leaves out earlier records. What a session had read before is not known, so nothing that
	// depends on it is decided.
	Since time.Time
	// Most bounds the calls that are read, and MostBytes their arguments and results; zero reads all.
	Most, MostBytes int
	// Definitions are the tools and skills that are known. Without them tools are not looked at, and reads of
	// skills are left out.
	Definitions func() map[Key]*gate.Tool
	// Documents are kept apart from the log; nil knows of none.
	Documents Documents
}

// A Session is one that was recorded.
type Session struct {
	study.RecordedSession
	IDs  []string // of its calls, as the log has them
	Part bool     // a bound was met: there may be more sessions and calls

	begun bool // before what is read
}

// Sessions reads the sessions, in the order of their first calls. They are all in memory before
// the first comes.
func (l Log) Sessions(ctx context.Context) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		read := ledger{by: make(map[gate.SessionKey]*Session), calls: make(map[string]*place), learned: make(map[gate.SessionKey]gate.Labels), definitions: l.Definitions, part: !l.Since.IsZero()}
		fill, err := l.filled(ctx)
		if err != nil {
			yield(Session{}, err)
			return
		}
		for e, err := range audit.Read(ctx, l.File, audit.Filter{Since: l.Since}) {
			if err == nil {
				err = read.add(fill(e))
			}
			if err != nil {
				yield(Session{}, err)
				return
			}
			if read.full = l.Most > 0 && read.n == l.Most || l.MostBytes > 0 && read.bytes >= l.MostBytes; read.full {
				break
			}
		}
		for _, s := range read.order {
			s.Part = read.full
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
	order []*Session
	by    map[gate.SessionKey]*Session
	n     int               // calls
	bytes int               // of arguments and results
	full  bool              // there may be more
	part  bool              // sessions may have begun before
	calls map[string]*place // granted, and not done yet
	// learned are labels that sessions got since their last call, but not by the result of one.
	learned map[gate.SessionKey]gate.Labels
	boot    string                   // whose records are read
	old     map[gate.SessionKey]bool // sessions of earlier boots that no record of this one names yet
	// definitions are those of [Log].
	definitions func() map[Key]*gate.Tool
}

type place struct {
	session *Session
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
		delete(l.learned, keyOf(e))
		return nil
	}
	l.learn(e)
	decided := e.Effect != "" || e.Code == "refused_authorize" // without an effect if the policy failed
	if e.Action != gate.CallTool && !l.readsSkill(e) || e.Event != gate.Granted && e.Event != gate.Done || !decided {
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
	l.bytes += len(e.Result)
	if len(e.Result) == 0 {
		return nil
	}
	result, err := gate.ParseDoc(e.Result)
	at.session.Calls[at.call].Result = result
	return err
}

// learn keeps what a session learned by what is not replayed: by resources that it read, such as
// pages of apps, by prompts, and by an app that the result of a call opened.
func (l *ledger) learn(e audit.Entry) {
	if e.Event != gate.Done || l.readsSkill(e) {
		return
	}
	labels := e.LabelsAfter
	if e.Action == gate.CallTool {
		labels = nil
		for _, server := range (gate.Session{Labels: e.LabelsAfter}).OpenApps() {
			labels = labels.Join(gate.NewLabels(gate.AppLabel(server)))
		}
	}
	if len(labels) > 0 {
		l.learned[keyOf(e)] = l.learned[keyOf(e)].Join(labels)
	}
}

// keyOf returns the session of a record.
func keyOf(e audit.Entry) gate.SessionKey {
	return gate.SessionKey{Owner: gate.Owner{Tenant: e.Tenant, ID: e.Principal}, ID: e.Session}
}

// begin adds the call of a record to its session.
func (l *ledger) begin(e audit.Entry) (*Session, error) {
	k := keyOf(e)
	if l.old[k] && len(e.LabelsBefore) == 0 {
		delete(l.by, k)
		delete(l.learned, k)
	}
	delete(l.old, k)
	s := l.by[k]
	if s == nil {
		who := &gate.Principal{Owner: k.Owner, Auth: "local", Roles: e.Roles, Client: e.Client.ID}
		s = &Session{RecordedSession: study.RecordedSession{ID: k.ID, Who: who}}
		s.begun = l.part && (e.SessionTop || len(e.LabelsBefore) > 0)
		l.by[k], l.order = s, append(l.order, s)
	}
	c := study.RecordedCall{Action: e.Action, Tool: e.Tool, Effect: cmp.Or(e.Effect, gate.Deny), Approved: e.Approval.By != "", Time: e.Time, Learned: l.learned[k]}
	delete(l.learned, k)
	if e.App != nil {
		c.App = &study.RecordedApp{Only: e.App.Only, OwnName: e.App.OwnName}
	}
	if e.Action != gate.CallTool {
		l.defineSkill(&c, e)
	} else if err := l.defineTool(&c, e); err != nil {
		return nil, err
	}
	if s.begun {
		lacks(&c, begunBefore, "session", "provenance", "carried", "values")
	}
	s.Calls, s.IDs = append(s.Calls, c), append(s.IDs, e.ID)
	l.n, l.bytes = l.n+1, l.bytes+len(e.Arguments)
	return s, nil
}

// defineTool completes the call of a tool by its arguments, and by what the tool is.
func (l *ledger) defineTool(c *study.RecordedCall, e audit.Entry) (err error) {
	if len(e.Arguments) == 0 {
		lacks(c, unrecordedArguments, "arguments", "provenance", "carried", "values")
	} else if c.Args, err = gate.ParseDoc(e.Arguments); err != nil {
		return err
	}
	l.define(c, e)
	if name, err := gate.ParseToolName(e.Tool); err == nil && product.RelaysCalls(name.Server) && c.Definition == nil {
		c.Definition = &gate.Tool{Name: name, Local: name.Tool, Offered: e.Tool, Digest: e.ToolDigest, Relay: true}
		maps.DeleteFunc(c.Unknown, func(_, why string) bool { return why == undefined })
	}
	return nil
}

// undefined is what is missing of a call whose tool has changed since, or cannot be
// asked for: rules may look at anything that a definition says.
const undefined = "the tool's definition is not known"

// unrecordedArguments is what is missing of a call in a log with record: digest.
const unrecordedArguments = "arguments not recorded"

// define completes a call by what its tool is.
func (l *ledger) define(c *study.RecordedCall, e audit.Entry) {
	if l.definitions == nil {
		return
	}
	if c.Definition = l.definitions()[Key{e.Server, e.ToolDigest}]; c.Definition == nil {
		lacks(c, undefined, "tool.annotations", "tool.sandboxed", "tool.capabilities", "tool.origin", "tool.pinned", "tool.findings", "tool.groups", "provenance")
	}
}

// begunBefore is what is missing of the calls of a session that had read something already.
const begunBefore = "the session began before"

// lacks notes why parts of a call's input are not known.
func lacks(c *study.RecordedCall, why string, parts ...string) {
	if c.Unknown == nil {
		c.Unknown = make(map[string]string)
	}
	for _, part := range parts {
		if c.Unknown["input."+part] == "" {
			c.Unknown["input."+part] = why
		}
	}
}

// Key names a tool or a skill as a record does: by its server, and by the digest of its definition or of
// its files.
type Key struct{ server, digest string }

// DefinitionsOf returns tools and skills as policies see them.
func DefinitionsOf(tools []inventory.Tool, skills []inventory.Skill) (map[Key]*gate.Tool, error) {
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
	for _, s := range skills {
		known[Key{s.Server, s.Digest}] = s.Described()
	}
	return known, nil
}
