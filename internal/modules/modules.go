package modules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/manifest"
	"github.com/wasmgate/wasmgate/internal/modules/artifact"
	"github.com/wasmgate/wasmgate/sandbox"
)

// A Reader reads modules.
type Reader struct {
	// Dir is the folder in which what comes from registries is kept.
	Dir string
	Log *slog.Logger
}

// tools reads a WASM module with tools, and the manifest next to it if there is one.
func (r Reader) tools(ctx context.Context, m config.Module) (gateway.Module, error) {
	module, err := r.read(ctx, m)
	if err != nil || m.Path == "" {
		return module, err
	}
	if module.Config.Manifest, err = r.manifest(m, module.WASM); err != nil {
		return gateway.Module{}, err
	}
	if module.Config.Manifest != nil { // which no digest of the module covers
		module.Named = false
	}
	return module, nil
}

// read reads a WASM module.
func (r Reader) read(ctx context.Context, m config.Module) (gateway.Module, error) {
	if m.Fault != "" {
		return gateway.Module{}, errors.New(m.Fault)
	}
	wasm, err := r.fetch(ctx, m)
	if err != nil {
		return gateway.Module{}, err
	}
	signer, err := r.signer(ctx, m, wasm)
	if err != nil {
		return gateway.Module{}, err
	}
	if sum := sha256.Sum256(wasm); m.SHA256 != "" && m.SHA256 != hex.EncodeToString(sum[:]) {
		return gateway.Module{}, fmt.Errorf("%s has SHA-256 %x, not the configured one; if it is the module that you mean, write that as its sha256", m.Path+m.Ref, sum)
	}
	mc := sandbox.ModuleConfig{
		Name: m.ID, Isolation: sandbox.Isolation(m.Isolation), Args: m.Args,
		Limits: sandbox.Limits{
			Timeout: m.Timeout, Memory: m.Memory, Fuel: uint64(m.Fuel), Output: m.Output, Log: m.Log,
			HostCalls: m.HostCalls, Concurrent: m.Concurrent, Files: m.FilesBytes,
		},
	}
	return gateway.Module{Server: m.Server, Groups: m.Groups, WASM: wasm, Config: mc, Named: m.SHA256 != "" || m.Ref != "", Development: m.Dev, Source: m.Path + m.Ref, Signer: signer, Declared: m.Declared, Grant: grant(m), Replay: recording.Mode(m.Replay)}, nil
}

// All reads the modules of a configuration. One that cannot be read, or is another
// one than the operator has named, is broken; nothing of it is run.
func (r Reader) All(ctx context.Context, c *config.Config) []gateway.Module {
	var all []gateway.Module
	for _, m := range c.Tools {
		if m.Ref == config.EmbeddedTools {
			continue // see [config.Config.EmbeddedTools]
		}
		module, err := r.tools(ctx, m)
		if err != nil {
			module = gateway.Module{Server: m.Server, Config: sandbox.ModuleConfig{Name: m.ID}, Broken: err.Error(), Development: m.Dev}
		}
		all = append(all, module)
	}
	return all
}

// Secrets are those that the modules of a configuration can be granted.
func Secrets(c *config.Config) ([]dial.Secret, error) {
	var all []dial.Secret
	for _, b := range c.Secrets {
		if b.Fault != "" {
			continue // as are the modules that are granted it
		}
		secret, err := dial.NewSecret(b.Name, string(b.Value), b.Origin)
		if err != nil {
			return nil, fmt.Errorf("secrets.%s: %w", b.Name, err)
		}
		all = append(all, secret)
	}
	return all, nil
}

// Files are those of a configuration's modules, and of the manifests and signatures next to
// them.
func Files(c *config.Config) (files []string) {
	add := func(m config.Module) {
		if m.Path != "" {
			files = append(files, m.Path, manifest.File(m.Path))
		}
		if m.Verify != nil {
			files = append(files, m.Verify.Key, bundleFile(m), manifestBundle(m))
		}
	}
	for _, m := range c.Tools {
		add(m)
	}
	for _, s := range c.Servers {
		if s.Enabled {
			add(s.Module)
		}
	}
	return files
}

// Digests are those of the modules that are servers, as they are in use.
type Digests struct {
	mu sync.Mutex
	by map[string][sha256.Size]byte
}

// Changed keeps the digest of a server's module, and reports whether it is another one.
func (d *Digests) Changed(server string, wasm []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := sha256.Sum256(wasm)
	if d.by == nil {
		d.by = make(map[string][sha256.Size]byte)
	}
	was := d.by[server]
	d.by[server] = sum
	return was != sum
}

// Forget has any module of a server be another one.
func (d *Digests) Forget(server string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.by, server)
}

// Guest reads the module that is a server.
func (r Reader) Guest(ctx context.Context, s config.Server) (gateway.Guest, error) {
	m := s.Module
	m.ID = s.ID
	module, err := r.read(ctx, m)
	if err != nil {
		return gateway.Guest{}, err
	}
	env := make(map[string]string, len(s.Env))
	for k, v := range s.Env {
		env[k] = string(v)
	}
	module.Config.Grants.Config = env
	return gateway.Guest{WASM: module.WASM, Args: s.Args, Named: module.Named, Development: module.Development, Config: module.Config}, nil
}

// IsServer reports whether a server is a module.
func IsServer(s config.Server) bool { return s.Module.Path+s.Module.Ref != "" }

// fetch returns the bytes of a module.
func (r Reader) fetch(ctx context.Context, m config.Module) ([]byte, error) {
	switch m.Ref {
	case "":
		return os.ReadFile(m.Path)
	case config.EmbeddedFiles:
		return sandbox.EmbeddedFiles()
	}
	return r.Fetch(ctx, m.Ref)
}

// Fetch returns the bytes of a module in a registry, from the cache in the folder if they
// are there.
func (r Reader) Fetch(ctx context.Context, ref string) ([]byte, error) {
	store, err := r.artifacts()
	if err != nil {
		return nil, err
	}
	module, err := store.Fetch(ctx, ref)
	return module.Bytes, err
}

// Push puts a module into a registry, oci://registry/repository:tag, and returns the reference that
// names exactly these bytes.
func (r Reader) Push(ctx context.Context, tag string, wasm []byte) (ref string, err error) {
	to, err := artifact.ParseTag(tag)
	if err != nil {
		return "", err
	}
	store, err := r.artifacts()
	if err != nil {
		return "", err
	}
	to, err = store.Push(ctx, to, wasm)
	return to.String(), err
}

// artifacts fetches from registries, and pushes to them.
func (r Reader) artifacts() (*artifact.Store, error) {
	return artifact.New(artifact.Config{
		Dir: filepath.Join(r.Dir, "artifacts"), Log: r.Log,
		DialContext: dial.New(dial.Options{}).Dialer(true), // registries of one's own network are usual
	})
}

// grant is what the configuration grants a module.
func grant(m config.Module) gateway.Grant {
	g := gateway.Grant{Secrets: m.Grant.Secrets, KV: m.Grant.KV, Config: make(map[string]string)}
	for _, h := range m.Grant.HTTP {
		g.HTTP = append(g.HTTP, dial.Rule(h))
	}
	for _, d := range m.Grant.Dirs {
		g.Dirs = append(g.Dirs, sandbox.Dir(d))
	}
	for k, v := range m.Config {
		g.Config[k] = string(v)
	}
	return g
}
