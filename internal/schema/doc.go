// Package schema validates documents against the JSON Schemas that MCP servers
// declare for their tools, and reshapes those schemas for clients that
// understand little of JSON Schema.
//
// [Compile] makes a [Schema] of a document. The draft (4, 6, 7, 2019-09 or
// 2020-12) is what $schema says, and 2020-12 without it. A [Compiler] does the
// same and keeps what it has compiled. [Normalize] and [Repair] work on the text
// of a schema and check nothing.
//
// Schemas come from servers that are not trusted, so compiling answers with
// an error, which says what is wrong and where, to a schema that
//
//   - breaks the meta-schema of its draft, or declares another dialect,
//   - refers to another document: nothing is ever loaded, from the network or
//     from a disk (the meta-schemas of the five drafts are built in),
//   - refers to itself without going deeper into the document, which never
//     ends, or composes so many schemas for one place that checking takes
//     exponential time,
//   - has a pattern that is no RE2 expression, such as one with lookahead, or a
//     pattern so large that matching it is slow,
//   - is too large or too deep to be what describes a tool.
//
// Recursive schemas are fine as long as each turn goes deeper into the document.
// What one check may cost is bounded beforehand, by counting how often a part of
// the schema meets a part of the document. A million such meetings are allowed,
// which are a second or two of work; a document that needs more is refused
// unchecked.
//
// format, contentEncoding and contentMediaType assert nothing, whatever the
// draft. In 2020-12 that is the default; older drafts leave it to the
// implementation (draft-07 validation, section 7.2), and servers write formats
// that mean something only to them.
package schema
