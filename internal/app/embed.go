package app

import "github.com/wasmgate/wasmgate/bridge/gateway"

// Gateway returns the gateway itself, for a program that embeds it. Its end is that of
// the App.
func (a *App) Gateway() *gateway.Gateway { return a.gateway }
