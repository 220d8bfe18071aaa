package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
)

// same fails the test if two documents differ, each number as it was written.
// Members of the outermost object that are named in but may differ, and so may what an
// answer without a session says in _meta.
func same(t *testing.T, what, want string, got gate.Doc, but ...string) {
	t.Helper()
	parse := func(s string) any {
		var v any
		d := json.NewDecoder(bytes.NewReader([]byte(s)))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %.500q: %v", what, s, err)
		}
		if o, ok := v.(map[string]any); ok {
			for _, name := range but {
				delete(o, name)
			}
			if meta, ok := o["_meta"].(map[string]any); ok {
				delete(meta, "io.modelcontextprotocol/serverInfo")
				if len(meta) == 0 {
					delete(o, "_meta")
				}
			}
		}
		return v
	}
	if got.IsZero() {
		t.Errorf("%s: nothing came", what)
		return
	}
	if diff := cmp.Diff(parse(want), parse(got.String())); diff != "" {
		t.Errorf("%s (- as sent, + as it came): %.2000s", what, diff)
	}
}

// TestFaithful sends what MCP knows and what it does not through a gateway that changes nothing,
// between servers and clients of both protocol revisions.
func TestFaithful(t *testing.T) {
	const rounds = 8
	seed := seed.Of(t)
	for i, server := range []string{older, newer} {
		m := maker{Rand: rand.New(rand.NewPCG(seed, uint64(i))), deep: true}
		s := tellServer(t, server)
		listed := s.fill(m)
		m.hidden = true // which definitions may not have
		url := open(t, s)
		for _, client := range []string{older, newer} {
			t.Run(fmt.Sprintf("server of %s, client of %s", server, client), func(t *testing.T) {
				c := &direct{t: t, url: url}
				if client == older {
					c = direct25(t, url)
				}
				for _, l := range listed {
					same(t, l.method, l.want, c.request(l.method, "", "").At("/result/"+l.member))
				}
				for range rounds {
					faithfulRequests(t, m, s, c)
					faithfulCalls(t, m, s, c)
				}
			})
		}
	}
}

// A listing is what clients see of a list.
type listing struct{ method, member, want string }

// fill gives the server lists of several pages.
func (s *told) fill(m maker) (all []listing) {
	for _, l := range []struct {
		method, member string
		item           func(i int) (at, through []string)
	}{
		{"tools/list", "tools", func(i int) (at, through []string) {
			return []string{fmt.Sprintf(`"name":"t%d"`, i)}, []string{`"inputSchema":` + m.object(`"type":"object"`), `"description":` + m.text()}
		}},
		{"prompts/list", "prompts", func(i int) (at, through []string) {
			return []string{fmt.Sprintf(`"name":"p%d"`, i)}, []string{`"arguments":[` + m.object(`"name":"a"`) + `]`}
		}},
		{"resources/list", "resources", func(i int) (at, through []string) {
			return nil, []string{fmt.Sprintf(`"uri":"doc://r%d"`, i), `"name":` + m.text()}
		}},
		{"resources/templates/list", "resourceTemplates", func(i int) (at, through []string) {
			return nil, []string{fmt.Sprintf(`"uriTemplate":"doc://t%d/{x}"`, i), `"name":` + m.text()}
		}},
	} {
		var want, page []string
		for i := range 7 {
			name, more := l.item(i)
			def := m.object(more...)
			with := func(prefix string) string {
				if name == nil {
					return def
				}
				return strings.TrimSuffix(def, "}") + "," + strings.Replace(name[0], `:"`, `:"`+prefix, 1) + "}"
			}
			want, page = append(want, with("s__")), append(page, with(""))
			if i%3 == 2 || i == 6 {
				s.pages[l.method] = append(s.pages[l.method], m.object(`"`+l.member+`":[`+strings.Join(page, ",")+`]`))
				page = nil
			}
		}
		all = append(all, listing{l.method, l.member, "[" + strings.Join(want, ",") + "]"})
	}
	s.results["tools/call"] = "{}"
	return all
}

// faithfulRequests sends one request of each kind that is no call.
func faithfulRequests(t *testing.T, m maker, s *told, c *direct) {
	t.Helper()
	message := func() string { return m.object(`"role":"user"`, `"content":`+m.content()) }
	contents := func() string { return m.object(`"uri":"doc://r1"`, `"text":`+m.text()) }
	for _, r := range []struct{ method, params, result string }{
		{"prompts/get", `"name":"s__p1","arguments":{"a":` + m.text() + `}`, m.object(`"description":`+m.text(), `"messages":`+m.several(message))},
		{"resources/read", `"uri":"doc://r1"`, m.object(`"contents":` + m.several(contents))},
		{"resources/read", `"uri":"doc://t1/a"`, m.object(`"contents":` + m.several(contents))},
		{
			"completion/complete", `"ref":{"type":"ref/prompt","name":"s__p1"},"argument":{"name":"a","value":` + m.text() + `}`,
			m.object(`"completion":` + m.object(`"values":`+m.several(m.text))),
		},
		{"acme/x", strings.Trim(m.object(`"a":`+m.value(3)), "{}"), m.object()},
	} {
		if r.method == "acme/x" {
			r.params = `"a":` + m.value(3)
		}
		s.tell(r.method, r.result)
		res := c.request(r.method, r.params, "").Get("result")
		same(t, r.method, r.result, res, "resultType", "ttlMs", "cacheScope")
		want := "{" + strings.ReplaceAll(r.params, `"s__`, `"`) + "}"
		same(t, "parameters of "+r.method, want, s.params(r.method), "_meta")
	}
}

// faithfulCalls calls a tool that says something before its result, one that asks its
// client for something, and one whose server makes a task of the call.
func faithfulCalls(t *testing.T, m maker, s *told, c *direct) {
	t.Helper()
	flat := m
	flat.deep = false // as the schemas of forms must be
	form := flat.object(`"mode":"form"`, `"message":`+m.text(), `"requestedSchema":`+flat.object(`"type":"object"`, `"properties":{"a":`+flat.object(`"type":"string"`)+`}`))
	sample := m.object(`"maxTokens":100`, `"messages":`+m.several(func() string { return m.object(`"role":"user"`, `"content":`+m.content()) }))
	for _, a := range []struct{ asks, params, answer string }{
		{},
		{"elicitation/create", form, m.object(`"action":"accept"`, `"content":{"a":`+m.text()+`,"b":`+m.number()+`,"c":["x"]}`)},
		{"sampling/createMessage", sample, m.object(`"role":"assistant"`, `"model":`+m.text(), `"content":`+m.content())},
		{"roots/list", m.object(), m.object(`"roots":[` + m.object(`"uri":"file:///a"`) + `]`)},
	} {
		args, meta, result := m.object(), m.value(2), m.result()
		progress, log := m.object(`"progressToken":"$"`, `"progress":1`, `"total":2.50`), m.object(`"level":"error"`, `"data":`+m.value(4))
		s.tell("tools/call", result)
		s.mu.Lock()
		s.notes, s.asks, s.tasks = []string{`"method":"notifications/progress","params":` + progress, `"method":"notifications/message","params":` + log}, "", a.asks == "" && s.era == newer
		if a.asks != "" {
			s.asks = fmt.Sprintf(`"method":%q,"params":%s`, a.asks, a.params)
		}
		s.mu.Unlock()
		c.answer = a.answer
		name := "a call that asks for " + a.asks
		end := c.request("tools/call", `"name":"s__t1","arguments":`+args, `"example.com/m":`+meta+`,"progressToken":"p"`)
		same(t, name, result, end.Get("result"), "resultType", "ttlMs", "cacheScope")
		same(t, name+": arguments", args, s.params("tools/call").Get("arguments"))
		same(t, name+": _meta", meta, s.params("tools/call").At("/_meta/example.com~1m"))
		if len(c.notes) < 2 {
			t.Errorf("%s: %d notifications: %s", name, len(c.notes), end)
		} else {
			same(t, name+": progress", strings.Replace(progress, `"$"`, `"p"`, 1), c.notes[0].Get("params"))
			same(t, name+": log", log, c.notes[1].Get("params"))
		}
		if a.asks == "" {
			continue
		}
		answer := s.answer()
		if len(c.asked) != 1 {
			t.Fatalf("%s: asked %s, and the server was told %s", name, c.asked, answer)
		}
		same(t, name+": what is asked", a.params, c.asked[0].Get("params"))
		same(t, name+": the answer", a.answer, answer.Get("result"))
	}
}

func (s *told) tell(method, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[method] = result
}

func (s *told) params(method string) gate.Doc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[method]
}
