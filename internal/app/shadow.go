package app

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/gateway"
)

// ShadowStatus tells how the shadow policy is.
type ShadowStatus struct {
	gateway.ShadowStatus
	Error string `json:"error,omitempty"` // why it does not load; the one before it stays
}

// reloadShadow puts the shadow policy that the files hold now in place, with the
// bundles in use. What is wrong with it changes nothing else.
func (a *App) reloadShadow(ctx context.Context) {
	if a.shadow == nil {
		return
	}
	p, err := a.shadow.Load()
	if err == nil {
		p.Options.Bundles = a.bundles.InUse()
		err = a.gateway.SetShadow(ctx, p)
	}
	a.shadowError.Store(&outcome{err})
	if err != nil {
		a.log.Error("shadow policy refused; it decides nothing, or as before", "error", err)
	}
}

// shadowStatus tells how the shadow policy is, or returns nil.
func (a *App) shadowStatus() *ShadowStatus {
	g := a.gateway.Shadow()
	if g == nil {
		return nil
	}
	s := &ShadowStatus{ShadowStatus: *g}
	if p := a.shadowError.Load(); p != nil && p.err != nil {
		s.Error = p.err.Error()
	}
	return s
}
