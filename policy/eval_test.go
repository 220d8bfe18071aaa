package policy_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/policy"
)

func TestEval(t *testing.T) {
	e := load(t, user(`allow contains "c" if input.arguments.ask

ask contains "b" if input.arguments.ask

ask contains "a" if input.arguments.ask

obligations contains {"type": "timeout", "after": "5s"} if input.arguments.ask

obligations contains {"sandbox": {"kv": false}} if input.arguments.narrow

obligations contains {"type": "unknown"} if input.arguments.broken

labels contains "untrusted" if input.arguments.ask
`), policy.Options{Grants: []policy.Grant{{To: []string{"role:dev"}, Resources: []string{"file:///srv/*"}}}})
	tests := map[string]struct{ input, want, error string }{
		"asked": {
			input: `{"action":"tools/call","principal":{"id":"alice","roles":[]},"tool":{"name":"a__b"},"arguments":{"ask":true}}`,
			want:  `{"effect":"ask","reasons":["a","b"],"obligations":[{"after":"5s","type":"timeout"}],"labels":["untrusted"]}`,
		},
		"a resource": {
			input: `{"action":"resources/read","principal":{"id":"alice","roles":["dev"]},"resource":{"uri":"file:///srv/a"}}`,
			want:  `{"effect":"allow","reasons":["file:///srv/* is granted to role:dev"],"obligations":[],"labels":[]}`,
		},
		"a host call": {
			input: `{"action":"sandbox/file","principal":{"id":"alice","roles":[]},"tool":{"name":"a__b","sandboxed":true,"capabilities":{"dirs":[{"path":"/srv","write":false}]}},"request":{"op":"read","path":"/srv/a"}}`,
			want:  `{"effect":"allow","reasons":["the module is granted the directory to read"],"obligations":[],"labels":[]}`,
		},
		"nothing allows a host call": {
			input: `{"action":"sandbox/file","principal":{"id":"alice","roles":[]},"tool":{"name":"a__b","sandboxed":true,"capabilities":{}},"request":{"op":"read","path":"/srv/a"}}`,
			want:  `{"effect":"deny","reasons":["no policy allows sandbox/file of a__b for alice"],"obligations":[],"labels":[]}`,
		},
		"a narrowing": {
			input: `{"action":"tools/call","principal":{"id":"alice","roles":[]},"tool":{"name":"a__b","sandboxed":true,"capabilities":{}},"arguments":{"narrow":true}}`,
			want:  `{"effect":"allow","reasons":["the tool is sandboxed and holds no capability"],"obligations":[{"sandbox":{"kv":false}}],"labels":[]}`,
		},
		"nothing allows": {
			input: `{"action":"tools/call","principal":{"id":"alice","roles":[]},"tool":{"name":"a__b"}}`,
			want:  `{"effect":"deny","reasons":["no policy allows a__b for alice"],"obligations":[],"labels":[]}`,
		},
		"nothing at all": {
			input: `{}`,
			want:  `{"effect":"deny","reasons":["no policy allows this for nobody"],"obligations":[],"labels":[]}`,
		},
		"an empty action": {
			input: `{"action":""}`,
			want:  `{"effect":"deny","reasons":["no policy allows this for nobody"],"obligations":[],"labels":[]}`,
		},
		"no JSON":       {input: `{"a":1,"a":2}`, error: "input: JSON at byte"},
		"no object":     {input: `[]`, error: "expected a JSON object"},
		"roles no list": {input: `{"action":"tools/call","principal":{"id":"a","roles":"dev"},"tool":{"name":"a__b"}}`, error: "policy: "},
		"undecided": {
			input: `{"action":"tools/call","principal":{"id":"a","roles":[]},"tool":{"name":"a__b","sandboxed":true,"capabilities":{}},"arguments":{"broken":1}}`,
			error: "unknown type of obligation",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := policy.Eval(t.Context(), e, []byte(tt.input))
			if tt.error != "" {
				if err == nil || !strings.Contains(err.Error(), tt.error) || got != nil {
					t.Errorf("Eval = %s, %v; want an error with %q", got, err, tt.error)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("Eval = %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// FuzzEval: whatever the input is, there is a decision of the documented shape
// or an error.
func FuzzEval(f *testing.F) {
	f.Add([]byte(`{"action":"tools/call","principal":{"id":"alice","roles":["dev"]},"tool":{"name":"a__b"},"arguments":{"n":1e400,"s":"\ud83d\ude00"}}`))
	f.Add([]byte(`{"action":"tools/call","principal":{"id":7,"roles":{}},"tool":[]}`))
	f.Add([]byte(`{"action":"prompts/get","principal":{"id":"","roles":[1,null]},"prompt":{"name":"\u0000"}}`))
	f.Add([]byte(`{"action":"sandbox/http","principal":{"id":"a"},"tool":{"sandboxed":true,"capabilities":{"http":[{"origin":1,"methods":{},"path":[]}]}},"request":{"port":"1"}}`))
	f.Add([]byte(`[`))
	e := load(f, user(`deny contains "x" if not startswith(input.arguments.s, "p")

ask contains "y" if walk(input, [_, 1])
`), policy.Options{Grants: []policy.Grant{{To: []string{"*"}, Tools: []string{"a*"}, Prompts: []string{"*"}}}})
	f.Fuzz(func(t *testing.T, input []byte) {
		got, err := policy.Eval(t.Context(), e, bytes.Clone(input))
		if err != nil {
			if strings.Contains(err.Error(), "panic") {
				t.Fatal(err)
			}
			return
		}
		var d struct {
			Effect  gate.Effect
			Reasons []string
		}
		if err := json.Unmarshal(got, &d); err != nil || len(d.Reasons) == 0 {
			t.Fatalf("%s: %v", got, err)
		}
		switch d.Effect {
		case gate.Allow, gate.Ask, gate.Deny:
		default:
			t.Fatalf("effect %q", d.Effect)
		}
	})
}
