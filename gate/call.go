package gate

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Owner is the key under which everything that belongs to somebody is kept.
type Owner struct {
	Tenant string // "" is the only tenant of a gateway without tenants
	ID     string
}

// A Principal is who asks, as verified. It is immutable, shared by all calls of
// one credential, and holds no secret.
type Principal struct {
	Owner
	Auth   string // how it was verified: local, bearer, apikey, mtls, unix or proxy
	Client string // verified client instance; "" if none
	// Issuer is who has vouched for it, by its name here, and Credential names the
	// credential without giving it away; "" if there is none. Policies see neither.
	Issuer, Credential string
	Roles              []string
	Claims             Doc
	// Groups are what the principal is offered.
	Groups Groups
	// Identities are the principal's own addresses, accounts and folders, which count as
	// trusted values.
	Identities Identities
}

// Local is the principal of every caller that has not been told apart: the
// person at the machine, on a gateway without authentication.
func Local() *Principal { return &Principal{Owner: Owner{ID: "local"}, Auth: "local"} }

// A SessionKey names a session. The gateway mints it; a client never chooses it.
type SessionKey struct {
	Owner
	ID string
}

// An Action is what a call does, in the words of MCP's methods. Policies see it
// as input.action.
type Action string

// The actions of clients. Subscribe asks to be told when a resource changes. Complete
// completes an argument of a prompt, or a variable of a template of resources.
const (
	CallTool     Action = "tools/call"
	GetPrompt    Action = "prompts/get"
	ReadResource Action = "resources/read"
	Subscribe    Action = "resources/subscribe"
	Complete     Action = "completion/complete"
)

// AgentCall is a call of a tool that an agent has itself and carries out itself, such as a
// shell: its hook asks before, and tells the result after.
const AgentCall Action = "agent/tools/call"

// A Call is one use of a capability that a client asks for.
type Call struct {
	// ID is unique over all gateways: a UUIDv7 (RFC 9562). Do mints one if it
	// is empty.
	ID string
	// Parent is the ID of the call on whose behalf this one is made, or "".
	Parent string
	Action Action
	// Name is what is used, in the client's words: the offered name of a tool or a
	// prompt, the URI of a resource, or the URI template of resources.
	Name string
	// Args are the arguments, an object; absent counts as {}.
	Args Doc
	// Malformed says why the client's arguments are no acceptable document. Do
	// refuses and records such a call.
	Malformed error
	Who       *Principal
	Session   SessionKey
	// Connection is the client's own where it shares its session with others: what
	// servers ask and tell a client is for nobody else. Zero means Session.
	Connection SessionKey
	// Groups are what the client of the call is offered, beside what Who is.
	Groups Groups
	// Prompt is the user's own words, if the host application that embeds the
	// gateway knows them: values in it count as trusted for the rest of the
	// session. It may come with each call. Text that anybody else can write into
	// must not be in it.
	Prompt string
	// Meta is the _meta of the client's request, an object or absent. The gate
	// reads [MetaPrompt] in it, if it was told to.
	Meta Doc
	// TraceHeader is the traceparent of the HTTP request that brought the call, Trace where
	// the gateway has placed the call: see [Trace].
	TraceHeader string
	Trace       Trace
	// Asker is the client, through which a person can be asked while the call
	// waits; nil if it cannot be asked so. AskByAnswer says that it can be asked by
	// the answer to the call: the call is then not held, but refused with a
	// [*Pending] at once. Answered is the answer that the client brings with the
	// call; nil if it brings none.
	Asker       Asker
	AskByAnswer bool
	Answered    *Answered
	// Hold bounds how long the call waits for a person, who can still answer then for a call
	// that comes again. Zero leaves it to the [Approver].
	Hold time.Duration
	// Barred refuses the call before anything is looked up, for a reason that the client may
	// read; nil lets it pass.
	Barred error
	// Peer is the client, which the server of the call may ask something while it
	// runs; nil if it cannot be asked. Rounds says that the client can be asked by the
	// answer too: it calls again then, with what it answers in Responses, an object,
	// and with the server's own State as it was given, "" if it was given none
	// (MCP 2026-07-28, basic/patterns, multi round-trip requests).
	Peer      Peer
	Rounds    bool
	Responses Doc
	State     string
	// Notify tells the client something of the call while it runs, see
	// [Permit.Notify]; nil if nobody listens. It is not called concurrently by one
	// upstream.
	Notify func(ctx context.Context, method string, params Doc)
	// Detached says that nobody waits for the answer: the server is asked to say how far
	// it is all the same, so that it may take its time.
	Detached bool
	// Granted is called once the call has been let pass and recorded as that, before its
	// upstream sees it; nil is not. It must not block.
	Granted func()
	// Poll lets the client's stream end, which then asks for the answer again after a
	// while, see [Permit.Poll]; nil if there is no such stream.
	Poll func(after time.Duration)
	// Tasked is called once the server has answered that it carries the call out as a task,
	// see [Permit.Tasked]; nil is not. It must not block.
	Tasked func()
	// ClientName and ClientVersion are what the client says of itself. They are
	// shown, and nothing is decided by them.
	ClientName, ClientVersion string
}

// Audience returns the client to which servers may speak because of the call.
func (c *Call) Audience() SessionKey {
	if c.Connection == (SessionKey{}) {
		return c.Session
	}
	return c.Connection
}

// NewID returns a new UUIDv7 (RFC 9562, section 5.7).
func NewID() string {
	var u [16]byte
	rand.Read(u[:]) // never fails
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(time.Now().UnixMilli()))
	copy(u[:6], ms[2:])
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// A Peer is the client of a call as its server sees it: somebody who can be asked
// while the call runs. It is used concurrently.
type Peer interface {
	// Capabilities are those that the client declares: the ClientCapabilities of MCP,
	// an object.
	Capabilities() Doc
	// Request sends a request of a server to the client, and waits for its result, an
	// object. The error is the client's refusal, or wraps ctx.Err().
	Request(ctx context.Context, method Action, params Doc) (Doc, error)
}

// The actions of servers: what they ask of the client of a call while it runs.
const (
	Elicit    Action = "elicitation/create"     // put a form, or a URL, to the person
	Sample    Action = "sampling/createMessage" // have the client's model write
	ListRoots Action = "roots/list"             // which folders the client works in
)

// IsPeerRequest reports whether the action is a server's, see [Permit.Request].
func (a Action) IsPeerRequest() bool {
	switch a {
	case Elicit, Sample, ListRoots:
		return true
	}
	return false
}
