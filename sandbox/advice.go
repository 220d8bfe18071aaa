package sandbox

import (
	"errors"
	"strings"

	"github.com/wasmgate/wasmgate/sandbox/internal/foreign"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// missing reports whether there is nothing here by this import's name, or a function of
// WASI of another form: there are versions of some.
func (r *Runtime) missing(i rewrite.Import) bool {
	return !i.Function || r.host[i.Module][i.Name] == nil || r.otherForm(i)
}

func (r *Runtime) otherForm(i rewrite.Import) bool {
	here := r.host[i.Module][i.Name]
	return here != nil && ofWASI(i) && (len(here.ParamTypes()) != i.Params || len(here.ResultTypes()) != i.Results)
}

func readsInput(i rewrite.Import) bool { return ofWASI(i) && i.Name == "fd_read" }

func exits(i rewrite.Import) bool { return ofWASI(i) && i.Name == "proc_exit" }

func ofWASI(i rewrite.Import) bool { return i.Module == wasiModule || i.Module == unstableModule }

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
		if a := foreign.Advice(decoded.Imports, r.missing); a != "" {
			problems = append(problems, a)
		}
	}
	return problems
}
