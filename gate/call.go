package gate

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/tracing"
)

// An Action is what a call does, in the words of MCP's methods. Policies see it
// as input.action.
type Action = actions.Action

// The actions of clients. Subscribe asks for notifications when a resource changes. Complete
// completes an argument of a prompt, or a variable of a template of resources.
const (
	CallTool     Action = "tools/call"
	GetPrompt    Action = "prompts/get"
	ReadResource Action = "resources/read"
	Subscribe    Action = "resources/subscribe"
	Complete     Action = "completion/complete"
	// GetSkill and ReadDirectory are of MCP Skills: the entry of a skill, and what is in a folder
	// of one.
	GetSkill      Action = "skills/get"
	ReadDirectory Action = "resources/directory/read"
)

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
	// Meta is the _meta of the client's request, an object or absent. The gate reads
	// io.github.wasmgate/prompt in it, if it is configured to.
	Meta Doc
	// Brought is what comes with a call that its client was asked to make again.
	Brought Brought
	// Refused refuses the call before anything is looked up. It says why the client's
	// arguments are no acceptable document, or is a [*Refusal], whose Step and Reason count.
	Refused error
	Who     *Principal
	Session SessionKey
	// Connection is the client's own where it shares its session with others: what servers ask and
	// tell a client is for no one else. Zero means Session.
	Connection SessionKey
	// Groups are what the client of the call is offered, in addition to what depends on Who.
	Groups Groups
	// Prompt is the user's own words, if the host application that embeds the
	// gateway knows them: values in it count as trusted for the rest of the
	// session. It may come with each call. Text that anybody else can write into
	// must not be in it.
	Prompt string
	// Trace is the call's place in a trace over several programs.
	Trace tracing.Context
	// Client is the client that waits for the answer, and can be reached while the call runs; nil
	// is [Nobody].
	Client Client
	// Renders says that the client shows pages of apps (MCP Apps), and OwnName that the call
	// named its tool as the tool's server does, which only a page does.
	Renders, OwnName bool
	// Revocations is how many credentials the gateway knew to be revoked before it found out that
	// Who makes the call, and one more: Who's may be revoked while the call is on its way. Zero, of
	// an embedding program's own calls, is now.
	Revocations uint32
	// ClientName and ClientVersion are what the client says of itself. They are
	// shown, and nothing is decided by them.
	ClientName, ClientVersion string
}

// Reach returns how the client of the call can be reached.
func (c *Call) Reach() Reach { return c.client().Reach() }

// client is the client that waits for the answer; never nil.
func (c *Call) client() Client {
	if c.Client == nil {
		return Nobody{}
	}
	return c.Client
}

// Audience returns the client to which servers may speak because of the call.
func (c *Call) Audience() SessionKey {
	if c.Connection == (SessionKey{}) {
		return c.Session
	}
	return c.Connection
}

// Connected reports whether the session of the call is its client's own connection.
func (c *Call) Connected() bool { return c.Session == c.Audience() }

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

// own are the identities of the caller.
func (c *Call) own() provenance.Identities {
	if c.Who == nil {
		return nil
	}
	return c.Who.Identities
}

// URI returns the URI of the resource, or the template, that the call names, as its server
// has it: the client may know it by another.
func (c *Call) URI(t *Tool) string {
	switch {
	case t.Feature == FeatureResource, t.Feature == FeatureSkill, c.Action == Complete:
		return t.Local
	case t.URI != "":
		return t.URI
	default:
		return c.Name
	}
}

// Caller names the one that shares bounds with others in equal parts: a principal, whose key
// has no session ID, or a session where principals are not told apart ([Local]).
func (c *Call) Caller() SessionKey {
	k := c.Session
	if c.Who == nil || c.Who.Auth != authLocal {
		k.ID = ""
	}
	return k
}

// Program names the program that makes the call, over its connections: by the id in its credential,
// or else by the name that it gives itself. A program that lies about its name begins as another
// one would.
func (c *Call) Program() string {
	if c.Who != nil && c.Who.Client != "" {
		return c.Who.Client
	}
	return cmp.Or(c.ClientName, "unnamed")
}
