package gatetest

import (
	"context"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// A Client is a [gate.Client] made of functions. What is nil does nothing; that OnApprove and
// OnNotify are there Can need not say.
type Client struct {
	Can       gate.Reach
	OnApprove func(ctx context.Context, p gate.Pending) (gate.Answer, error)
	OnRequest func(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error)
	OnNotify  func(ctx context.Context, method string, params gate.Doc)
	OnGranted func()
	OnTasked  func()
	OnPoll    func(after time.Duration)
}

var _ gate.Client = (*Client)(nil)

// Of gives a call a client of its own, which does what the one does that it has, and returns
// it to be changed.
func Of(c *gate.Call) *Client {
	one := new(Client)
	if has, ok := c.Client.(*Client); ok {
		*one = *has
	}
	c.Client = one
	return one
}

// Asked returns a client of these capabilities, which answers what servers ask.
func Asked(capabilities string, answer func(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error)) *Client {
	return &Client{Can: gate.Reach{Capabilities: gate.MustDoc(capabilities)}, OnRequest: answer}
}

// Reach implements [gate.Client].
func (c *Client) Reach() gate.Reach {
	r := c.Can
	r.Approves = r.Approves || c.OnApprove != nil
	r.Hears = r.Hears || c.OnNotify != nil
	return r
}

// Approve implements [gate.Client].
func (c *Client) Approve(ctx context.Context, p gate.Pending) (gate.Answer, error) {
	if c.OnApprove == nil {
		return gate.Nobody{}.Approve(ctx, p)
	}
	return c.OnApprove(ctx, p)
}

// Request implements [gate.Client].
func (c *Client) Request(ctx context.Context, method gate.Action, params gate.Doc) (gate.Doc, error) {
	if c.OnRequest == nil {
		return gate.Nobody{}.Request(ctx, method, params)
	}
	return c.OnRequest(ctx, method, params)
}

// Notify implements [gate.Client].
func (c *Client) Notify(ctx context.Context, method string, params gate.Doc) {
	if c.OnNotify != nil {
		c.OnNotify(ctx, method, params)
	}
}

// Granted implements [gate.Client].
func (c *Client) Granted() { call(c.OnGranted) }

// Tasked implements [gate.Client].
func (c *Client) Tasked() { call(c.OnTasked) }

// Poll implements [gate.Client].
func (c *Client) Poll(after time.Duration) {
	if c.OnPoll != nil {
		c.OnPoll(after)
	}
}

func call(f func()) {
	if f != nil {
		f()
	}
}
