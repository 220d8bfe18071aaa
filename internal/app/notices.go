package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/notify"
)

const (
	// noticeEvery is how often it is looked for what somebody should be told.
	noticeEvery = time.Second
	// maxTold is how many notices of a kind are sent at once; the last one counts the
	// others.
	maxTold = 5
)

// notifyAll tells who is to be told until ctx ends.
func (b *beside) notifyAll(ctx context.Context, all *sync.WaitGroup, cfg *config.Config) {
	if len(cfg.Notify) == 0 {
		return
	}
	var channels []*notify.Channel
	for _, n := range cfg.Notify {
		c := b.channel(n)
		channels = append(channels, c)
		all.Go(func() { c.Run(ctx) })
	}
	node, _ := nodeName(cfg.State)
	all.Go(func() {
		for pause(ctx, noticeEvery) {
			for _, n := range b.news(b.app.conditions(ctx)) {
				n.Node, n.Time = node, time.Now().UTC()
				for _, c := range channels {
					c.Offer(n)
				}
			}
		}
	})
}

func (b *beside) channel(n config.Notify) *notify.Channel {
	send := notify.Desktop
	switch {
	case n.URL != "":
		send = notify.Webhook(endpointOf(n.Target))
	case n.Command != nil:
		send = notify.Command(n.Command)
	}
	c := notify.NewChannel(send, func(err error) { b.problem("notify "+n.Name, err) })
	c.Arguments = n.Arguments
	for _, kind := range n.About {
		c.About = append(c.About, notify.Kind(kind))
	}
	return c
}

// A condition is something that somebody should be told of, as long as it is so.
type condition struct {
	key string
	notify.Notice
}

// news returns the conditions that were not there before, few of each kind, and remembers
// all that are. What ends and comes again is told again.
func (b *beside) news(now []condition) (news []notify.Notice) {
	before := b.noticed
	b.noticed = make(map[string]bool)
	count, last := make(map[notify.Kind]int), make(map[notify.Kind]int)
	for _, c := range now {
		if b.noticed[c.key] = true; before[c.key] {
			continue
		}
		if count[c.Kind]++; count[c.Kind] > maxTold {
			news[last[c.Kind]].More++
			continue
		}
		last[c.Kind] = len(news)
		news = append(news, c.Notice)
	}
	return news
}

// conditions are what somebody should be told of, if it is so now.
func (a *App) conditions(ctx context.Context) (all []condition) {
	if err := a.gateway.Healthy(); err != nil && !errors.Is(err, gateway.ErrDraining) {
		all = append(all, condition{"audit", notify.Notice{Kind: notify.Audit, Text: "The audit log cannot be written, and all calls are refused: " + err.Error(), Command: "wasmgate status", Link: a.page("")}})
	}
	if q := a.gateway.Approvals(); q != nil {
		for _, r := range q.Pending(ctx) {
			one := a.describe(r)
			all = append(all, condition{"approval " + one.ID, notify.Notice{
				Kind: notify.Approval, Text: fmt.Sprintf("%s wants to call %s.", one.Principal, one.Tool), Command: "wasmgate approvals show " + one.ID, Link: a.page("approvals"),
				ID: one.ID, Principal: one.Principal, Server: one.Server, Tool: one.Tool, Reasons: one.Reasons, Expires: one.Expires, Arguments: one.Arguments,
			}})
		}
	}
	needed := required(a.config.Load().cfg)
	for _, s := range a.addPins(a.gateway.Fleet().Status()) {
		for _, name := range s.Quarantined {
			all = append(all, condition{"quarantine " + s.Server + " " + name, notify.Notice{
				Kind: notify.Quarantine, Text: fmt.Sprintf("%s of server %s is new or has changed, and nobody has approved it.", name, s.Server),
				Command: "wasmgate pin diff " + s.Server, Link: a.page("pins"), Server: s.Server, Tool: name,
			}})
		}
		if s.Phase == gateway.Faulted && slices.Contains(needed, s.Server) {
			all = append(all, condition{"server " + s.Server, notify.Notice{
				Kind: notify.Server, Text: fmt.Sprintf("Server %s is required and faulted: %s", s.Server, s.Error), Command: "wasmgate status " + s.Server, Link: a.page("servers"), Server: s.Server,
			}})
		}
	}
	return all
}
