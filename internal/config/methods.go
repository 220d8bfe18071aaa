package config

import (
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// maxMethods bounds the methods of one server.
const maxMethods = 64

// methods reads the methods of a server that MCP does not have. Each is named as it is,
// since nothing lists them.
func methods(to *[]string) decode.Reader {
	return func(v decode.Value) {
		decode.Texts(to, actions.CheckMethod)(v)
		if len(*to) > maxMethods {
			v.Fail("has %d methods; at most %d are allowed", len(*to), maxMethods)
		}
	}
}
