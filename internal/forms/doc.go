// Package forms reads what servers ask people for: forms, and URLs to visit (MCP,
// client/elicitation).
package forms
