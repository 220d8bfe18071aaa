// Package handover serves one MCP client through one gateway after another, so that
// a process can take the place of another without the client's noticing more than it must.
package handover
