package edit_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/dirs"
	"github.com/wasmgate/wasmgate/internal/config/edit"
)

// undeclared leaves out the digests of what was written, where a test compares what was read.
var undeclared = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Declared" }, cmp.Ignore())

// TestRenderLosesNothing: whatever a server can be given is there again after it was
// written and read. A field that none of the servers here has is a mistake of this test.
func TestRenderLosesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.wasm", "key.pub"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	usual := config.Server{Transport: "auto", Timeout: 5 * time.Minute, Enabled: true, Prefix: true, Schema: "declared", Output: "enforce"}
	child, module, remote := usual, usual, usual
	child.ID, child.Command, child.Args, child.Cwd = "child", "npx", []string{"-y", "a: b"}, "/srv"
	child.Env = map[string]config.Secret{"A": "1", "B": ""}
	child.Confine = &config.Confine{
		Read: []string{"/r"}, Write: []string{"/w"}, Execute: []string{"/x"}, Connect: []uint16{80, 443}, DNS: true,
		Memory: 512 << 20, Processes: 7, Files: 99, CPU: time.Minute, BestEffort: true,
	}
	child.Origin = &config.Origin{Name: "io.github.acme/files", Version: "1.2.3", Registry: "/srv/registry", SHA256: strings.Repeat("0a", 32)}
	child.Protocol, child.Start, child.Timeout, child.Health = "2025-11-25", 5*time.Minute, time.Minute, config.HealthOff
	child.Timeouts = []config.ToolTimeout{{Pattern: "b", Timeout: time.Second}, {Pattern: "a*", Timeout: 2 * time.Minute}}
	child.Sessions, child.Retry, child.Retries, child.RetryWait, child.Concurrent, child.Required = "shared", "idempotent", 4, 2*time.Second, 3, true
	child.Groups, child.Methods, child.Lists = []string{"office", "b"}, []string{"acme/x"}, "trusted"
	child.Input, child.Inputs = "warn", []config.ToolMode{{Pattern: "b*", Mode: "enforce"}, {Pattern: "a", Mode: "coerce"}}
	child.Schema, child.Repair, child.Output, child.Sanitize, child.Replay = "normalized", "off", "warn", "code", "live"
	child.Apps, child.Skills = &config.Apps{Mode: "on"}, &config.Skills{Mode: "off"}
	child.Replays = []config.ToolMode{{Pattern: "write_*", Mode: "must_stub"}}
	module.ID, module.Module = "module", config.Module{
		Path: filepath.Join(dir, "a.wasm"), SHA256: strings.Repeat("a", 64), Verify: &config.SignedBy{Key: filepath.Join(dir, "key.pub"), Bundle: "/b"},
		ModuleLimits: config.ModuleLimits{Timeout: time.Second, Memory: 64 << 20, Fuel: 5, Output: 1 << 10, Log: 2000, HostCalls: 4, Concurrent: 2, FilesBytes: 1 << 30},
	}
	fetched := usual
	fetched.ID, fetched.Module = "fetched", config.Module{
		Ref: "oci://example.com/a@sha256:" + strings.Repeat("b", 64), Verify: &config.SignedBy{Key: filepath.Join(dir, "key.pub"), SignedAs: "example.com/b"},
	}
	remote.ID, remote.URL, remote.Private, remote.Transport, remote.Enabled, remote.Prefix = "remote", "https://example.com/?a=b", true, "sse", false, false
	remote.Skills = &config.Skills{Trusted: true, Dynamic: true, Widening: "refuse"}
	remote.Apps = &config.Apps{Connect: []string{"https://a.example.com", "https://*.b.example.com"}, Resources: []string{"https://c.example.com"}, Frames: []string{"https://d.example.com"}, Base: []string{"http://localhost:1"}, Permissions: []string{"camera"}, Domain: true, Pin: "policy"}
	remote.Headers, remote.Health = map[string]config.Secret{"X-A": ": "}, time.Minute
	remote.Auth = &config.ServerAuth{Mode: "oauth", ClientID: "me", ClientSecret: "hm", Issuer: "https://login.example.com", Scopes: []string{"read", "a:b"}, Shared: true, Discovery: "Bearer x"}
	keyed := usual
	keyed.ID, keyed.URL = "keyed", "https://example.com/"
	keyed.Auth = &config.ServerAuth{Mode: "client_credentials", ClientID: "me", PrivateKey: filepath.Join(dir, "key.pub"), KeyID: "k1"}
	exchanged := keyed
	exchanged.ID = "exchanged"
	exchanged.Auth = &config.ServerAuth{Mode: "token_exchange", ClientID: "me", ClientSecret: "hm", Issuer: "https://login.example.com", Actor: true}
	vouched := keyed
	vouched.ID = "vouched"
	vouched.Auth = &config.ServerAuth{
		Mode: "id_jag", ClientID: "me", Issuer: "https://auth.example.com", IDP: "https://login.example.com",
		IDPClient: config.Client{ID: "me", Secret: "hm"},
	}
	signed := vouched
	signed.ID = "signed"
	signed.Auth = &config.ServerAuth{
		Mode: "id_jag", ClientID: "me", Issuer: "https://auth.example.com", IDP: "https://login.example.com",
		IDPClient: config.Client{ID: "me", PrivateKey: filepath.Join(dir, "key.pub"), KeyID: "k1"},
	}

	folder := usual
	folder.ID, folder.Folder = "folder", filepath.Join(dir, "skills")

	want := []config.Server{child, module, fetched, remote, keyed, exchanged, vouched, signed, folder}
	text := edit.Render(want)
	groups := "groups: {office: [a], b: [c]}\n"
	c, err := config.Parse(filepath.Join(dir, "wasmgate.yaml"), append([]byte(groups), text...), config.Options{Dirs: dirs.DirsOf("linux", dir, func(string) string { return "" })})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if diff := cmp.Diff(want, c.Servers, undeclared); diff != "" {
		t.Errorf("what is read back differs (-want +got):\n%s\n%s", diff, text)
	}
	said := make(map[string]bool)
	for _, s := range want {
		changed("", reflect.ValueOf(s), reflect.ValueOf(usual), said)
	}
	for name, ok := range said {
		if !ok {
			t.Errorf("no server of this test has another %s than usual", name)
		}
	}
	if len(said) < 60 {
		t.Errorf("only %d fields were looked at: %v", len(said), slices.Sorted(maps.Keys(said)))
	}
}

// noKeys are no keys of a server: of a module that is one, Module says all but these.
var noKeys = []string{
	"Written", "Declared", "Module.Declared", "Fault", "Module.ID", "Module.Server", "Module.Groups", "Module.Replay", "Module.Grant", "Module.Config", "Module.Args", "Module.Isolation",
	"Module.MustSign", "Module.Fault", "Module.Dev",
}

// changed notes for each field, by its name, whether v has another value than usual.
func changed(name string, v, usual reflect.Value, said map[string]bool) {
	if slices.Contains(noKeys, name) {
		return
	}
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		v, usual = v.Elem(), reflect.Zero(v.Type().Elem())
	}
	if v.Kind() != reflect.Struct {
		said[name] = said[name] || !reflect.DeepEqual(v.Interface(), usual.Interface())
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i).Name
		if name != "" {
			f = name + "." + f
		}
		changed(f, v.Field(i), usual.Field(i), said)
	}
}
