// Package peer checks the shapes of what servers ask of clients during a call, and of what clients
// answer: elicitation, sampling and roots (MCP 2025-11-25, client features).
package peer
