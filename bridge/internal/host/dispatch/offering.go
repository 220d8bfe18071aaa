package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/host/message"
	"github.com/wasmgate/wasmgate/bridge/internal/host/sessions"
	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
)

// offeringTime bounds how long a client that connects waits for servers that are connecting: the
// gateway states its capabilities only once.
const offeringTime = 2 * time.Second

// offering returns what the servers offer in addition to tools. It waits for servers that are
// connecting, at most for wait.
func (b *backend) offering(ctx context.Context, wait time.Duration) mcp.Offering {
	if b.cfg.Offering == nil || b.cfg.Features == nil {
		return mcp.Offering{}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	o := b.cfg.Offering(ctx)
	heard := b.cfg.SetLevel != nil && b.cfg.Unsubscribe != nil && b.cfg.Clean != nil
	o.Skills = o.Skills && b.cfg.LoadedSkills != nil
	o.Logging, o.Updates = o.Logging && heard, o.Updates && heard
	return o
}

// method returns the method of a server that a request names; nil if no server has it.
func (b *backend) method(ctx context.Context, method string) *gate.Tool {
	if b.cfg.Lookup == nil || b.cfg.Features == nil || !message.IsMethod(method) {
		return nil
	}
	t, err := b.cfg.Lookup(ctx, actions.OfMethod(method), method)
	if err != nil || t.Feature != gate.FeatureMethod {
		return nil
	}
	return t
}

// offersMethod reports whether a client may use the method that its request names. For all
// others it does not exist.
func (b *backend) offersMethod(ctx context.Context, p sessions.Client, method string) bool {
	t := b.method(ctx, method)
	if t == nil {
		return false
	}
	offered, err := b.listed(ctx, p, gate.FeatureMethod)
	return err == nil && slices.ContainsFunc(offered, func(one *gate.Tool) bool { return one.Name == t.Name })
}

// OffersTasks reports whether clients may make tasks of calls.
func (b *backend) OffersTasks() bool { return b.cfg.Jobs != nil && !b.terms.Load().NoTasks }

// mayBeTask reports whether a call of a client without a session may become a task.
func (b *backend) mayBeTask(ctx context.Context, c *gate.Call) bool {
	return c.Action == gate.CallTool && message.DeclaresTasks(c.Meta) && b.OffersTasks() && !b.relays(ctx, c)
}

// relays reports whether a call is one of a tool that makes calls itself: such a tool is
// no task.
func (b *backend) relays(ctx context.Context, c *gate.Call) bool {
	if b.cfg.Lookup == nil {
		return false
	}
	t, err := b.cfg.Lookup(ctx, c.Action, c.Name)
	return err == nil && t.Relay
}

func (b *backend) fresh(f gate.Feature) time.Duration {
	if b.cfg.Fresh == nil {
		return 0
	}
	return b.cfg.Fresh(f)
}

// listed returns what a client is offered of a feature.
func (b *backend) listed(ctx context.Context, p sessions.Client, f gate.Feature) ([]*gate.Tool, error) {
	list := b.cfg.Tools
	if f != gate.FeatureTool {
		list = func(ctx context.Context, who *gate.Principal) ([]*gate.Tool, error) {
			return b.cfg.Features(ctx, who, f)
		}
	}
	all, err := list(ctx, p.Who)
	return within(p.Groups, all), err
}

// within returns what is in one of some groups; without groups that is all.
func within(groups gate.Groups, all []*gate.Tool) []*gate.Tool {
	if len(groups) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *gate.Tool) bool { return !groups.Has(t) })
}

// CheckParamHeaders returns how the headers differ from the arguments of a call. Only a client that
// is offered a tool learns what the tool wants in headers.
func (b *backend) CheckParamHeaders(r *http.Request, p sessions.Client, name string, args gate.Doc) error {
	if b.cfg.Lookup == nil {
		return nil
	}
	t, err := b.cfg.Lookup(r.Context(), gate.CallTool, name)
	if err != nil || mcp.CheckParamHeaders(mcp.OfferedHeaders(t), args, r.Header) == nil {
		return nil // the gate refuses an unknown name
	}
	offered, err := b.listed(r.Context(), p, gate.FeatureTool)
	if err != nil {
		return errors.New("the headers cannot be checked, because the gateway cannot list your tools now; try again later")
	}
	for _, its := range offered {
		if its.Name == t.Name && its.Local == t.Local {
			return mcp.CheckParamHeaders(mcp.OfferedHeaders(its), args, r.Header)
		}
	}
	return nil
}

// cached returns an answer of MCP Skills with how long it can be kept: for its principal only. The
// extension has that in every revision.
func (b *backend) cached(p sessions.Client, f gate.Feature, answer gate.Doc) gate.Doc {
	answer = answer.With("resultType", []byte(`"complete"`)).With("ttlMs", fmt.Append(nil, b.fresh(f).Milliseconds())).With("cacheScope", []byte(`"private"`))
	return p.Complete(answer)
}
