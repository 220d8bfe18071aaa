package policies

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

// LoadShadow puts the shadow policy that the files hold now in place, with the
// bundles in use. What is wrong with it changes nothing else.
func (p *Policies) LoadShadow(ctx context.Context) {
	var next *gateway.Policy
	var err error
	if files := p.shadow.Load(); files != nil {
		var loaded gateway.Policy
		loaded, err = files.Load()
		loaded.Options.Bundles = p.bundles.Load().InUse()
		next = &loaded
	}
	if err == nil {
		err = p.Gateway.SetShadow(ctx, next)
	}
	p.shadowFailed.Store(&err)
	if err != nil {
		p.Log.Error("shadow policy has an error; the earlier one is in use, if there was one", "error", err)
	}
}

// Shadow tells how the shadow policy is, or returns nil.
func (p *Policies) Shadow() *ShadowStatus {
	if p.shadow.Load() == nil {
		return nil
	}
	s := new(ShadowStatus)
	if g := p.Gateway.Shadow(); g != nil {
		s.ShadowStatus = *g
	}
	if err := outcome(&p.shadowFailed); err != nil {
		s.Error = err.Error()
	}
	return s
}
