package background

import (
	"context"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/internal/background/notify"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/files/state"
	"github.com/wasmgate/wasmgate/internal/files/watch"
)

const (
	// noticeEvery is how often conditions are checked.
	noticeEvery = time.Second
	// maxTold is how many notices of a kind are sent at once; the last one counts the
	// others.
	maxTold = 5
)

// notifyAll sends notices of conditions until ctx ends.
func (b *Work) notifyAll(ctx context.Context, all *sync.WaitGroup, cfg *config.Config) {
	if len(cfg.Notify) == 0 {
		return
	}
	var channels []*notify.Channel
	for _, n := range cfg.Notify {
		c := b.channel(n)
		channels = append(channels, c)
		all.Go(func() { c.Run(ctx) })
	}
	node, _ := state.Node(cfg.State, cfg.Store.Node)
	all.Go(func() {
		for watch.Wait(ctx, noticeEvery) {
			for _, n := range b.news(ctx, b.of.Conditions(ctx)) {
				n.Node, n.Time = node, time.Now().UTC()
				for _, c := range channels {
					c.Offer(n)
				}
			}
		}
	})
}

func (b *Work) channel(n config.Notify) *notify.Channel {
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

// A Condition is something to send a notice about, as long as it lasts.
type Condition struct {
	Key string // names it among all
	notify.Notice
}

// news returns the conditions that were not there before and are reported here, few of each kind, and
// remembers all that are there. A condition that ends and comes again is reported again.
func (b *Work) news(ctx context.Context, now []Condition) (news []notify.Notice) {
	before := b.noticed
	b.noticed = make(map[string]bool)
	count, last := make(map[notify.Kind]int), make(map[notify.Kind]int)
	for _, c := range now {
		if b.noticed[c.Key] = true; before[c.Key] || !b.of.Reports(ctx, c) {
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
