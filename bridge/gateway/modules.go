package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/internal/guest"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/sandbox"
)

// unnamed is how much of its digest names a module without a name, in hex digits.
const unnamed = 12

// module compiles a module and returns its tools.
func (l *locals) module(ctx context.Context, m Module, secrets []dial.Secret) (*guest.Module, []options.LocalTool, error) {
	if m.Broken != "" {
		return nil, nil, errors.New(m.Broken)
	}
	grant, err := guest.Check(guest.Grant{HTTP: m.Grant.HTTP, Dirs: m.Grant.Dirs, Secrets: m.Grant.Secrets, KV: m.Grant.KV}, secrets)
	if err != nil {
		return nil, nil, err
	}
	m.Config.Grants = sandbox.Grants{HTTP: len(m.Grant.HTTP) > 0, KV: m.Grant.KV, Dirs: m.Grant.Dirs, Config: m.Grant.Config}
	code, err := l.machine.runtime.Compile(ctx, m.WASM, m.Config)
	if err != nil {
		return nil, nil, err
	}
	server := cmp.Or(m.Server, product.LocalServer)
	runs, err := runs(m, code.Manifest())
	if err != nil {
		return nil, nil, errors.Join(err, code.Close(ctx))
	}
	config, err := moduleConfig(m, code.Manifest())
	if err != nil {
		return nil, nil, errors.Join(err, code.Close(ctx))
	}
	c := guest.NewModule(server, code)
	tools, err := l.machine.reach().Tools(code.Tools(), grant, c.Enter)
	for i := range tools {
		if m.Named { // the definitions of others are pinned as they are
			tools[i].Definition = guest.SaysDirs(tools[i].Definition, m.Grant.Dirs)
		}
		tools[i].Origin, tools[i].Config = origin(m.Source, m.Signer), config
		tools[i].Module, tools[i].Foreign, tools[i].Groups = options.ToolModule{Name: cmp.Or(m.Config.Name, sum(m.WASM)[:unnamed]), Runs: runs}, !m.Named, m.Groups
		if m.Development {
			tools[i].Module, tools[i].Foreign = options.ToolModule{}, !l.developed(server, tools[i].Definition)
		}
	}
	return c, l.player.Stubbed(m.Replay, tools), err
}

// runs is what a module is pinned as: all that decides what runs. Of its manifest that is
// everything but the definitions of tools, which are pinned by themselves; what the operator
// has configured in the place of a member counts, and not the member.
func runs(m Module, manifest sandbox.Manifest) (gate.Doc, error) {
	if m.Config.Args != nil {
		manifest.Args = m.Config.Args
	}
	manifest.Isolation = cmp.Or(m.Config.Isolation, manifest.Isolation)
	b, err := json.Marshal(struct {
		sandbox.Manifest
		Tools any `json:"tools,omitempty"` // hides the manifest's
	}{Manifest: manifest})
	if err != nil {
		return gate.Doc{}, fmt.Errorf("its manifest: %w", err)
	}
	settings, err := gate.ParseDoc(b)
	if err != nil {
		return gate.Doc{}, fmt.Errorf("its manifest: %w", err)
	}
	return lock.ModuleOf(sum(m.WASM), settings), nil
}

// moduleConfig is what approvals of a module's tools are bound to.
func moduleConfig(m Module, manifest sandbox.Manifest) (string, error) {
	if m.Declared != "" {
		m.Config.Args, m.Grant = nil, Grant{}
	}
	runs, err := runs(m, manifest)
	return configOf(runs.Digest(), m.Declared, m.Grant, m.Config.Limits), err
}

// origin is what policies see as input.tool.origin.
func origin(source, signer string) gate.Doc {
	b, _ := json.Marshal(map[string]string{"source": source, "signer": signer}) // strings always marshal
	return gate.MustDoc(string(b))
}

// developed reports whether the definition of a tool in development is the first of its
// name that this gateway has seen.
func (l *locals) developed(server string, definition gate.Doc) bool {
	digest := definition.Digest()
	first, _ := l.inDevelopment.LoadOrStore(server+" "+definition.Get("name").Text(), digest)
	return first == digest
}

// forgetDeveloped forgets the tools of a module that was not put in use.
func (l *locals) forgetDeveloped(m *loaded) {
	for _, t := range m.tools {
		l.inDevelopment.CompareAndDelete(m.server()+" "+t.Definition.Get("name").Text(), t.Definition.Digest())
	}
}
