package options

import (
	"context"
	"net/http"

	"github.com/wasmgate/wasmgate/gate"
)

// Peers are the other gateways of a database. What is at one of them has an id that names it.
type Peers interface {
	// Node is the name of this gateway.
	Node() string
	// Forward has the gateway of a name answer a request, whose body was read. Nothing was answered
	// if there is none of that name any more, nor with an error, which the client may read. Nothing was sent
	// with one that has a method Unsent.
	Forward(w http.ResponseWriter, r *http.Request, node string, body []byte) (gone bool, err error)
	// Home is the gateway that has what the requests of an owner leave behind. Now asks for what holds
	// at the moment, and not a few seconds ago.
	Home(ctx context.Context, of gate.Owner, now bool) (node string, err error)
	// Drains reports whether this gateway gives its homes away: others answer what clients begin.
	Drains() bool
	// Forwarded reports whether another gateway has forwarded a request here, and Moved answers it so that
	// it forwards it to the home.
	Forwarded(r *http.Request) bool
	Moved(w http.ResponseWriter)
}

// A Document is a small document that several gateways share. Use it from several goroutines.
type Document interface {
	// Name says in messages where the document is.
	Name() string
	// Load returns the document and its generation, which differs from that of any version
	// before. If that is the generation seen already, raw is nil. A document that was never
	// written is nil, too, in generation 0.
	Load(ctx context.Context, seen uint64) (raw []byte, generation uint64, err error)
	// Change puts what f returns in place of the document, with no other change in between.
	// Nil removes it. After an error of f, which Change returns, the document is as it was.
	// When Change has returned, no gateway admits a call by what was there before.
	Change(ctx context.Context, f func(raw []byte) ([]byte, error)) error
}
