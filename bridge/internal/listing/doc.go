// Package listing sanitizes what a server lists. It sanitizes definitions, gives tools names that
// clients accept, compiles schemas and scans texts (tools, names, definition, schemas, scan). It does the same for
// prompts, resources and templates (features, templates), and for methods that MCP does not have
// (methods). A definition that cannot be sanitized is quarantined; the others are not affected. A
// [status.Note] informs the operator.
//
// [options.Tools] say how to sanitize, and [options.Groups] in which groups of the operator a thing
// is.
package listing
