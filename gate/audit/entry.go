package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/step"
)

// The events that are no calls; those of calls are [gate.Granted], [gate.Done]
// and [gate.HostCall].
const (
	Opened gate.Event = "opened"      // a file was opened; written by [Log] alone
	Server gate.Event = "server"      // the phase of a server changed
	Policy gate.Event = "policy"      // a policy was loaded or refused
	Label  gate.Event = "label"       // a session was reset, or its labels rose by a listing
	Shadow gate.Event = "shadow"      // the shadow policy would have decided otherwise
	Pin    gate.Event = "pin"         // a definition was trusted, quarantined or approved: the code says which
	Admin  gate.Event = "admin"       // somebody who runs the gateway has done something, or was refused
	Key    gate.Event = "key"         // an API key was made or revoked
	Heads  gate.Event = "heads"       // the last records of the logs of other gateways
	Revoke gate.Event = "revoke"      // tokens were revoked before their time
	Denied gate.Event = "denied_auth" // refused because of the sender: of one reason, one network and one minute
)

// format is that of the lines, as an opened line states it.
const format = 1

// An Entry is one line of a log. Empty fields are absent in the line.
type Entry struct {
	Log   string     `json:"log"` // node/boot of the writer; with Seq unique
	Seq   uint64     `json:"seq"`
	Time  time.Time  `json:"time"` // when the line was written, in UTC and microseconds
	Event gate.Event `json:"event"`

	ID        string      `json:"id"`      // of the call
	Parent    string      `json:"parent"`  // the call on whose behalf it was made
	Relayed   []string    `json:"relayed"` // the calls that it made for its client, as a tool that carries out others
	Action    gate.Action `json:"action"`
	Tenant    string      `json:"tenant"`
	Principal string      `json:"principal"`
	Roles     []string    `json:"roles"`
	// How the principal was verified; absent means local: there was no verification. Credential
	// names the credential, and does not contain it. Network is where refused requests came from.
	Auth       string `json:"auth"`
	Issuer     string `json:"issuer"`
	Credential string `json:"credential"`
	Network    string `json:"network"`
	Client     Client `json:"client"`
	Session    string `json:"session"`
	Server     string `json:"server"`
	Tool       string `json:"tool"` // server__tool, the name of a prompt or the URI of a resource; or what was asked for if there is no such thing
	ToolDigest string `json:"tool_digest"`
	FileDigest string `json:"file_digest"` // sha256: and that of a skill's file that was read
	App        *App   `json:"app"`         // of a call of a client that shows apps (MCP Apps)

	Effect  gate.Effect `json:"effect"`
	Code    string      `json:"code"` // as of [gate.Code]
	Reasons []string    `json:"reasons"`
	Error   string      `json:"error"`  // for the operator
	Remedy  string      `json:"remedy"` // the command, or what to write where, that would allow the call

	// Met says where the session has met values of the call, if it was not simply allowed and
	// a policy looks at that.
	Met []string `json:"met"`

	Approval Approval `json:"approval"` // by which the call passed, for which it waits, or whose event it is

	Shadow ShadowDecision `json:"shadow"` // of a shadow event, next to the decision that holds

	Upstream *gate.Credential `json:"upstream"` // by which the server was called

	LabelsBefore   gate.Labels `json:"labels_before"`
	LabelsAfter    gate.Labels `json:"labels_after"`
	SessionVersion uint64      `json:"session_version"`
	SessionTop     bool        `json:"session_top"` // the session counted as having read everything
	OwnRecord      bool        `json:"own_record"`  // the result was the account holder's own record, whose values count as his
	PolicyRevision string      `json:"policy_revision"`
	Snapshot       string      `json:"snapshot"`

	ArgsSHA256    string         `json:"args_sha256"`    // as of [gate.Doc.Digest]
	BroughtSHA256 string         `json:"brought_sha256"` // of the answers that the client brought with the call
	ResultSHA256  string         `json:"result_sha256"`
	Findings      []gate.Finding `json:"findings"`
	Fuel          uint64         `json:"fuel"`
	MemoryPeak    int64          `json:"memory_peak"` // bytes
	HostCalls     uint64         `json:"host_calls"`  // that were asked for in the call, refused ones included
	Count         uint64         `json:"count"`       // of a host call: of how many equal ones in a row the line tells, if of more than one
	Repeats       int            `json:"repeats"`     // how often the request was sent to the server again
	TookUS        int64          `json:"took_us"`     // microseconds
	Steps         Steps          `json:"steps_us"`
	Late          bool           `json:"late"` // the call had ended when the log could not be written

	// Arguments and Result are the documents themselves, if they are recorded.
	// The arguments of a host call are its request.
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`

	// Of an opened line. CutBytes is the length of the half line that was cut
	// off the file before.
	Format   int    `json:"format"`
	Node     string `json:"node"`
	Boot     string `json:"boot"`
	Version  string `json:"version"`
	CutBytes int64  `json:"cut_bytes"`
	// Removed are files of the log that were removed since the opened line before, the
	// oldest first. Error says why, if that was before their time.
	Removed []string `json:"removed"`

	// Heads name records of the logs of other gateways, each as NODE SEQ:HASH.
	Heads []string `json:"heads"`

	Prev string `json:"prev"` // hex SHA-256 of the line before

	// Raw is the line as it was written, without its newline. [Read] sets it.
	Raw []byte `json:"-"`
}

// Client tells which client made a call.
type Client struct {
	ID      string `json:"id"` // verified
	Name    string `json:"name"`
	Version string `json:"version"` // Name and Version are what the client said of itself
}

// App describes how the call of a tool relates to the app of its server. The labels say what the
// session has open.
type App struct {
	Only    bool `json:"only"`     // the tool is only for the app
	OwnName bool `json:"own_name"` // the call names the tool as its server does
}

// Approval describes a person's consent.
type Approval struct {
	ID      string    `json:"id"`
	State   string    `json:"state"`   // of an approval event: requested, approved, denied, expired or redeemed
	Binding string    `json:"binding"` // what it is for, as of [gate.Question.Binding]
	By      string    `json:"by"`      // the channel and who, such as cli:local
	Auth    string    `json:"auth"`    // how the person that answered was verified; "" of the local operator
	Note    string    `json:"note"`    // of a denial
	Expires time.Time `json:"expires"` // of an approval event, in UTC and seconds
}

// ShadowDecision is what the shadow policy would have decided.
type ShadowDecision struct {
	Effect   gate.Effect `json:"effect"`
	Reasons  []string    `json:"reasons"`
	Revision string      `json:"revision"` // of the shadow policy
	Error    string      `json:"error"`    // why it came to no decision, which denies
	Differs  []string    `json:"differs"`  // effect, obligations, labels
}

// Steps is the time that each step of a call took: in a line, an object of
// microseconds by name.
type Steps []step.Time

// UnmarshalJSON reads the object and keeps its order.
func (s *Steps) UnmarshalJSON(b []byte) error {
	*s = nil
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("steps_us is not an object: %.20q", b)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var us int64
		if err := d.Decode(&us); err != nil {
			return err
		}
		*s = append(*s, step.Time{Step: step.Step(name.(string)), Took: time.Duration(us) * time.Microsecond})
	}
	return nil
}

// entry makes the line of a record. The digests are kept by the documents, so
// that those of the arguments are computed once for both records of a call.
func entry(r *gate.Record, full bool) Entry {
	c := r.Call
	e := Entry{
		Event: r.Event, ID: c.ID, Parent: c.Parent, Relayed: r.Relayed, Action: c.Action,
		Client:  Client{Name: c.ClientName, Version: c.ClientVersion},
		Session: c.Session.ID, Tool: c.Name,
		Effect: r.Decision.Effect, Code: r.Code, Reasons: r.Decision.Reasons, Remedy: r.Decision.Remedy, Met: r.Met,
		LabelsBefore: r.Session.Labels, LabelsAfter: r.After,
		SessionVersion: r.Session.Version, SessionTop: r.Session.Top, OwnRecord: r.OwnRecord,
		PolicyRevision: r.Decision.Revision, Snapshot: r.Snapshot,
		ArgsSHA256: c.Args.Digest(), BroughtSHA256: c.Brought.Responses.Digest(), ResultSHA256: r.Result.Digest(), Findings: r.Findings,
		Fuel: r.Usage.Fuel, MemoryPeak: r.Usage.MemoryPeak, HostCalls: r.HostCalls, Count: r.Count, Repeats: r.Usage.Repeats,
		Upstream: r.Upstream, TookUS: r.Took.Microseconds(), Steps: r.Steps,
	}
	if who := c.Who; who != nil {
		e.Tenant, e.Principal, e.Roles, e.Client.ID = who.Tenant, who.ID, who.Roles, who.Client
		if e.Issuer, e.Credential = who.Issuer, who.Credential; who.Auth != gate.Local().Auth {
			e.Auth = who.Auth
		}
	}
	if t := r.Tool; t != nil {
		e.Server, e.Tool, e.ToolDigest = t.Name.Server, gate.Query{Call: c, Tool: t}.Subject(), t.Digest
		if t.Skill != nil {
			e.FileDigest = t.Skill.Files[t.File].Digest
		}
		if c.Renders && c.Action == gate.CallTool {
			e.App = &App{t.AppOnly, c.OwnName}
		}
	}
	if r.Err != nil {
		e.Error = r.Err.Error()
	}
	if a := r.Approval; a.ID != "" {
		e.Approval = Approval{a.ID, a.State, a.Binding, a.By, a.Auth, a.Note, a.Expires}
		if a.Auth == gate.Local().Auth {
			e.Approval.Auth = ""
		}
	}
	if full {
		e.Arguments, e.Result = c.Args.Raw(), r.Result.Raw()
	}
	return e
}

// refusedAt is how the error of a refusal begins: with what the entry says elsewhere.
var refusedAt = regexp.MustCompile(`^\S* refused at [a-z_]+: `)

// Why says why a call ended as it did: the error if there was one, or else the reasons of the
// decision, which may not be what refused it.
func Why(e *Entry) string {
	if e.Error != "" {
		return refusedAt.ReplaceAllString(e.Error, "")
	}
	return strings.Join(e.Reasons, "; ")
}
