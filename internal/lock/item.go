package lock

import (
	"cmp"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A Kind says what is pinned.
type Kind string

// The kinds. Identity and Instructions are of the server itself, and have no name.
const (
	Identity     Kind = "identity"
	Instructions Kind = "instructions"
	Tool         Kind = "tool"
	Prompt       Kind = "prompt"
	Template     Kind = "template" // of resources
)

// order is that of the blocks of one server, and the set of all kinds.
var order = map[Kind]int{Identity: 0, Instructions: 1, Tool: 2, Prompt: 3, Template: 4}

// named reports whether things of the kind have names.
func (k Kind) named() bool { return k != Identity && k != Instructions }

// A Key names what is pinned: a thing of a server, by the name it has there.
type Key struct {
	Server string `json:"server"`
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"`
}

// compare orders keys by server, kind and name.
func (k Key) compare(o Key) int {
	return cmp.Or(strings.Compare(k.Server, o.Server), cmp.Compare(order[k.Kind], order[o.Kind]), strings.Compare(k.Name, o.Name))
}

// String returns the name by which people and commands know it: server__tool, the
// server with the kind of what has no name, and all three of anything else.
func (k Key) String() string {
	switch {
	case k.Kind == Tool:
		return k.Server + "__" + k.Name
	case !k.Kind.named():
		return k.Server + " " + string(k.Kind)
	default:
		return k.Server + " " + string(k.Kind) + " " + k.Name
	}
}

// A Pin is one approved digest of a thing.
type Pin struct {
	Key
	Digest string `json:"digest"` // hex SHA-256, as of [gate.Doc.Digest]
}

func (p Pin) compare(o Pin) int {
	return cmp.Or(p.Key.compare(o.Key), strings.Compare(p.Digest, o.Digest))
}

// An Item is a thing as a server declares it.
type Item struct {
	Kind Kind
	Name string
	Doc  gate.Doc // the definition, as declared
	// Own things are part of the gateway, and as good as approved.
	Own bool
}

func (i Item) pin(server string) Pin { return Pin{Key{server, i.Kind, i.Name}, i.Doc.Digest()} }
