// Package inquiry shows people what they are asked before a call passes, the same parts in each
// channel: as text for terminals and logs, and as text that a client may render as Markdown or HTML.
package inquiry
