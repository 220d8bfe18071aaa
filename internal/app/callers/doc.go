// Package callers finds out who calls over HTTP: http.go has what requests and connections prove, keys.go the
// API keys and what is revoked before its time. streams.go ends what is open when a credential ends. whoami.go
// and check.go tell operators who a credential stands for, and which mistakes a configuration has.
package callers
