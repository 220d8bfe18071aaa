package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/panicked"
	"github.com/wasmgate/wasmgate/internal/product"
)

// ClientConfig configures a [Client]. The zero ClientConfig is the local principal
// that cannot be asked anything.
type ClientConfig struct {
	// The principal that calls; nil is [gate.Local].
	Who *gate.Principal
	// Name and Version are what the audit log says of the client. Empty means the
	// gateway's own.
	Name, Version string
	// Timeout bounds each call, in addition to the server's own limit and the context's; zero
	// leaves it to these.
	Timeout time.Duration

	// Notify is called with what servers say of calls under way: a notification of MCP, such as
	// notifications/progress, with its parameters; see also [Client.SetLogLevel]. It must not
	// block.
	Notify func(ctx context.Context, method string, params gate.Doc)
	// Approve is asked about calls for which the policy wants a person, with the question in
	// words and, in p.Asked, in its parts: tool, arguments, who calls. It may take as long as
	// calls wait, see [Config].Approvals, without which that is 55 s; ctx ends with that, and has
	// the values of the call's. An error, a panic and an answer that is none of [gate.Approved],
	// [gate.Denied] and [gate.Dismissed] refuse the call at once. Without Approve calls wait for
	// another channel, or are refused. It may be called concurrently.
	Approve func(ctx context.Context, p gate.Pending) (gate.Answer, error)
	// Elicit, Sample and Roots answer what servers ask of the client while a call runs, as far as
	// the policy lets them: with the parameters of elicitation/create (form and url) or
	// sampling/createMessage (tools included), and the result of each, an object (MCP 2025-11-25,
	// client). Functions that are nil are not declared.
	Elicit, Sample func(ctx context.Context, params gate.Doc) (gate.Doc, error)
	Roots          func(ctx context.Context) ([]Root, error)
}

// A Root is a folder in which a client works (MCP 2025-11-25, client/roots).
type Root struct {
	URI  string `json:"uri"` // file://...
	Name string `json:"name,omitempty"`
}

// A Client is a principal's view of a gateway: what it is offered, and calls in one
// session of its own, unless [Config].OneSession says otherwise. Its errors are [*Error].
// Use it from several goroutines.
type Client struct {
	gateway *Gateway
	cfg     ClientConfig
	session gate.SessionKey
	reach   gate.Reach // by what cfg has functions for

	life context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	words string
}

// NewClient begins a session. It needs no server to be connected. The client should be
// closed when it is not used any more; it ends with the gateway at the latest.
func (g *Gateway) NewClient(cfg ClientConfig) *Client {
	if cfg.Who == nil {
		cfg.Who = gate.Local()
	}
	if cfg.Name == "" {
		cfg.Name, cfg.Version = product.Name, product.Version()
	}
	return g.newClient(cfg)
}

// As returns a client of another principal, which is otherwise configured as c is: for a
// program that serves many people, at one for each request. It begins a session, has heard none
// of the words of [Client.Say], and neither of the two ends with the other. Making one costs
// less than a call, and nothing is left of one that was closed. With a nil principal it is
// offered nothing, and each of its calls is refused.
func (c *Client) As(who *gate.Principal) *Client {
	cfg := c.cfg
	cfg.Who = who
	return c.gateway.newClient(cfg)
}

func (g *Gateway) newClient(cfg ClientConfig) *Client {
	c := &Client{gateway: g, cfg: cfg, session: gate.SessionKey{ID: gate.NewID()}}
	if cfg.Who != nil {
		c.session.Owner = cfg.Who.Owner
	}
	c.life, c.end = context.WithCancel(g.life)
	c.reach = gate.Reach{Capabilities: cfg.capabilities(), Approves: cfg.Approve != nil, Hears: cfg.Notify != nil}
	return c
}

// Close ends the session: calls under way are cancelled, and no other begins. It may be
// called again, and its error is always nil.
func (c *Client) Close() error {
	c.end()
	c.gateway.fleet.Sessions.End(c.session) // and with it the connections that are its own
	if !c.gateway.cfg.OneSession {
		c.gateway.sessions.Forget(c.session)
	}
	return nil
}

// Session names the session, as the audit log does.
func (c *Client) Session() gate.SessionKey { return c.gateway.sessions.key(c.session) }

// Say gives the gateway the user's own words, with this and later calls: values in
// them count as trusted. What anybody else can write into must not be in them.
func (c *Client) Say(words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.words = words
}

// SetLogLevel has [ClientConfig].Notify told what servers log during calls, from a
// severity on: debug, info, notice, warning, error, critical, alert or emergency; ""
// ends that. It holds for the session.
func (c *Client) SetLogLevel(ctx context.Context, level string) error {
	if err := c.closed(); err != nil {
		return err
	}
	if err := c.gateway.fleet.Sessions.SetLevel(ctx, c.session, level); err != nil {
		return &Error{Code: InvalidParameters, Message: fmt.Sprintf("log level %q: %v", level, err), err: err}
	}
	return nil
}

// Tools returns the tools that the client may call, or might with the right
// arguments. Offered is the name to show to a model: it is Name, shortened where clients take no
// longer one. All listings together wait once for servers that connect for the first time: 1 s,
// or 8 s while there is nothing else to list. [Gateway.Connect] waits until none connects any
// more.
func (c *Client) Tools(ctx context.Context) ([]*gate.Tool, error) {
	return c.features(ctx, gate.FeatureTool)
}

// Prompts returns the prompts that the client may get.
func (c *Client) Prompts(ctx context.Context) ([]*gate.Tool, error) {
	return c.features(ctx, gate.FeaturePrompt)
}

// Resources returns the resources that the client may read.
func (c *Client) Resources(ctx context.Context) ([]*gate.Tool, error) {
	return c.features(ctx, gate.FeatureResource)
}

// Templates returns the URI templates of resources that the client may read.
func (c *Client) Templates(ctx context.Context) ([]*gate.Tool, error) {
	return c.features(ctx, gate.FeatureTemplate)
}

func (c *Client) features(ctx context.Context, f gate.Feature) ([]*gate.Tool, error) {
	if err := c.closed(); err != nil {
		return nil, err
	}
	if c.cfg.Who == nil {
		return nil, nil // without a principal nothing is offered
	}
	list, err := c.gateway.gate.Features(c.gateway.fleet.Settle(ctx), c.cfg.Who, f)
	if err == nil {
		err = c.gateway.gate.Shown(ctx, c.gateway.sessions.place(gate.Call{Who: c.cfg.Who, Session: c.session, ClientName: c.cfg.Name}), list)
	}
	if err != nil {
		return nil, &Error{Code: ServerError, Message: "the listing failed", err: err}
	}
	return list, nil
}

// CallTool calls a tool with arguments that marshal to a JSON object, such as a map,
// a struct, a [gate.Doc] or a [json.RawMessage]; nil is {}. The name may be that at the
// tool's server, without the server's, if no other server has a tool of that name. A
// tool that reports its own failure is no error: see [gate.Result.IsError].
func (c *Client) CallTool(ctx context.Context, name string, args any) (gate.Result, error) {
	if !strings.Contains(name, "__") && c.closed() == nil {
		offered, err := c.gateway.Operator().Resolve(ctx, c.cfg.Who, name)
		if err != nil {
			return gate.Result{}, AsError(gate.Call{Action: gate.CallTool, Name: name}, err)
		}
		name = offered
	}
	return c.use(ctx, gate.CallTool, name, args)
}

// GetPrompt gets a prompt, filled with the arguments. The result is that of
// prompts/get.
func (c *Client) GetPrompt(ctx context.Context, name string, args map[string]string) (gate.Result, error) {
	return c.use(ctx, gate.GetPrompt, name, orEmpty(args))
}

// ReadResource reads a resource, listed or of a template. The result is that of
// resources/read.
func (c *Client) ReadResource(ctx context.Context, uri string) (gate.Result, error) {
	return c.use(ctx, gate.ReadResource, uri, nil)
}

// Method calls a method that MCP does not have, with params that marshal to a JSON object,
// or nil. Of several servers that have it, the first in the configuration is asked, and
// server__method asks one. The result is what the server answers.
func (c *Client) Method(ctx context.Context, method string, params any) (gate.Result, error) {
	action := actions.OfMethod(method)
	if err := actions.CheckMethod(string(action)); err != nil {
		return gate.Result{}, &Error{Code: InvalidParameters, Message: fmt.Sprintf("%.200q %v", action, err), Tool: method, err: err}
	}
	return c.use(ctx, action, method, params)
}

// Complete returns what an argument of the prompt, or a variable of the URI template, that
// of names can be if it begins with value; known are those that are filled already.
func (c *Client) Complete(ctx context.Context, of, argument, value string, known map[string]string) ([]string, error) {
	args := map[string]any{"argument": map[string]string{"name": argument, "value": value}}
	if len(known) > 0 {
		args["context"] = map[string]any{"arguments": known}
	}
	res, err := c.use(ctx, gate.Complete, of, args)
	if err != nil {
		return nil, err
	}
	var values []string
	for v := range res.Doc.At("/completion/values").Elements() {
		values = append(values, v.Text())
	}
	return values, nil
}

func orEmpty(args map[string]string) map[string]string {
	if args == nil {
		return map[string]string{}
	}
	return args
}

func (c *Client) use(ctx context.Context, action gate.Action, name string, args any) (gate.Result, error) {
	call := gate.Call{Action: action, Name: name}
	call.Args, call.Refused = document(args)
	return c.Do(ctx, call)
}

// Do carries out a call that says more than the other methods take, such as its ID or its Meta. The
// caller and the session are always those of the client. If the call leaves out how the client is
// reached, or the user's own words, those of the client are used.
func (c *Client) Do(ctx context.Context, call gate.Call) (gate.Result, error) {
	if err := c.closed(); err != nil {
		return gate.Result{}, err
	}
	c.complete(&call)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	if c.cfg.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
	}
	res, err := c.gateway.Do(ctx, call)
	if err != nil {
		return gate.Result{}, AsError(call, err)
	}
	if res.IsError && saysNoFailure(call.Action, res) {
		return gate.Result{}, &Error{
			Code: ServerError, Message: res.Text(), Server: serverOf(call, nil), Tool: call.Name,
			Outcome: codes.ToolError, Record: call.ID, Details: map[string]any{"outcome": codes.ToolError, "record": call.ID},
		}
	}
	return res, nil
}

// saysNoFailure reports whether a failure cannot be read from the result of an action: only results
// of tools have a member for it. In the results of methods that MCP does not have, that member can
// mean anything.
func saysNoFailure(a gate.Action, res gate.Result) bool {
	if actions.IsMethod(a) {
		return !res.Doc.Get("_meta").Get(mcp.MetaError).IsZero()
	}
	return a != gate.CallTool
}

// complete fills in what the client knows.
func (c *Client) complete(call *gate.Call) {
	call.Who, call.Session = c.cfg.Who, c.session
	call.ClientName, call.ClientVersion = c.cfg.Name, c.cfg.Version
	if call.ID == "" {
		call.ID = gate.NewID()
	}
	if call.Prompt == "" {
		c.mu.Lock()
		call.Prompt = c.words
		c.mu.Unlock()
	}
	if call.Client == nil {
		call.Client = &reached{client: c}
	}
	if call.Reach().Hears && call.Meta.IsZero() { // servers tell how far they are only if they are given a token
		call.Meta = gate.MustDoc(fmt.Sprintf(`{"progressToken":%q}`, call.ID))
	}
}

var errClosedClient = errors.New("the client is closed")

func (c *Client) closed() error {
	if c.life.Err() == nil {
		return nil
	}
	return &Error{Code: NotConnected, Message: errClosedClient.Error(), again: true, err: errClosedClient}
}

// reached is a client as its calls have it.
type reached struct {
	gate.Nobody
	client *Client
}

// Reach implements [gate.Client].
func (r *reached) Reach() gate.Reach { return r.client.reach }

// Notify implements [gate.Client].
func (r *reached) Notify(ctx context.Context, method string, params gate.Doc) {
	r.client.cfg.Notify(ctx, method, params)
}

// Approve implements [gate.Client]. If a program's own function fails, no one else is asked
// instead.
func (r *reached) Approve(ctx context.Context, p gate.Pending) (a gate.Answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the function Approve: %w", panicked.Error(v))
		}
		if err != nil {
			err = &gate.NotApproved{Reason: "this call needs approval, and the client could not ask its user", Err: err}
		}
	}()
	a, err = r.client.cfg.Approve(ctx, p)
	if err == nil && a.Verdict != gate.Approved && a.Verdict != gate.Denied && a.Verdict != gate.Dismissed {
		err = fmt.Errorf("the function Approve returned %q, which is not a verdict", a.Verdict)
	}
	return a, err
}

// capabilities are those that servers may ask the client by; absent if there are none.
func (cfg *ClientConfig) capabilities() gate.Doc {
	declared := make(map[string]string)
	if cfg.Elicit != nil {
		declared["elicitation"] = `{"form":{},"url":{}}`
	}
	if cfg.Sample != nil {
		declared["sampling"] = `{"tools":{}}`
	}
	if cfg.Roots != nil {
		declared["roots"] = `{}`
	}
	if len(declared) == 0 {
		return gate.Doc{}
	}
	d := gate.MustDoc("{}")
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		d = d.With(name, []byte(declared[name]))
	}
	return d
}

// Request implements [gate.Client].
func (r *reached) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	switch cfg := &r.client.cfg; {
	case method == actions.Elicit && cfg.Elicit != nil:
		return cfg.Elicit(ctx, params)
	case method == actions.Sample && cfg.Sample != nil:
		return cfg.Sample(ctx, params)
	case method == actions.ListRoots && cfg.Roots != nil:
		roots, err := cfg.Roots(ctx)
		if err != nil {
			return gate.Doc{}, err
		}
		return document(map[string]any{"roots": append([]Root{}, roots...)})
	}
	return gate.Doc{}, fmt.Errorf("the client does not support the request %s", method)
}
