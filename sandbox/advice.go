package sandbox

import (
	"errors"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/internal/foreign"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// needsManifest is the advice for a module without one.
const needsManifest = "it has no manifest: `wasmgate sandbox manifest MODULE` writes a first one; an MCP server (servers.NAME.module) needs none"

// refusal says why a module does not load, and what it would take.
func (r *Runtime) refusal(decoded *rewrite.Module, err error) []string {
	for { // without the words around it that name the module
		inner := errors.Unwrap(err)
		if inner == nil || !strings.HasPrefix(err.Error(), "sandbox: compile module") {
			break
		}
		err = inner
	}
	problems := []string{err.Error()}
	if decoded != nil {
		if a := foreign.Advice(decoded.Imports, r.host.missing); a != "" {
			problems = append(problems, a)
		}
	}
	return problems
}
