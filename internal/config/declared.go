package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// declares are the keys of a server that decide what runs, and how it is reached.
var declares = []string{
	"command", "args", "env", "env_from", "env_file", "cwd", "confine", "url", "private", "headers", "auth", "module", "sha256", "limits", "verify",
}

// declared is a digest of what a file says under some keys, nil for all, as it is written: of
// a variable, a secret or a path its name, so that neither the process nor the folder changes
// it. Read is what was read from files that are named there.
func declared(n *tree.Node, keys []string, read map[string]Secret) string {
	h := sha256.New()
	writeNode(h, n, keys)
	for _, name := range slices.Sorted(maps.Keys(read)) {
		fmt.Fprintf(h, "%q=%q;", name, string(read[name]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeNode(h hash.Hash, n *tree.Node, keys []string) {
	if n == nil {
		return
	}
	fmt.Fprintf(h, "%d %q(", n.Kind, n.Text)
	for _, item := range n.Items {
		writeNode(h, item, nil)
		fmt.Fprint(h, ",")
	}
	fields := slices.SortedFunc(slices.Values(n.Fields), func(a, b tree.Field) int { return cmp.Compare(a.Key, b.Key) })
	for _, f := range fields {
		if keys == nil || slices.Contains(keys, f.Key) {
			fmt.Fprintf(h, "%q:", f.Key)
			writeNode(h, f.Value, nil)
		}
	}
	fmt.Fprint(h, ")")
}
