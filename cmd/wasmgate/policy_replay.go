package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/internal/session"
	"github.com/wasmgate/wasmgate/internal/structure"
	"github.com/wasmgate/wasmgate/policy"
)

// replayFlags are those of policy replay.
type replayFlags struct {
	policy  string
	packs   []string
	tools   string
	approve bool
}

func (c *cli) newPolicyReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay [--policy DIR] [--pack NAME]... [--tools FILE] [--approve-asks] TRACE|AUDIT-LOG",
		Short: "Put recorded sessions before a policy, without calling anything",
		Long: `Decides on the calls of recorded sessions, one after the other, as the gateway would: what a call
is refused the session does not see. TRACE holds a session a line; an audit log is compared with what
was decided then, but for prompts and resources, which are left out. Of a log without arguments
(audit.record: digest) what depends on them is counted as unknown. DIR holds .rego files, grants.yaml and labels.yaml; without --policy the configuration's policy decides.

For an audit log the gateway that runs is asked what the tools are, or else the servers, which are
connected for that; a call whose definition they no longer have is counted as unknown. With --tools,
and for a TRACE, tools declare what FILE says or nothing, and count as native, unpinned and without
findings.

Exits with 3 if a call would pass that did not then, or if nothing could be decided.`,
		Example: "  wasmgate policy replay --policy next/ --pack grants --pack flow audit.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.policyReplay(cmd.Context(), f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "folder of the policy (default: the configuration's)")
	flags.StringArrayVar(&f.packs, "pack", nil, "built-in pack beside it; may be repeated (default: grants, or the configuration's)")
	flags.StringVar(&f.tools, "tools", "", `definitions of the tools, {"tools": [...]}, with qualified names`)
	flags.BoolVar(&f.approve, "approve-asks", false, "go on as if a person had approved what is asked")
	return cmd
}

func (c *cli) policyReplay(ctx context.Context, f replayFlags, file string) error {
	engine, err := c.replayEngine(ctx, f)
	if err != nil {
		return err
	}
	o := policy.ReplayOptions{
		Sessions:    func() gate.Sessions { return session.New(session.Options{}) },
		ApproveAsks: f.approve, Input: inputSchema, Structure: structure.Of, Echoes: new(gate.Echoes),
	}
	if o.Tools, err = readTools(f.tools); err != nil {
		return err
	}
	count := make(tally)
	var definitions func() map[definitionKey]*gate.Tool
	if f.tools == "" {
		definitions = sync.OnceValue(func() map[definitionKey]*gate.Tool { return c.definitions(ctx) })
	}
	for s, err := range recorded(ctx, c.in, file, definitions, c.documents(file)) {
		if err != nil {
			return named(fmt.Errorf("%s: %w", file, err))
		}
		r, err := engine.Replay(ctx, o, s)
		if err != nil {
			return err
		}
		count.add(r)
		if c.json {
			r.ID = cmp.Or(r.ID, r.Principal) // a principal's one session has no name of its own
			if err := printLine(c.out, r); err != nil {
				return err
			}
		}
	}
	return c.printTally(count)
}

// readTools reads the definitions in a file, or none.
func readTools(file string) (map[string]gate.Doc, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, misuse("--tools %s: %v", file, err)
	}
	tools, err := policy.ReadTools(data)
	if err != nil {
		return nil, misuse("--tools %s: %v", file, err)
	}
	return tools, nil
}

// inputSchema returns what coerces the arguments of a tool, as it does in the gateway, or
// nil if its schema cannot be used.
func inputSchema(definition gate.Doc) gate.Coercer {
	repaired, _ := schema.Repair(definition.Get("inputSchema"))
	s, err := schema.Compile(repaired)
	if err != nil {
		return nil
	}
	return s
}

// definitions asks the gateway of the configuration what its tools are. It has none
// if that cannot be known, and says why.
func (c *cli) definitions(ctx context.Context) map[definitionKey]*gate.Tool {
	known, err := c.askDefinitions(ctx)
	if err != nil {
		fmt.Fprintln(c.err, visible(fmt.Sprintf("what the tools are cannot be asked: %v", err)))
	}
	return known
}

func (c *cli) askDefinitions(ctx context.Context) (_ map[definitionKey]*gate.Tool, err error) {
	cfg, err := c.open()
	if err != nil {
		return nil, err
	}
	g, err := c.ask(ctx, cfg, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	tools, err := g.Tools(ctx, "", true)
	if err != nil {
		return nil, err
	}
	return definitionsOf(tools)
}

// replayTimeout bounds a decision. It is far above what a gateway allows, so that
// a busy machine does not change what comes out.
const replayTimeout = 10 * time.Second

// replayEngine loads the policy that the flags name.
func (c *cli) replayEngine(ctx context.Context, f replayFlags) (*policy.Engine, error) {
	var p gateway.Policy
	if f.policy != "" {
		var err error
		if p, err = policyFolder(f.policy); err != nil {
			return nil, &exitError{exitMisuse, err}
		}
	} else {
		cfg, err := c.open()
		if err != nil {
			return nil, err
		}
		if p, err = c.policy(ctx, cfg); err != nil {
			return nil, &exitError{exitMisuse, err}
		}
	}
	if f.packs != nil {
		p.Options.Packs = f.packs
	}
	p.Options.Timeout = replayTimeout
	engine, err := policy.Load(ctx, p.Files, p.Options)
	if err != nil {
		return nil, &exitError{exitMisuse, err}
	}
	return engine, nil
}

// policyFolder reads a policy that is all in one folder.
func policyFolder(dir string) (gateway.Policy, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return gateway.Policy{}, cmp.Or(err, fmt.Errorf("%s is no folder", dir))
	}
	grants, err := config.ReadGrants(filepath.Join(dir, "grants.yaml"))
	if err != nil {
		return gateway.Policy{}, err
	}
	labels, err := config.ReadLabels(filepath.Join(dir, "labels.yaml"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return gateway.Policy{}, err
	}
	p := gateway.Policy{Files: os.DirFS(dir), Options: policy.Options{Labels: app.PolicyLabels(labels)}}
	for _, g := range grants {
		p.Options.Grants = append(p.Options.Grants, policy.Grant(g))
	}
	return p, nil
}

// recorded reads the sessions in a file, be it a trace or an audit log. For definitions
// see [ledger].
func recorded(ctx context.Context, in io.Reader, file string, definitions func() map[definitionKey]*gate.Tool, documents documentsOf) iter.Seq2[policy.RecordedSession, error] {
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
func audited(ctx context.Context, file string, definitions func() map[definitionKey]*gate.Tool, documents documentsOf) iter.Seq2[policy.RecordedSession, error] {
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
	definitions func() map[definitionKey]*gate.Tool
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
	if c.Definition = l.definitions()[definitionKey{e.Server, e.ToolDigest}]; c.Definition == nil {
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

// tally counts decisions by tool and principal.
type tally map[[2]string]*counts

type counts struct {
	sessions, calls, allow, ask, deny, unknown int
	undefined, unrecorded                      int // of the unknown, by what they depend on
	looser, stricter, compared                 int
}

func (t tally) at(tool, principal string) *counts {
	k := [2]string{tool, principal}
	if t[k] == nil {
		t[k] = new(counts)
	}
	return t[k]
}

func (t tally) add(s policy.ReplayedSession) {
	t.at("", "").sessions++
	for _, d := range s.Decisions {
		for _, n := range []*counts{t.at(d.Tool, s.Principal), t.at("", "")} {
			n.add(d)
		}
	}
}

func (n *counts) add(d policy.ReplayedCall) {
	n.calls++
	switch d.Effect {
	case gate.Allow:
		n.allow++
	case gate.Ask:
		n.ask++
	case gate.Deny:
		n.deny++
	default:
		n.unknown++
		if slices.Contains(d.Reasons, undefined) {
			n.undefined++
		}
		if slices.Contains(d.Reasons, unrecordedArguments) {
			n.unrecorded++
		}
		return
	}
	if d.Before == "" {
		return
	}
	n.compared++
	switch {
	case d.Effect == gate.Allow && d.Before != gate.Allow:
		n.looser++
	case d.Effect != gate.Allow && d.Before == gate.Allow:
		n.stricter++
	}
}

// printTally prints the table, and the summary on standard error.
func (c *cli) printTally(t tally) error {
	all := t.at("", "")
	delete(t, [2]string{})
	if !c.json {
		table := newTable(c.out, "TOOL", "PRINCIPAL", "CALLS", "ALLOW", "ASK", "DENY", "UNKNOWN", "NOW PASS", "NOW REFUSED")
		for _, k := range slices.SortedFunc(maps.Keys(t), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			n := t[k]
			table.Row(k[0], k[1], fmt.Sprint(n.calls), fmt.Sprint(n.allow), fmt.Sprint(n.ask), fmt.Sprint(n.deny), fmt.Sprint(n.unknown), fmt.Sprint(n.looser), fmt.Sprint(n.stricter))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.err, "%s, %s: %d allow, %d ask, %d deny, %d unknown\n",
		plural(all.sessions, "session"), plural(all.calls, "call"), all.allow, all.ask, all.deny, all.unknown)
	if all.undefined > 0 {
		fmt.Fprintf(c.err, "undecided for want of their tools' definitions, which are not known or have changed: %s; give them with --tools FILE, or start the gateway\n",
			plural(all.undefined, "call"))
	}
	if all.unrecorded > 0 {
		fmt.Fprintf(c.err, "undecided for want of their arguments, which the log does not hold: %s; with audit.record: full, or the obligation {\"record\": \"full\"} for some tools, later ones are decided\n",
			plural(all.unrecorded, "call"))
	}
	if all.compared > 0 {
		fmt.Fprintf(c.err, "of %d decided before: %d would pass that did not, %d would not pass that did\n", all.compared, all.looser, all.stricter)
	}
	switch {
	case all.calls > 0 && all.unknown == all.calls:
		return &exitError{exitFalse, errors.New("nothing could be decided")}
	case all.looser > 0:
		return &exitError{code: exitFalse}
	}
	return nil
}
