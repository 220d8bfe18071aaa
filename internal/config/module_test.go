package config_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Each bad module or secret gets exactly these problems.
func TestModuleProblems(t *testing.T) {
	const at = "wasmgate.yaml:1: tools.t."
	tests := map[string]struct{ module, want string }{
		"an unknown part of a grant":       {`grant: {https: []}`, at + `grant.https: unknown key; did you mean "http"?`},
		"a grant that is true":             {`grant: true`, at + `grant: must be a mapping, not true or false`},
		"one origin for a list":            {`grant: {http: {origin: "https://a"}}`, at + `grant.http: must be a list, not a mapping`},
		"an origin alone":                  {`grant: {http: ["https://a"]}`, at + `grant.http[0]: must be a mapping, not text`},
		"no origin":                        {`grant: {http: [{methods: [GET]}]}`, at + `grant.http[0]: needs an origin, such as https://api.example.com`},
		"an origin with a path":            {`grant: {http: [{origin: "https://a/"}]}`, at + `grant.http[0].origin: "https://a/" is not an origin in lower case without a path, such as https://api.example.com`},
		"an origin in capitals":            {`grant: {http: [{origin: "https://A"}]}`, at + `grant.http[0].origin: "https://A" is not an origin in lower case without a path, such as https://api.example.com`},
		"an origin of another scheme":      {`grant: {http: [{origin: "ws://a"}]}`, at + `grant.http[0].origin: "ws://a" is not an origin in lower case without a path, such as https://api.example.com`},
		"an origin with a user":            {`grant: {http: [{origin: "https://u@a"}]}`, at + `grant.http[0].origin: "https://u@a" is not an origin in lower case without a path, such as https://api.example.com`},
		"every origin":                     {`grant: {http: [{origin: "*"}]}`, at + `grant.http[0].origin: "*" is not an origin in lower case without a path, such as https://api.example.com`},
		"an origin with the usual port":    {`grant: {http: [{origin: "https://a:443"}]}`, at + `grant.http[0].origin: "https://a:443" has the scheme's own port: remove the port`},
		"an origin with a large port":      {`grant: {http: [{origin: "https://a:70000"}]}`, at + `grant.http[0].origin: "https://a:70000" has no port from 1 to 65535`},
		"a method in small letters":        {`grant: {http: [{origin: "https://a", methods: [get]}]}`, at + `grant.http[0].methods[0]: "get" is not one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS`},
		"a method that opens a tunnel":     {`grant: {http: [{origin: "https://a", methods: [CONNECT]}]}`, at + `grant.http[0].methods[0]: "CONNECT" is not one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS`},
		"a path that is relative":          {`grant: {http: [{origin: "https://a", path: v1}]}`, at + `grant.http[0].path: "v1" is not the beginning of a path, such as /v1/, without .., ?, #, % and *`},
		"a path that leads out of itself":  {`grant: {http: [{origin: "https://a", path: /v1/../}]}`, at + `grant.http[0].path: "/v1/../" is not the beginning of a path, such as /v1/, without .., ?, #, % and *`},
		"a path with a star":               {`grant: {http: [{origin: "https://a", path: "/v1/*"}]}`, at + `grant.http[0].path: "/v1/*" is not the beginning of a path, such as /v1/, without .., ?, #, % and *`},
		"the same path twice":              {`grant: {http: [{origin: "https://a"}, {origin: "https://a", path: /}]}`, at + `grant.http[1]: grants the same path of the same origin twice: list all methods in one entry`},
		"a folder without its path":        {`grant: {dirs: [{write: true}]}`, at + `grant.dirs[0]: needs a path, the folder that is granted`},
		"a folder that is empty":           {`grant: {dirs: [{path: ""}]}`, at + `grant.dirs[0].path: "" is empty`},
		"the same folder twice":            {`grant: {dirs: [{path: /srv}, {path: "/srv/", write: true}]}`, at + `grant.dirs[1]: grants the same folder twice`},
		"a guest's path that is relative":  {`grant: {dirs: [{path: /srv, as: data}]}`, at + `grant.dirs[0].as: "data" is neither an absolute path without dots, such as /data, nor "."`},
		"a guest's path with dots":         {`grant: {dirs: [{path: /srv, as: /data/../x}]}`, at + `grant.dirs[0].as: "/data/../x" is neither an absolute path without dots, such as /data, nor "."`},
		"one path for two folders":         {`grant: {dirs: [{path: /srv}, {path: /etc, as: /srv}]}`, at + `grant.dirs[1]: is known to the module by the path of another folder`},
		"write in words":                   {`grant: {dirs: [{path: /srv, write: rw}]}`, at + `grant.dirs[0].write: must be true or false, not text`},
		"a secret that is near":            {`grant: {secrets: [APU]}`, at + `grant.secrets[0]: no secret is named "APU"; did you mean "API"?`},
		"a secret that is not there":       {`grant: {secrets: [API, OTHER]}`, at + `grant.secrets[1]: no secret is named "OTHER"`},
		"a secret twice":                   {`grant: {secrets: [API, API]}`, at + `grant.secrets[1]: "API" is listed twice`},
		"a secret with odd letters":        {`grant: {secrets: ["A P"]}`, at + `grant.secrets[0]: "A P" is not a name of a secret: use letters, digits, _ and -, such as API`},
		"a store in words":                 {`grant: {kv: tenant}`, at + `grant.kv: must be true or false, not text`},
		"an unknown isolation":             {`isolation: process`, at + `isolation: "process" is not one of call, instance, session`},
		"a configuration that is a list":   {`config: [a]`, at + `config: must be a mapping, not a list`},
		"a configuration with a list":      {`config: {a: [b]}`, at + `config.a: must be text, not a list`},
		"a configuration with NUL":         {`config: {a: "b\0"}`, at + `config.a: holds a NUL character`},
		"an unknown limit":                 {`limits: {outputs: 1MiB}`, at + `limits.outputs: unknown key; did you mean "output"?`},
		"no output":                        {`limits: {output: 0B}`, at + `limits.output: "0B" is not from 1KiB to 1GiB`},
		"a log without a unit":             {`limits: {log: 100}`, at + `limits.log: 100 has no unit: write 100MiB`},
		"no host calls":                    {`limits: {host_calls: 0}`, at + `limits.host_calls: "0" is not a whole number from 1 to 1000000`},
		"no calls at once":                 {`limits: {concurrent: 0}`, at + `limits.concurrent: "0" is not a whole number from 1 to 65536`},
		"more files than there can be":     {`limits: {files_bytes: 2048GiB}`, at + `limits.files_bytes: "2048GiB" is not from 1KiB to 1024GiB`},
		"everything at once, in its order": {`isolation: x, grant: {kv: 1, secrets: [NONE]}`, at + `isolation: "x" is not one of call, instance, session` + "\n" + at + "grant.kv: must be true or false, not a number\n" + at + `grant.secrets[0]: no secret is named "NONE"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := "tools: {t: {module: /, " + tt.module + "}}\nsecrets: {API: {value: x, origin: \"https://a\"}}\n"
			_, err := config.Parse("wasmgate.yaml", []byte(file), options(t.TempDir()))
			var ps tree.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("error is %v, not problems", err)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretProblems(t *testing.T) {
	tests := map[string]struct{ secret, want string }{
		"no origin":             {`API: {value: x}`, `secrets.API: needs an origin, the only one that it is sent to`},
		"no value":              {`API: {origin: "https://a"}`, `secrets.API: needs a value, such as "${API_TOKEN}"`},
		"a value alone":         {`API: x`, `secrets.API: must be a mapping, not text`},
		"an origin with a path": {`API: {value: x, origin: "https://a/v1"}`, `secrets.API.origin: "https://a/v1" is not an origin in lower case without a path, such as https://api.example.com`},
		"an empty value":        {`API: {value: "${EMPTY}", origin: "https://a"}`, `secrets.API.value: is empty, or holds a line break or another control character`},
		"a value of two lines":  {`API: {value: "${LINES}", origin: "https://a"}`, `secrets.API.value: is empty, or holds a line break or another control character`},
		"a name of odd letters": {`"A P": {value: x, origin: "https://a"}`, `secrets["A P"]: "A P" is not a name of a secret: use letters, digits, _ and -, such as API`},
		"an unknown key":        {`API: {value: x, origin: "https://a", hosts: []}`, `secrets.API.hosts: unknown key; known are origin, value`},
		"the same name twice":   {`API: {value: x, origin: "https://a"}, API: {value: y, origin: "https://b"}`, `secrets.API: given twice; first in line 1`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("wasmgate.yaml", []byte("secrets: {"+tt.secret+"}\n"), options(t.TempDir()))
			if err == nil || err.Error() != "wasmgate.yaml:1: "+tt.want {
				t.Errorf("got  %v\nwant wasmgate.yaml:1: %s", err, tt.want)
			}
		})
	}
}

// A secret that cannot arrive, or that others can read on the way, is allowed
// and worth knowing about.
func TestSecretWarnings(t *testing.T) {
	const file = `secrets:
  API: {value: x, origin: "https://a"}
  PLAIN: {value: x, origin: "http://a"}
  OWN: {value: x, origin: "http://localhost:8080"}
tools:
  t:
    module: /
    grant:
      http: [{origin: "http://a"}, {origin: "http://localhost:8080"}]
      secrets:
        - PLAIN
        - API
        - OWN
`
	c, err := config.Parse("wasmgate.yaml", []byte(file), options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	want := []tree.Problem{
		{File: "wasmgate.yaml", Line: 3, Path: "secrets.PLAIN", Message: "plain http to another machine: the secret can be read on the way"},
		{File: "wasmgate.yaml", Line: 12, Path: "tools.t.grant.secrets[1]", Message: "the secret is sent to https://a alone, which the module is not granted"},
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
