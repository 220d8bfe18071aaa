package lock

import (
	"cmp"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
)

// A Key names what is pinned: a thing of a server, by the name it has there.
type Key struct {
	Server string `json:"server"`
	Kind   Kind   `json:"kind"`
	Name   string `json:"name,omitempty"`
}

// compare orders keys by server, kind and name.
func (k Key) compare(o Key) int {
	_, a := k.Kind.of()
	_, b := o.Kind.of()
	return cmp.Or(strings.Compare(k.Server, o.Server), cmp.Compare(a, b), strings.Compare(k.Name, o.Name))
}

// String returns the name by which people and commands know it: server__tool, the
// server with the kind of what has no name, and all three of anything else.
func (k Key) String() string {
	how, _ := k.Kind.of()
	switch {
	case k.Kind == Tool:
		return k.Server + "__" + k.Name
	case how.single:
		return k.Server + " " + string(k.Kind)
	default:
		return k.Server + " " + string(k.Kind) + " " + k.Name
	}
}

// A Pin is one digest of a thing.
type Pin struct {
	Key
	Digest string `json:"digest"`          // hex SHA-256, as of [gate.Doc.Digest]
	Parts  Parts  `json:"parts,omitempty"` // what it was made of; empty if that is not known
}

func (p Pin) compare(o Pin) int {
	return cmp.Or(p.Key.compare(o.Key), strings.Compare(p.Digest, o.Digest))
}

// An Item is a thing as a server declares it.
type Item struct {
	Kind Kind
	Name string
	Doc  gate.Doc // the definition, as declared
	// Module is the name of the module in which a tool runs, an item of the same server;
	// "" if it is in none that is pinned.
	Module string
	// Own things are part of the gateway, and as good as approved.
	Own bool
	// Asks says that a person has to approve the thing: that it was there when its server was
	// first seen is not enough.
	Asks bool
}

func (i Item) key(server string) Key { return Key{server, i.Kind, i.Name} }

func (i Item) pin(server string) Pin { return Pin{i.key(server), i.Doc.Digest(), partsOf(i.Doc)} }
