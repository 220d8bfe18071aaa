package config

import (
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// maxMethods bounds the methods of one server.
const maxMethods = 64

// methods reads the methods of a server that MCP does not have. Each is named as it is,
// since nothing lists them.
func (d *decoder) methods(to *[]string) reader {
	return func(n *tree.Node, path string) {
		d.texts(to, actions.CheckMethod)(n, path)
		if len(*to) > maxMethods {
			d.fail(n, path, "has %d methods; at most %d are allowed", len(*to), maxMethods)
		}
	}
}
