package app

import "context"

// Reread reads the configuration anew, as when its files have changed.
func (a *App) Reread(ctx context.Context) error { return a.reloadConfig(ctx) }

// EndGateway ends the gateway, which records nothing then and refuses changes.
func (a *App) EndGateway(ctx context.Context) error { return a.gateway.Close(ctx) }

// RecordDenials puts what was refused until now into the audit log.
func (a *App) RecordDenials() { a.recordDenials() }
