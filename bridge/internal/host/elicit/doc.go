// Package elicit has the words in which clients ask their person something (MCP,
// client/elicitation): forms for decisions, and pages to visit.
package elicit
