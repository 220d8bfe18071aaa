// Package probe tests any gateway between MCP clients and servers, as an adversary would. A [Liar]
// is a server that lies; [Run] is a client that reaches it through the gateway and reports, check
// by check, what came through.
//
// Both speak MCP by hand, in revision 2025-11-25 with sessions and in revision
// 2026-07-28 without: a library would correct what is wrong on purpose. Neither
// needs anything of wasmgate, so that any product can be measured, and a plain
// connection too.
package probe
