// Package elicit writes the elicitations by which clients ask their person something (MCP,
// client/elicitation): forms for decisions, and pages to visit.
package elicit
