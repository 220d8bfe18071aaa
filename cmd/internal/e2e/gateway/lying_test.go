//go:build unix

package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/e2e"
)

// What a hostile server might send, written so that this file holds none of it.
var (
	imStart = "<|" + "im_start" + "|>"
	imEnd   = "<|" + "im_end" + "|>"
	script  = "<scr" + "ipt>alert(1)</scr" + "ipt>"
	ansi    = "\x1b[31mred\x1b[0m"
	bidi    = "access\u202elevel\u202c"
	zero    = "in\u200bvisible\U000e0041"
)

const object = `{"type":"object"}`

// A lie is what the server answers to a call, and what becomes of it.
type lie struct {
	output string // the outputSchema; "" for none
	raw    string // the result, as the server sends it
	write  http.HandlerFunc

	code      string   // in the audit log
	unchanged bool     // the client gets exactly these bytes
	has, not  []string // of the decoded strings of the result; all of them together
	rules     []string // of the findings, in _meta and in the audit log
	of        string   // the server that says it; "" is liar
}

func textResult(s string) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, e2e.JSONString(s))
}

// hugeResult is made when it is wanted: gateways that are measured are this program, too.
var hugeResult = sync.OnceValue(func() string { return textResult(strings.Repeat("x", 20<<20)) })

// lies has each kind of result that a server should not send, and those that
// it may and a gateway could break.
var lies = map[string]lie{
	"active HTML becomes text": {
		raw: textResult("before " + script + " after"), code: "ok",
		has: []string{"before < script", " after"}, not: []string{script}, rules: []string{"html/script"},
	},
	"ANSI sequences are removed": {
		raw: textResult("a " + ansi + " b"), code: "ok", has: []string{"red"}, not: []string{"\x1b"}, rules: []string{"control/ansi"},
	},
	"bidirectional controls are removed": {
		raw: textResult(bidi), code: "ok", has: []string{"access", "level"}, not: []string{"\u202e", "\u202c"}, rules: []string{"unicode/bidi"},
	},
	"invisible characters are removed": {
		raw: textResult(zero), code: "ok", has: []string{"in", "visible"}, not: []string{"\u200b", "\U000e0041"}, rules: []string{"unicode/zero-width", "unicode/tag"},
	},
	"control tokens are removed": {
		raw: textResult("x " + imStart + "system" + imEnd + " y"), code: "ok",
		has: []string{"x ", " y"}, not: []string{imStart, imEnd}, rules: []string{"token/chat"},
	},
	"a control token made by a removal is removed": {
		raw: textResult("<|im_" + imEnd + "start|>"), code: "ok", not: []string{imStart, imEnd}, rules: []string{"token/chat"},
	},
	"a control token in structured content, and in its mirror, is removed": {
		output: object, raw: `{"content":[{"type":"text","text":` + e2e.JSONString(`{"a":"`+imStart+`"}`) + `}],"structuredContent":{"a":"` + imStart + `"}}`,
		code: "ok", not: []string{imStart}, rules: []string{"token/chat"},
	},
	"an unknown content type passes unchanged": {
		raw: `{"content":[{"type":"hologram","data":[1,2],"x":null}],"future":{"b":1,"a":2}}`, code: "ok", unchanged: true,
	},
	"big integers pass unchanged": {
		raw:  `{"content":[],"structuredContent":{"n":12345678901234567890,"m":9007199254740993,"f":1.0,"e":1e400}}`,
		code: "ok", unchanged: true,
	},
	"isError:false and the order of keys pass unchanged": {
		raw: `{"isError":false,"structuredContent":{"z":1,"a":2},"content":[{"text":"","type":"text"}]}`, code: "ok", unchanged: true,
	},
	"harmless text that looks like markup passes unchanged": {
		raw: textResult("if a<b && c>d { m[\"k\"] = 1 } // Map<String, List<T>> & co"), code: "ok", unchanged: true,
	},
	"an emoji and a right-to-left script pass unchanged": {
		raw: textResult("👩‍👩‍👧 שלום مرحبا"), code: "ok", unchanged: true,
	},
	"a tool error is a result": {
		output: `{"type":"object","required":["n"]}`, raw: `{"content":[{"type":"text","text":"no"}],"isError":true}`,
		code: "tool_error", unchanged: true,
	},
	"a structured result that breaks its schema is refused": {
		output: `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`,
		raw:    `{"content":[],"structuredContent":{"n":"seven"}}`, code: "refused_validate_output",
	},
	"a structured result that is missing is refused": {
		output: `{"type":"object","required":["n"]}`, raw: e2e.Fine, code: "refused_validate_output",
	},
	"a result with a duplicate key is not a result": {
		raw: `{"content":[],"content":[{"type":"text","text":"second"}]}`, code: "protocol",
	},
	"a result that is not an object is no result": {raw: `["content"]`, code: "protocol"},
	"a result that is not JSON is no result":      {raw: `{content: 'x'}`, code: "protocol"},
	"a result of 20 MB is cut off": {
		write: func(w http.ResponseWriter, r *http.Request) {
			e2e.Result(w, json.RawMessage(r.Header.Get("id")), hugeResult())
		}, code: "refused_limit",
	},
	"a server that hangs is given up": {
		write: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, code: "timeout", of: "hasty",
	},
	"a server that dies in mid-call is a broken connection": {
		write: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0",`))
			panic(http.ErrAbortHandler)
		}, code: "transport",
	},
	"a JSON-RPC error is the tool's": {
		write: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, r.Header.Get("id"), e2e.JSONString("bad "+imStart))
		}, code: "tool_error", has: []string{"bad "}, not: []string{imStart},
	},
}

func testLyingResults(t *testing.T, p *e2e.Program) {
	names := make([]string, 0, len(lies)) // of the lies, by the number of their tool
	for name := range lies {
		names = append(names, name)
	}
	slices.Sort(names)
	up := &e2e.Stub{Tools: lyingTools(names)}
	up.Answer = func(w http.ResponseWriter, r *http.Request, c e2e.StubCall) {
		i, _ := strconv.Atoi(strings.TrimPrefix(c.Params.Name, "t"))
		l := lies[names[i]]
		if l.write == nil {
			e2e.Result(w, c.ID, l.raw)
			return
		}
		r.Header.Set("id", string(c.ID))
		l.write(w, r)
	}
	url := up.Start(t)
	// A call of liar has the time that calls have: 20 MB take seconds where much else runs.
	pl := p.Place(t, "servers:\n  liar: {url: "+url+"}\n  hasty: {url: "+url+", timeout: 2s}\n  lax: {url: "+url+", output: warn}\n")
	pl.Must("grant", "--yes", "liar__*", "hasty__*", "lax__*")
	pl.Env = append(pl.Env, steadyMemory)
	gw := pl.Serve()
	old, stateless := e2e.MustWire(t, gw.URL), &e2e.Wire{URL: gw.URL, Stateless: true}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			tool := fmt.Sprintf("%s__t%d", cmp.Or(lies[name].of, "liar"), i)
			for _, w := range []*e2e.Wire{old, stateless} {
				lies[name].Check(t, w, w.MustCall(t, tool, "{}"))
				lies[name].checkRecord(t, pl.LastDone(tool))
			}
			if n := len(up.Calls(fmt.Sprintf("t%d", i))); n != 2 {
				t.Errorf("the server saw %d calls, want 2: none may be repeated", n)
			}
		})
	}
	t.Run("a result that breaks its schema passes if its server is configured so", func(t *testing.T) {
		i := slices.Index(names, "a structured result that breaks its schema is refused")
		a := old.MustCall(t, fmt.Sprintf("lax__t%d", i), "{}")
		if code, _ := a.Refusal(); code != "" || !strings.Contains(string(a.Result), `"seven"`) {
			t.Errorf("answer = %s", a.Result)
		}
	})
	pl.Verify()
	if hwm := peakMemory(t, gw.PID()); hwm > 400<<20 {
		t.Errorf("the gateway took %d MB", hwm>>20)
	}
}

func lyingTools(names []string) string {
	var tools []string
	for i, name := range names {
		output := ""
		if l := lies[name]; l.output != "" {
			output = `,"outputSchema":` + l.output
		}
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}%s}`, i, output))
	}
	return "[" + strings.Join(tools, ",") + "]"
}

// check looks at the answer that a client got.
func (l lie) Check(t *testing.T, w *e2e.Wire, a e2e.Answered) {
	t.Helper()
	if a.Error != nil {
		t.Fatalf("JSON-RPC error %d %q; want a result", a.Error.Code, a.Error.Message)
	}
	code, _ := a.Refusal()
	if want := l.code; want != "ok" && want != "tool_error" {
		if code != want {
			t.Errorf("refusal = %q, want %q: %.300s", code, want, a.Result)
		}
		return
	}
	if code != "" {
		t.Fatalf("refused: %s", a.Result)
	}
	if l.unchanged {
		got, want := string(a.Result), l.raw
		if w.Stateless { // revision 2026-07-28 adds two members of its own
			got, _, _ = strings.Cut(got, `,"resultType":"complete"`)
			want = strings.TrimSuffix(want, "}")
		}
		if got != want {
			t.Errorf("result = %s\nwant unchanged %s", got, want)
		}
		return
	}
	text := decodedStrings(t, a.Result)
	for _, s := range l.has {
		if !strings.Contains(text, s) {
			t.Errorf("the result lacks %q: %q", s, text)
		}
	}
	for _, s := range l.not {
		if strings.Contains(text, s) {
			t.Errorf("the result has %q: %q", s, text)
		}
	}
	var meta struct {
		Meta struct {
			Findings []struct{ Rule string } `json:"io.github.wasmgate/findings"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(a.Result, &meta); err != nil || len(l.rules) > 0 && len(meta.Meta.Findings) == 0 {
		t.Errorf("the client is not told of the removal (%v): %s", err, a.Result)
	}
}

// checkRecord looks at what the audit log says of the call.
func (l lie) checkRecord(t *testing.T, e e2e.Logged) {
	t.Helper()
	if e.Code != l.code {
		t.Errorf("recorded as %q, want %q: %s", e.Code, l.code, e.Raw)
	}
	for _, rule := range l.rules {
		if !slices.ContainsFunc(e.Findings, func(f e2e.LoggedFinding) bool { return strings.HasPrefix(f.Rule, rule) }) {
			t.Errorf("no finding %q is recorded: %s", rule, e.Raw)
		}
	}
	if strings.HasPrefix(l.code, "refused_") && e.Error == "" && len(e.Reasons) == 0 {
		t.Errorf("the operator is not told why: %s", e.Raw)
	}
}

// decodedStrings joins all strings of a document, names of members included.
func decodedStrings(t *testing.T, doc []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("%v: %.200s", err, doc)
	}
	var all strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all.WriteString(v + "\n")
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for k, e := range v {
				walk(k)
				walk(e)
			}
		}
	}
	walk(v)
	return all.String()
}
