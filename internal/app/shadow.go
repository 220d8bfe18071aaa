package app

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/policy/study"
)

// ShadowStatus tells how the shadow policy is.
type ShadowStatus struct {
	study.ShadowStatus
	Error string `json:"error,omitempty"` // why it does not load; the one before it stays
}

// reloadShadow puts the shadow policy that the files hold now in place, with the
// bundles in use. What is wrong with it changes nothing else.
func (a *App) reloadShadow(ctx context.Context) {
	var next *gateway.Policy
	var err error
	if files := a.shadow.Load(); files != nil {
		var p gateway.Policy
		p, err = files.Load()
		p.Options.Bundles = a.bundles.Load().InUse()
		next = &p
	}
	if err == nil {
		err = a.gateway.Operator().SetShadow(ctx, next)
	}
	a.shadowError.Store(&outcome{err})
	if err != nil {
		a.log.Error("shadow policy has an error; the earlier one is in use, if there was one", "error", err)
	}
}

// shadowStatus tells how the shadow policy is, or returns nil.
func (a *App) shadowStatus() *ShadowStatus {
	if a.shadow.Load() == nil {
		return nil
	}
	s := new(ShadowStatus)
	if g := a.gateway.Operator().Shadow(); g != nil {
		s.ShadowStatus = *g
	}
	if p := a.shadowError.Load(); p != nil && p.err != nil {
		s.Error = p.err.Error()
	}
	return s
}
