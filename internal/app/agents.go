package app

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/app/naming"
	"github.com/wasmgate/wasmgate/internal/hook"
)

// Hook takes what the hook of an agent tells.
func (a *App) Hook(ctx context.Context, r hook.Request) (options.HookAnswer, error) {
	as := ""
	for _, one := range a.Settings.Config().Agents {
		if one.ID == r.Agent {
			as = one.As
		}
	}
	who, err := naming.Offered(a.cfg, as, nil)
	if err != nil {
		return options.HookAnswer{}, err
	}
	event, unreadable := readEvent(r)
	return a.gateway.Operator().Hook(ctx, who, options.Hook{
		Agent: r.Agent, Event: event, Unreadable: unreadable, Headless: r.Headless, Observe: r.Observe, Hold: time.Duration(r.HoldMS) * time.Millisecond,
	}), nil
}

// readEvent returns an event, or its outline and why it cannot be read. Half a surrogate pair,
// which agents written in JavaScript send, is replaced unless the event is decided on: the agent
// would carry out another call than the one that was judged.
func readEvent(r hook.Request) (event gate.Doc, unreadable error) {
	event, err := gate.ParseDoc(r.Event)
	switch {
	case r.Unreadable != "":
		return event, errors.New(r.Unreadable)
	case err == nil:
		return event, nil
	}
	if whole := bytes.Clone(r.Event); !hook.Decides(whole) && doc.ReplaceSurrogates(whole) > 0 {
		if event, err := gate.ParseDoc(whole); err == nil {
			return event, nil
		}
	}
	event, _ = gate.ParseDoc(hook.Outline(r.Event)) // an object of texts
	return event, err
}
