// Package listing makes what a server lists safe to be shown: definitions are sanitized,
// names made such as clients accept, schemas compiled and texts looked through (tools,
// schemas, scan), and so are prompts, resources and templates (features, templates), and
// methods that MCP does not have (methods). What cannot be made safe is quarantined alone,
// with a [status.Note] for the operator.
//
// [options.Tools] say how, and [options.Groups] in which groups of the operator a thing is.
package listing
