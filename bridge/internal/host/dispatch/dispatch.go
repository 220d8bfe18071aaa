package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/apps"
	"github.com/wasmgate/wasmgate/internal/skills"
)

// Respond answers a request of any revision. The error is an [*mcp.Error], or the end of
// ctx.
func (d *Dispatcher) Respond(ctx context.Context, p sessions.Client, m message.Message) (res gate.Doc, err error) {
	defer d.recovers(m.Method, &res, &err)
	if err := message.CheckMeta(m.Params); err != nil {
		return gate.Doc{}, err
	}
	if p.Stateless = message.SaysStateless(m.Params); p.Stateless {
		client := m.Params.Get("_meta").Get(mcp.MetaClient)
		p.Name, p.Version, p.Capabilities = client.Get("name").Text(), client.Get("version").Text(), gate.Doc{}
		p.Renders = apps.Renders(m.Params.Get("_meta").Get(mcp.MetaCapabilities))
		d.Began(p)
	}
	asked := d.methods[m.Method]
	switch {
	case asked.clients == withSession && p.Stateless, asked.clients == stateless && !p.Stateless:
		return gate.Doc{}, message.NoMethod(m.Method)
	case asked.clients == allClients && !p.Stateless && p.Session != nil && !p.Session.IsInitialized():
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: fmt.Sprintf("method %q is invalid during session initialization", m.Method)}
	case asked.connects:
		return asked.answer(ctx, p, m)
	}
	if message.Subscribes(m.Method) && p.Session != nil && d.offers(ctx, m.Method) {
		p.Listener = d.listener(p.Session)
	}
	return d.dispatch(ctx, p, m)
}

// Began tells that a client begins to use its session.
func (d *Dispatcher) Began(p sessions.Client) {
	if d.cfg.Began != nil && (p.Session == nil || p.Session.UsedBy(p.Name)) {
		d.cfg.Began(gate.Call{Who: p.Who, Session: p.Key(), ClientName: p.Name})
	}
}

// recovers makes an error of a panic: a client cannot end the gateway.
func (b *backend) recovers(method string, res *gate.Doc, err *error) {
	if v := recover(); v != nil {
		b.cfg.Log.Error("request panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
		*res, *err = gate.Doc{}, &mcp.Error{Code: mcp.CodeInternal, Message: "internal error"}
	}
}

// initialize answers the first request of a session.
func (d *Dispatcher) initialize(ctx context.Context, p sessions.Client, _ message.Message) (gate.Doc, error) {
	if p.Session == nil || !p.Session.Initialize() {
		return gate.Doc{}, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: `duplicate "initialize" received`}
	}
	d.Began(p)
	offered := d.offering(ctx, offeringTime)
	out := appendExtensions([]byte(`{"capabilities":{`), false, p.Renders && offered.Apps, d.skills.offersSkills(ctx, p, offered))
	out = appendCapabilities(out, offered)
	if d.OffersTasks() {
		out = append(out, `,"tasks":`+taskCapability...)
	}
	out = appendInstructions(append(out, '}'), d.instructionsFor(ctx, p))
	out = append(append(out, `,"protocolVersion":`...), mcp.MustJSON(p.Session.Protocol)...)
	out = append(append(out, `,"serverInfo":`...), d.info()...)
	return gate.ParseDoc(append(out, '}'))
}

// discover answers what a client without a session asks first.
func (d *Dispatcher) discover(ctx context.Context, p sessions.Client, _ message.Message) (gate.Doc, error) {
	out := append(append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaServer+`":`), d.info()...), `},"ttlMs":0,"cacheScope":"private","supportedVersions":`...)
	out = append(append(out, mcp.MustJSON(message.Revisions)...), `,"capabilities":{`...)
	offered := d.offering(ctx, offeringTime)
	out = appendExtensions(out, d.OffersTasks(), p.Renders && offered.Apps, d.skills.offersSkills(ctx, p, offered))
	out = appendCapabilities(out, offered)
	return gate.ParseDoc(append(appendInstructions(append(out, '}'), d.instructionsFor(ctx, p)), '}'))
}

// appendCapabilities writes the members of the capabilities of a gateway that offers
// tools, and what else o says.
func appendCapabilities(b []byte, o mcp.Offering) []byte {
	if o.Completions {
		b = append(b, `"completions":{},`...)
	}
	if o.Logging {
		b = append(b, `"logging":{},`...)
	}
	if o.Prompts {
		b = append(b, `"prompts":{"listChanged":true},`...)
	}
	switch {
	case o.Resources && o.Updates:
		b = append(b, `"resources":{"listChanged":true,"subscribe":true},`...)
	case o.Resources:
		b = append(b, `"resources":{"listChanged":true},`...)
	}
	return append(b, `"tools":{"listChanged":true}`...)
}

// appendExtensions writes the extensions that a client is offered, before other capabilities.
func appendExtensions(b []byte, tasks, shows, skilled bool) []byte {
	var all []string
	if tasks {
		all = append(all, `"`+mcp.ExtensionTasks+`":{}`)
	}
	if shows {
		all = append(all, `"`+apps.Extension+`":{}`)
	}
	if skilled {
		all = append(all, `"`+skills.Extension+`":{"directoryRead":true}`)
	}
	if all == nil {
		return b
	}
	return append(b, `"extensions":{`+strings.Join(all, ",")+`},`...)
}

func appendInstructions(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	return append(append(b, `,"instructions":`...), mcp.MustJSON(text)...)
}

// Reply writes the answer to a request.
func (d *Dispatcher) Reply(p sessions.Client, m message.Message, res gate.Doc, err error) []byte {
	id, raw := m.ID.Raw(), res.Raw()
	out := make([]byte, 0, len(raw)+len(id)+len(d.info())+128)
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), id...)
	if err != nil {
		return append(append(append(out, `,"error":`...), message.ErrorOf(err).JSON()...), '}')
	}
	out = append(out, `,"result":`...)
	if p.Stateless {
		out = mcp.AppendStamp(out, res, mcp.MetaServer, d.info())
	} else {
		out = append(out, raw...)
	}
	return append(out, '}')
}

// dispatch answers a request of a client, from any transport. Its error is an [*mcp.Error], or the
// end of ctx.
func (d *Dispatcher) dispatch(ctx context.Context, p sessions.Client, m message.Message) (res gate.Doc, err error) {
	defer d.recovers(m.Method, &res, &err)
	if !d.calls.Begin() {
		return gate.Doc{}, message.ErrDraining
	}
	defer d.calls.End()
	if p.Stateless && message.Subscribes(m.Method) || !d.offers(ctx, m.Method) {
		return gate.Doc{}, message.ErrNoMethod
	}
	asked, known := d.methods[m.Method]
	switch {
	case known && !asked.connects:
		return asked.answer(ctx, p, m)
	case d.method(ctx, m.Method) != nil:
		return d.features.useMethod(ctx, p, m)
	}
	return gate.Doc{}, message.ErrNoMethod
}
