package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
)

// offeringTime bounds how long a client that connects waits for servers that are
// connecting: it is told once what the gateway can do.
const offeringTime = 2 * time.Second

// offering returns what the servers offer beside tools. Of servers that are
// connecting it waits, at most for wait.
func (h *Host) offering(ctx context.Context, wait time.Duration) mcp.Offering {
	if h.cfg.Offering == nil || h.cfg.Features == nil {
		return mcp.Offering{}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o := h.cfg.Offering(ctx)
	heard := h.cfg.SetLevel != nil && h.cfg.Unsubscribe != nil && h.cfg.Clean != nil
	o.Logging, o.Updates = o.Logging && heard, o.Updates && heard
	return o
}

// offers reports whether a method is served. What nobody offers is not.
func (h *Host) offers(ctx context.Context, method string) bool {
	switch method {
	case "prompts/list", string(gate.GetPrompt):
		return h.offering(ctx, 0).Prompts
	case "resources/list", "resources/templates/list", string(gate.ReadResource):
		return h.offering(ctx, 0).Resources
	case string(gate.Complete):
		return h.offering(ctx, 0).Completions
	case mcp.MethodSetLevel:
		return h.offering(ctx, 0).Logging
	case string(gate.Subscribe), mcp.MethodUnsubscribe:
		return h.offering(ctx, 0).Updates
	case mcp.MethodTaskGet, mcp.MethodTaskResult, mcp.MethodTaskList, mcp.MethodTaskUpdate, mcp.MethodTaskCancel:
		return h.OffersTasks()
	default:
		return true
	}
}

// checkUse checks the shape of the parameters of a use of a prompt or a resource,
// and returns what they name.
func checkUse(action gate.Action, params gate.Doc) (name string, err error) {
	objects := []string{"_meta"}
	switch action {
	case gate.GetPrompt:
		name, err = textOf(params, "/name")
		objects = append(objects, "arguments")
	case gate.ReadResource, gate.Subscribe:
		name, err = textOf(params, "/uri")
	case gate.Complete:
		objects = append(objects, "argument", "context")
		switch params.At("/ref/type").Text() {
		case "ref/prompt":
			name, err = textOf(params, "/ref/name")
		case "ref/resource":
			name, err = textOf(params, "/ref/uri")
		default:
			err = errors.New("/ref/type is neither ref/prompt nor ref/resource")
		}
	}
	if err != nil {
		return name, err
	}
	for _, member := range objects {
		if v := params.Get(member); !v.IsZero() && v.Kind() != gate.Object {
			return name, fmt.Errorf("%s is no object", member)
		}
	}
	if isURI := mcp.URIScheme.MatchString(name); params.At("/ref/type").Text() == "ref/prompt" && isURI {
		return name, errors.New("/ref/name is a URI")
	}
	return name, checkBrought(params)
}

func textOf(params gate.Doc, pointer string) (string, error) {
	v := params.At(pointer)
	if v.Kind() != gate.String {
		return "", fmt.Errorf("%s is no string", pointer)
	}
	return v.Text(), nil
}

// use answers a request to use a prompt or a resource.
func (h *Host) use(ctx context.Context, p peerInfo, action gate.Action, params gate.Doc) (gate.Doc, error) {
	name, err := checkUse(action, params)
	c := p.call(action, name)
	c.Meta = params.Get("_meta")
	switch {
	case err != nil:
		c.Malformed = err
	case action == gate.GetPrompt:
		c.Args = params.Get("arguments")
	case action == gate.Complete:
		c.Args = mcp.Without(params, "ref", "_meta")
	}
	res, err := h.carry(ctx, p, &c, params)
	if err != nil && (action == gate.GetPrompt || action == gate.ReadResource) {
		res, err = h.connect(ctx, p, &c, params, err)
	}
	if err != nil {
		return gate.Doc{}, h.unused(ctx, p, &c, err)
	}
	if res.InputRequired {
		return res.Doc, nil
	}
	if res.IsError {
		return gate.Doc{}, serverError(res.Doc)
	}
	doc := res.Doc
	if p.stateless && action == gate.ReadResource { // its principal's, and not for caches that others share
		doc = doc.With("ttlMs", timeToLive(doc)).With("cacheScope", []byte(`"private"`))
	}
	return p.complete(doc), nil
}

// Codes of JSON-RPC errors beside those of JSON-RPC itself.
const (
	// codeNoResource is of MCP up to 2025-11-25 (server/resources, "Error Handling");
	// later revisions say it by invalid parameters.
	codeNoResource = -32002
	// codeRefused is the gateway's own, of a use that the gate refuses or a server
	// fails: what is no tool has no result that could say so.
	codeRefused = -32010
)

// unused puts the error of a use into the words of MCP.
func (h *Host) unused(ctx context.Context, p peerInfo, c *gate.Call, err error) error {
	p.lacks(err)
	r, refused := errors.AsType[*gate.Refusal](err)
	rpc, ours := errors.AsType[*mcp.Error](err)
	switch {
	case ours:
		return rpc
	case refused && r.Step == gate.StepParse:
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "invalid parameters: " + r.Reason}
	case refused && (r.Step == gate.StepLookup || r.Hidden):
		return p.unknown(c)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &mcp.Error{Code: codeRefused, Message: Public(err), Data: mcp.MustJSON(map[string]any{gate.MetaRefusal: refusalOf(c.ID, err)})}
}

// unknown is the error of what does not exist, or is hidden.
func (p peerInfo) unknown(c *gate.Call) error {
	if c.Action.IsMethod() {
		return errNoMethod
	}
	what, code, data := "prompt", int64(mcp.CodeInvalidParams), []byte(nil)
	switch c.Action {
	case gate.ReadResource, gate.Subscribe:
		what, data = "resource", mcp.MustJSON(map[string]string{"uri": c.Name})
		if !p.stateless {
			code = codeNoResource
		}
	case gate.Complete:
		what = "prompt or template of resources"
	}
	return &mcp.Error{Code: code, Message: fmt.Sprintf("unknown %s %.200q", what, c.Name), Data: data}
}

// serverError gives a client the JSON-RPC error that a server answered with, of
// which the gate has seen the text: see [mcp.MetaError].
func serverError(res gate.Doc) error {
	e := res.Get("_meta").Get(mcp.MetaError)
	code, err := strconv.ParseInt(e.Get("code").String(), 10, 64)
	if err != nil || code < math.MinInt32 || code > math.MaxInt32 {
		code = mcp.CodeInternal
	}
	return &mcp.Error{Code: code, Message: res.At("/content/0/text").Text(), Data: e.Get("data").Raw()}
}

// codeLacksCapability is the error of a server that needs what the client has not
// declared (MCP 2026-07-28, basic, "Capability negotiation"). It is about the client,
// not the tool, so that the client gets it as it is.
const codeLacksCapability = -32021

func lacksCapability(res gate.Doc) bool {
	return res.Get("_meta").Get(mcp.MetaError).Get("code").String() == strconv.Itoa(codeLacksCapability)
}
