package provenance

import (
	"strings"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/internal/address"
)

// maxID bounds an id in bytes, maxIDWords in words.
const maxID, maxIDWords = 256, 2

// isID reports whether a text can be an id. One with an address in it says to whom or where
// by itself. A long number can be both, and counts as an id.
func isID(text string) bool {
	if len(text) > maxID || len(strings.Fields(text)) > maxIDWords {
		return false
	}
	id := true
	address.In(text, func(a string) { id = id && !strings.ContainsAny(a, "@/") })
	return id
}

// Recipient is the kind of ids to which one talks, such as channels and users. Others begin with
// it: recipient.channel.
const Recipient = "recipient"

// isRecipient reports whether one talks to ids of a kind, so that a policy may take a listed one
// for a destination.
func isRecipient(kind string) bool {
	return kind == Recipient || strings.HasPrefix(kind, Recipient+".")
}

// isContact reports whether a text can be an id to which one talks. An address that somebody has
// written from would reach him anywhere, and is none.
func isContact(text string) bool {
	return isID(text) && (digits(text) || address.Of(text) == "")
}

func idOf(server, kind, text string) string { return idForm + server + "\x00" + kind + "\x00" + text }

// TextOf is what ids are compared by.
func TextOf(leaf doc.Doc) string {
	if leaf.Kind() == doc.Number {
		return string(leaf.Raw())
	}
	return plain(leaf.Text())
}
