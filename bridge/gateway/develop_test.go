package gateway_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// A module in development needs no approval for another file, and one for another
// definition; what was trusted of it in production stays as it was.
func TestDevelopment(t *testing.T) {
	unraced.Long(t)
	dir := t.TempDir()
	one, described := saying(t, "m", "a", "first"), saying(t, "m", "a", "first")
	other := one
	other.WASM = append(slices.Clone(one.WASM), 0, 2, 1, 'a') // a custom section named a
	manifest := *described.Config.Manifest
	manifest.Tools = slices.Clone(manifest.Tools)
	manifest.Tools[0].Description = "It does something else."
	described.Config.Manifest = &manifest
	in := func(m gateway.Module) gateway.Module {
		m.Development = true
		return m
	}
	open := func(m gateway.Module) *gateway.Gateway {
		return start(t, gateway.Config{
			Recorder: new(records), Policy: granting("*"), Modules: []gateway.Module{m},
			Pins: &options.Pins{Mode: options.PinTrustFirst, File: filepath.Join(dir, lock.FileName), Dir: filepath.Join(dir, "pins")},
		})
	}
	expect := func(g *gateway.Gateway, what, want string) {
		t.Helper()
		if _, err := call(g, "local__a", "{}"); gate.Code(err) != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	expect(open(one), "first seen", "ok")
	g := open(in(one))
	expect(g, "in development", "ok")
	for _, step := range []struct {
		what, want string
		m          gateway.Module
	}{
		{"another file in development", "ok", in(other)},
		{"another definition", "refused_pin", in(described)},
		{"the definition as it was", "ok", in(one)},
		{"no longer in development", "ok", one},
		{"another file", "refused_pin", other},
	} {
		if err := g.SetModules(t.Context(), []gateway.Module{step.m}, nil); err != nil {
			t.Fatal(err)
		}
		expect(g, step.what, step.want)
	}
	expect(open(other), "another file, started anew", "refused_pin")
}
