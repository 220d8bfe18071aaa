package app

import "context"

// A Gatekeeper is a gateway that is asked who is let in.
type Gatekeeper interface {
	CreateKey(ctx context.Context, r KeyRequest) (*Key, error)
	Keys(ctx context.Context) ([]Key, error)
	RevokeKey(ctx context.Context, id string) (*Key, error)
	Revoke(ctx context.Context, r RevokeRequest) (*Revoked, error)
	WhoAmI(ctx context.Context, r WhoRequest) (*Who, error)
	AuthCheck(ctx context.Context) ([]Finding, error)
}

// CreateKey does what [App.CreateKey] does.
func (r *Remote) CreateKey(ctx context.Context, k KeyRequest) (*Key, error) {
	to := new(Key)
	return to, r.call(ctx, methodKeyCreate, k, to)
}

// Keys returns what [App.Keys] does.
func (r *Remote) Keys(ctx context.Context) ([]Key, error) {
	var all []Key
	return all, r.call(ctx, methodKeys, nil, &all)
}

// RevokeKey does what [App.RevokeKey] does.
func (r *Remote) RevokeKey(ctx context.Context, id string) (*Key, error) {
	to := new(Key)
	return to, r.call(ctx, methodKeyRevoke, keyRequest{id}, to)
}

// Revoke does what [App.Revoke] does.
func (r *Remote) Revoke(ctx context.Context, q RevokeRequest) (*Revoked, error) {
	to := new(Revoked)
	return to, r.call(ctx, methodAuthRevoke, q, to)
}

// WhoAmI returns what [App.WhoAmI] does.
func (r *Remote) WhoAmI(ctx context.Context, q WhoRequest) (*Who, error) {
	to := new(Who)
	return to, r.call(ctx, methodWho, q, to)
}

// AuthCheck returns what [App.AuthCheck] does.
func (r *Remote) AuthCheck(ctx context.Context) ([]Finding, error) {
	var all []Finding
	return all, r.call(ctx, methodAuthCheck, nil, &all)
}

type keyRequest struct {
	ID string `json:"id"`
}
