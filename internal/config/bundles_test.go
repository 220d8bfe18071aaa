package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

// A text that begins as a key in PEM does.
const inline = config.PEM + "PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"

func TestBundles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "next"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(dir, "wasmgate.yaml"), `
policy:
  shadow: {packs: [grants, flow], paths: [next]}
  packs: [grants]
  timeout: 20ms
  bundles:
    - path: bundles/Acme.tar.gz
    - {path: folder/, name: team}
    - url: https://example.com/bundles/base.tar.gz?k=${TICKETS_TOKEN}
      headers: {Authorization: "Bearer ${TICKETS_TOKEN}"}
      private: true
      poll: 5m
      verify:
        scope: production
        algorithm: ES256
        keys:
          release: keys/release.pem
          next: |
            -----BEGIN PUBLIC KEY-----
            AAAA
            -----END PUBLIC KEY-----
`)
	c, err := config.Load(file, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Bundle{
		{Name: "acme", Path: filepath.Join(dir, "bundles/Acme.tar.gz"), Poll: time.Minute},
		{Name: "team", Path: filepath.Join(dir, "folder"), Poll: time.Minute},
		{
			Name: "base", URL: "https://example.com/bundles/base.tar.gz?k=t0p", Headers: map[string]config.Secret{"Authorization": "Bearer t0p"},
			Private: true, Poll: 5 * time.Minute,
			Verify: &config.Verify{
				Keys:  map[string]string{"release": filepath.Join(dir, "keys/release.pem"), "next": inline},
				Scope: "production", Algorithm: "ES256",
			},
		},
	}
	if diff := cmp.Diff(want, c.Policy.Bundles); diff != "" {
		t.Error(diff)
	}
	if shown := fmt.Sprint(c.Policy.Bundles[2]); strings.Contains(shown, "t0p") || !strings.Contains(shown, "https://example.com/bundles/base.tar.gz") {
		t.Errorf("shown as %s", shown)
	}
	// What the shadow leaves out is as in the policy, wherever it stands.
	shadow := c.Policy
	shadow.Packs, shadow.Paths, shadow.Shadow = []string{"grants", "flow"}, []string{filepath.Join(dir, "next")}, nil
	if diff := cmp.Diff(&shadow, c.Policy.Shadow); diff != "" {
		t.Error(diff)
	}
}

func TestBundleProblems(t *testing.T) {
	for name, tt := range map[string]struct{ bundle, want string }{
		"from nowhere":                  {`{name: a}`, "policy.bundles[0]: needs a path, or a url that begins with https://"},
		"from two places":               {`{path: a, url: "https://a.example/b"}`, "policy.bundles[0]: has a path and a url: give one of them"},
		"over plain http":               {`{url: "http://a.example/b"}`, `policy.bundles[0].url: "http://a.example/b" does not begin with https://`},
		"from a file, asked for often":  {`{path: a, poll: 5s}`, "policy.bundles[0].poll: has no effect without a url"},
		"from a file, with headers":     {`{path: a, headers: {A: b}}`, "policy.bundles[0].headers: has no effect without a url"},
		"from a file, private":          {`{path: a, private: true}`, "policy.bundles[0].private: has no effect without a url"},
		"asked for too often":           {`{url: "https://a.example/b", poll: 10ms}`, `policy.bundles[0].poll: "10ms" is not from 1s to 24h`},
		"with a condition of its own":   {`{url: "https://a.example/b", headers: {If-None-Match: x}}`, `policy.bundles[0].headers.If-None-Match: "If-None-Match" is set by the gateway`},
		"with a name that is a path":    {`{path: a, name: a/b}`, `policy.bundles[0].name: "a/b" is not the name of a bundle: lower-case letters, digits and . _ -`},
		"verified by no key":            {`{path: a, verify: {}}`, "policy.bundles[0].verify: needs keys: the id of each, and the path of a public key in PEM"},
		"verified by a shared secret":   {`{path: a, verify: {keys: {a: b}, algorithm: HS256}}`, `policy.bundles[0].verify.algorithm: "HS256" is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA`},
		"verified by an unknown word":   {`{path: a, verify: {keys: {a: b}, keyid: a}}`, `policy.bundles[0].verify.keyid: unknown key; did you mean "keys"?`},
		"of the same name as the other": {`{path: a/x.tar.gz}, {path: b/x.tar.gz}`, "policy.bundles[1]: has the name of another bundle, or its path or url ends as that of another: give it a name of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("wasmgate.yaml", []byte("policy: {bundles: ["+tt.bundle+"]}\n"), options(t.TempDir()))
			if err == nil || !strings.HasPrefix(err.Error(), "wasmgate.yaml:1: "+tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("problems: %v\nwant: wasmgate.yaml:1: %s", err, tt.want)
			}
		})
	}
}

func TestShadowProblems(t *testing.T) {
	for name, tt := range map[string]struct{ shadow, want string }{
		"a pack that is none":    {"{packs: [nonsense]}", `policy.shadow.packs[0]: "nonsense" is not a pack of this version`},
		"policies that are gone": {"{paths: [none]}", `policy.shadow.paths[0]: "none" does not exist`},
		"a shadow of its own":    {"{shadow: {}}", "policy.shadow.shadow: unknown key"},
		"a timeout of its own":   {"{timeout: 1s}", "policy.shadow.timeout: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("wasmgate.yaml", []byte("policy: {shadow: "+tt.shadow+"}\n"), options(t.TempDir()))
			if err == nil || !strings.HasPrefix(err.Error(), "wasmgate.yaml:1: "+tt.want) {
				t.Errorf("problems: %v\nwant: wasmgate.yaml:1: %s", err, tt.want)
			}
		})
	}
}
