package main

import (
	"os"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// asker is the manifest of a relay of HTTP requests: its arguments are the request, and
// its output the answer.
const asker = `tools:
  - name: t
    description: Asks.
    inputSchema: {type: object, properties: {method: {type: string}, url: {type: string}, headers: {type: object}, body: {type: string}}, required: [url], additionalProperties: false}
    outputSchema: {type: object, properties: {status: {const: 200}}, required: [status]}
wants:
  http: [{origin: "https://api.example.com", methods: [GET, POST]}]
  secrets: [API]
  kv: true
`

const askerCases = `secrets: {API: {value: made-up-value, origin: "https://api.example.com"}}
cases:
  - name: the secret arrives, and does not come back
    arguments: {url: "https://api.example.com/v1?a=b", method: GET, headers: {Authorization: ["Bearer {{secret:API}}"]}}
    http: [{url: "https://api.example.com/v1?a=b", sent: {headers: {Authorization: Bearer made-up-value}}, headers: {Content-Type: text/plain, X-Echo: made-up-value}, body: "you are made-up-value"}]
    want: {result: {status: 200, headers: {Content-Length: ["21"], Content-Type: [text/plain], X-Echo: ["{{secret:API}}"]}, body: "you are {{secret:API}}"}}
  - name: bodies are compared
    arguments: {url: "https://api.example.com/", method: POST, body: '{"a": 1}'}
    http: [{method: POST, url: "https://api.example.com/", sent: {body: '{"a":1}'}}]
  - name: arguments are validated
    arguments: {url: 5, other: true}
    want: {refused: refused_validate_input}
  - name: outputs are validated
    arguments: {url: "https://api.example.com/"}
    http: [{url: "https://api.example.com/", status: 404}]
    want: {refused: refused_validate_output}
  - name: another origin is denied
    arguments: {url: "https://other.example.com/"}
    want: {error: "denied: "}
`

func TestSandboxCheck(t *testing.T) {
	unraced.Long(t)
	wasmgate := program(t, bare(relay("http")))
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("m.yaml", asker)
	write("cases.yaml", askerCases)
	code, out, err := wasmgate("", "sandbox", "check", "m.wasm")
	if code != 0 || strings.Count(out, "ok  ") != 5 {
		t.Fatalf("exit code %d\n%s%s", code, out, err)
	}
	one := func(rest string) string { return "cases:\n  - name: one\n    " + rest }
	for name, tt := range map[string]struct {
		manifest, cases string
		code            int
		want            string
	}{
		"another result":              {asker, one("arguments: {url: \"https://api.example.com/\"}\n    http: [{url: \"https://api.example.com/\"}]\n    want: {result: {status: 201}}"), 3, "cases.yaml:2: it answers {\"status\":200"},
		"a refusal that is not meant": {asker, one("arguments: {}"), 3, "cases.yaml:2: refused_validate_input: "},
		"a refusal that does not come": {
			asker, one("arguments: {url: \"https://api.example.com/\"}\n    http: [{url: \"https://api.example.com/\"}]\n    want: {refused: refused_validate_input}"), 3, "want refused_validate_input",
		},
		"an answer that is not asked for": {asker, one("arguments: {url: \"https://other.example.com/\"}\n    want: {error: denied}\n    http:\n      - {url: \"https://api.example.com/\"}"), 3, "cases.yaml:6: it does not ask for GET https://api.example.com/"},
		"a request without an answer":     {asker, one("arguments: {url: \"https://api.example.com/x\"}\n    want: {refused: refused_validate_output}"), 3, "cases.yaml:2: it asks for GET https://api.example.com/x, and the case has no answer for that"},
		"another header": {
			asker, one("arguments: {url: \"https://api.example.com/\"}\n    http:\n      - {url: \"https://api.example.com/\", sent: {headers: {A: b}}}"), 3, "cases.yaml:5: it sends the header A: \"\", want \"b\"",
		},
		"another body": {
			asker, one("arguments: {url: \"https://api.example.com/\", method: POST, body: b}\n    http:\n      - {method: POST, url: \"https://api.example.com/\", sent: {body: a}}"), 3, "cases.yaml:5: it sends the body \"b\", want \"a\"",
		},
		"a secret that is not wished for": {asker, one("secrets: {OTHER: {value: a, origin: \"https://api.example.com\"}}"), 3, "wants.secrets"},
		"an unknown key":                  {asker, one("argumens: {}"), 2, "cases.yaml:3: cases[0].argumens: unknown key; did you mean \"arguments\"?"},
		"two names":                       {asker, "cases:\n  - {name: a}\n  - {name: a}", 2, "cases.yaml:3: cases[1]: has the same name as an earlier test case: choose another"},
		"a schema that is none":           {strings.Replace(asker, "const: 200", "type: numbr", 1), askerCases, 2, "m.yaml:5: tools[0].outputSchema.properties.status.type: tool t: "},
		"a manifest that is none":         {"tool: []", askerCases, 2, "m.yaml:1: tool: unknown key; did you mean \"tools\"?"},
		"no wish for HTTP":                {strings.Replace(asker, "http:", "dirs: []\n  #", 1), askerCases, 1, "it imports what it is not granted"},
		"a sample that fails": {
			asker + "snapshot: warm\nwarm: {tool: t, arguments: {url: 5, a: b}}\n", "cases: []", 3, "the sample call warm",
		},
	} {
		t.Run(name, func(t *testing.T) {
			write("m.yaml", tt.manifest)
			write("cases.yaml", tt.cases)
			code, out, err := wasmgate("", "sandbox", "check", "m.wasm")
			if code != tt.code || !strings.Contains(out+err, tt.want) {
				t.Errorf("exit code %d, want %d and %s\n%s%s", code, tt.code, tt.want, out, err)
			}
		})
	}
	write("m.yaml", strings.Replace(asker, "description: Asks.", "description: ''", 1))
	write("cases.yaml", one("arguments: {}\n    want: {refused: refused_validate_input}"))
	code, out, err = wasmgate("", "sandbox", "check", "m.wasm", "--json")
	for _, want := range []string{`"name": "one"`, `"ok": true`, `"line": 2`, "tool t has no description"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %s in %s%s", code, want, out, err)
		}
	}
	write("m.yaml", strings.Replace(asker, "tools:\n", "limits: {memory: 4GiB}\ntools:\n  - {name: other, description: x, inputSchema: {type: object}, outputSchema: {type: array}}\n", 1))
	code, _, err = wasmgate("", "sandbox", "check", "m.wasm")
	for _, want := range []string{"no case calls tool other", "tool other has an outputSchema of another type than object", "only the configuration can allow (limits: {memory: 4096MiB})"} {
		if !strings.Contains(err, want) {
			t.Errorf("exit code %d, no %q in %s", code, want, err)
		}
	}
	write("m.yaml", asker)
	code, _, err = wasmgate(`{"url":5}`, "sandbox", "run", "m.wasm", "--wants", "--json")
	if code != 3 || !strings.Contains(err, `"code":"refused_validate_input"`) {
		t.Errorf("run: exit code %d, %s", code, err)
	}
	code, _, err = wasmgate(`{"url":"http://127.0.0.1:1/"}`, "sandbox", "run", "m.wasm", "--wants")
	if code != 1 || !strings.Contains(err, "the tool reports an error") {
		t.Errorf("run: exit code %d, %s", code, err)
	}
}

// Values and folders of a case are its own: nothing of one is there in the next, or in
// the folder that was copied.
func TestSandboxCheckIsApart(t *testing.T) {
	unraced.Long(t)
	wasmgate := program(t, bare(relay("kv")))
	manifest := "tools: [{name: t, description: Keeps., inputSchema: {type: object}}]\nwants: {kv: true}\n"
	cases := `cases:
  - {name: set, arguments: {op: set, key: a, value: b}}
  - {name: not there, arguments: {op: get, key: a}, want: {result: {found: false, value: ""}}}
  - {name: there, kv: {a: c}, arguments: {op: get, key: a}, want: {result: {found: true, value: c}}}
`
	for name, text := range map[string]string{"m.yaml": manifest, "cases.yaml": cases} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, err := wasmgate("", "sandbox", "check", "m.wasm"); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, out, err)
	}
}
