// Package input builds the document that policies decide on, and describes its shape.
//
// Each object of the document is a table of members. A [Builder] makes values of the tables,
// and their shapes, the JSON Schema and the reference table follow from the same tables, so
// that no member can be in the input without being in its description.
package input
