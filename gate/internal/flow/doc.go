// Package flow knows where values came from: what labels say of tools and of places in
// results, which values a session has met where, and what of a result is not what its tool
// is said to return. It decides nothing. Package gate gives its types their public names.
package flow

import "github.com/wasmgate/wasmgate/gate/internal/doc"

type (
	// A Doc is a JSON value.
	Doc = doc.Doc
	// A Kind tells which of JSON's types a [Doc] has.
	Kind = doc.Kind
)

// The kinds that are told apart here.
const (
	Null   = doc.Null
	Bool   = doc.Bool
	Number = doc.Number
	String = doc.String
	Array  = doc.Array
	Object = doc.Object
)
