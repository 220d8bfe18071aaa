// Package postgres keeps in a PostgreSQL database what several gateways have to agree on: the
// labels of sessions, API keys, revocations, pauses, pins, grants and logins. Programs that do not import this
// package do not link the driver.
package postgres
