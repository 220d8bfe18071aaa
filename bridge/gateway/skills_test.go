package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/lock"
)

// A skillServer serves skills in both revisions. Its files are by URI.
type skillServer struct {
	mu      sync.Mutex
	files   map[string]string
	answers map[string]func(params gate.Doc) any // in place of what the files make
	change  func(entry map[string]any)           // of each entry
	asked   map[string]int                       // by method and URI
}

// front begins a SKILL.md.
func front(name string, more ...string) string {
	return "---\nname: " + name + "\ndescription: The skill " + name + "\n" + strings.Join(more, "\n") + "---\n\n"
}

// workflow are the files of a skill that the sanitizer would change.
func workflow(root string) map[string]string {
	return map[string]string{
		root + "/SKILL.md":            front("git-workflow") + "# Git\n\nSee [the guide](references/GUIDE.md).\n\n![d](https://img.example.com/d.png?x=1)\n<!-- kept -->\n",
		root + "/references/GUIDE.md": "# Guide\n\n<details><summary>More</summary>x</details>\n",
		root + "/scripts/check.sh":    "#!/bin/sh\ngit diff --check\n",
	}
}

func newSkillServer(files ...map[string]string) *skillServer {
	s := &skillServer{files: make(map[string]string), answers: make(map[string]func(gate.Doc) any), asked: make(map[string]int)}
	for _, some := range files {
		maps.Copy(s.files, some)
	}
	return s
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// entries are those of all skills that the files make.
func (s *skillServer) entries() []any {
	list := []any{}
	for _, uri := range slices.Sorted(maps.Keys(s.files)) {
		root, ok := strings.CutSuffix(uri, "SKILL.md")
		if !ok {
			continue
		}
		front := map[string]any{}
		for line := range strings.Lines(strings.Split(s.files[uri], "---\n")[1]) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			front[name] = value
		}
		files := []any{}
		for _, f := range slices.Sorted(maps.Keys(s.files)) {
			if strings.HasPrefix(f, root) {
				files = append(files, map[string]any{"uri": f, "digest": digestOf(s.files[f]), "size": len(s.files[f])})
			}
		}
		entry := map[string]any{"uri": uri, "frontmatter": front, "resources": files}
		if s.change != nil {
			s.change(entry)
		}
		list = append(list, entry)
	}
	return list
}

func (s *skillServer) result(method string, params gate.Doc) any {
	uri := params.Get("uri").Text()
	s.asked[method+" "+uri]++
	if f := s.answers[method]; f != nil {
		return f(params)
	}
	capabilities := map[string]any{"resources": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/skills": map[string]any{}}}
	switch method {
	case "initialize":
		return map[string]any{"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": map[string]any{"name": "s", "version": "1"}}
	case "server/discover":
		return map[string]any{"resultType": "complete", "supportedVersions": []string{"2026-07-28"}, "capabilities": capabilities}
	case "ping":
		return map[string]any{}
	case "resources/list":
		list := []any{}
		for _, uri := range slices.Sorted(maps.Keys(s.files)) {
			list = append(list, map[string]any{"uri": uri, "name": "f"})
		}
		return map[string]any{"resources": list}
	case "resources/templates/list":
		return map[string]any{"resourceTemplates": []any{}}
	case "skills/list":
		return map[string]any{"skills": s.entries()}
	case "resources/read":
		if text, ok := s.files[uri]; ok {
			return map[string]any{"contents": []any{map[string]any{"uri": uri, "mimeType": "text/markdown", "text": text}}}
		}
	}
	return nil
}

func (s *skillServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params gate.Doc        `json:"params"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&msg) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if msg.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.mu.Lock()
	answer := s.result(msg.Method, msg.Params)
	s.mu.Unlock()
	out := map[string]any{"jsonrpc": "2.0", "id": msg.ID, "result": answer}
	if answer == nil {
		out = map[string]any{"jsonrpc": "2.0", "id": msg.ID, "error": map[string]any{"code": -32601, "message": "no " + msg.Method}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// set changes a file, or removes it if the text is empty.
func (s *skillServer) set(uri, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[uri] = text; text == "" {
		delete(s.files, uri)
	}
}

// endpoint returns the server as a configuration has it, spoken to in a revision.
func (s *skillServer) endpoint(t testing.TB, id, protocol string, o options.Skills) options.Endpoint {
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return options.Endpoint{Server: id, URL: srv.URL, Protocol: protocol, Tools: options.Tools{Skills: o}}
}

// skillGateway returns a gateway in front of servers, which are all granted.
func skillGateway(t *testing.T, change func(*gateway.Config), servers ...options.Endpoint) (*gateway.Gateway, *records) {
	kept := new(records)
	var ids []string
	for _, s := range servers {
		ids = append(ids, s.Server)
	}
	cfg := gateway.Config{Recorder: kept, Policy: grantingServers(ids...), Servers: servers}
	if change != nil {
		change(&cfg)
	}
	g := start(t, cfg)
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, kept
}

func (h *appHost) skills() map[string]gate.Doc { return h.listed("skills/list", "skills", "uri") }

func (h *appHost) skill(uri string) gate.Doc {
	h.t.Helper()
	return h.ask("skills/get", fmt.Sprintf(`"uri":%q`, uri))
}

// loads reads a whole skill as a host does, and returns how many files it verified.
func (h *appHost) loads(uri string) (files int) {
	h.t.Helper()
	got := h.skill(uri)
	if got.At("/result/skill/uri").Text() != uri {
		h.t.Errorf("%s is answered with %s", uri, got)
	}
	for f := range got.At("/result/skill/resources").Elements() {
		name := f.Get("uri").Text()
		content := h.read(name).At("/result/contents/0")
		if digestOf(content.Get("text").Text()) != f.Get("digest").Text() || content.Get("uri").Text() != name {
			h.t.Errorf("%s: %s is not what its entry says: %s", uri, name, content)
		}
		files++
	}
	return files
}

// TestSkillsOfSeveralServers: three servers have a skill of one URI. Each is listed under a URI that
// names its server, and its files pass byte for byte, in both revisions on both sides.
func TestSkillsOfSeveralServers(t *testing.T) {
	for _, era := range eras {
		for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(era+" "+protocol, func(t *testing.T) {
				var servers []options.Endpoint
				for _, id := range []string{"a", "b", "c"} {
					files := workflow("skill://git-workflow")
					files["skill://git-workflow/scripts/check.sh"] += "# of " + id + "\n"
					servers = append(servers, newSkillServer(files).endpoint(t, id, protocol, options.Skills{}))
				}
				g, _ := skillGateway(t, nil, servers...)
				h := newAppHost(t, g, era, false)
				hello := map[string]string{rig.Old: "", rig.Newest: "server/discover"}[era]
				if hello != "" {
					if got := h.ask(hello, ""); !got.At("/result/capabilities/extensions/io.modelcontextprotocol~1skills/directoryRead").True() || got.At("/result/capabilities/resources").IsZero() {
						t.Errorf("declared: %s", got)
					}
				}
				listed := h.skills()
				if got := slices.Sorted(maps.Keys(listed)); !slices.Equal(got, []string{"skill://a/git-workflow/SKILL.md", "skill://b/git-workflow/SKILL.md", "skill://c/git-workflow/SKILL.md"}) {
					t.Fatalf("listed %v", got)
				}
				for uri, entry := range listed {
					if n := h.loads(uri); n != 3 {
						t.Errorf("%s has %d files", uri, n)
					}
					if got := entry.At("/_meta/io.github.wasmgate~1origin/server").Text(); !strings.HasPrefix(uri, "skill://"+got+"/") {
						t.Errorf("%s is said to be of %q", uri, got)
					}
					root := strings.TrimSuffix(uri, "/SKILL.md")
					var children []string
					for c := range h.ask("resources/directory/read", fmt.Sprintf(`"uri":%q`, root)).At("/result/resources").Elements() {
						children = append(children, c.Get("uri").Text())
					}
					if !slices.Equal(children, []string{uri, root + "/references", root + "/scripts"}) {
						t.Errorf("%s holds %v", root, children)
					}
				}
				answer := h.ask("skills/list", "").Get("result")
				if answer.Get("cacheScope").Text() != "private" || answer.Get("ttlMs").IsZero() || answer.Get("resultType").Text() != "complete" {
					t.Errorf("kept as %s %s", answer.Get("cacheScope"), answer.Get("ttlMs"))
				}
				for _, uri := range []string{"skill://a/nothing/SKILL.md", "skill://git-workflow/SKILL.md", "file:///etc/passwd", "FILE:///etc/passwd", "skill://a/git-workflow/../git-workflow/SKILL.md", "skill://a/git-workflow"} {
					if got := h.skill(uri).At("/error/code").String(); got != "-32602" {
						t.Errorf("%s: %s", uri, got)
					}
				}
				for _, uri := range []string{"skill://a/git-workflow/scripts/other.sh", "skill://a/git-workflow/scripts/../SKILL.md", "skill://a/git-workflow/%2e%2e/SKILL.md", "skill://a//git-workflow/SKILL.md"} {
					if got := h.read(uri); got.Get("error").IsZero() {
						t.Errorf("%s: %s", uri, got)
					}
				}
			})
		}
	}
}

// TestSkillsByOwnURIs: the URI of a server counts where one skill alone has it, and its files are
// what the host verifies once it has the entry. To all others they are sanitized resources.
func TestSkillsByOwnURIs(t *testing.T) {
	const uri = "skill://git-workflow/SKILL.md"
	g, _ := skillGateway(t, nil, newSkillServer(workflow("skill://git-workflow")).endpoint(t, "a", "", options.Skills{}))
	h, plain := newAppHost(t, g, rig.Old, false), newAppHost(t, g, rig.Old, false)
	if n := h.loads(uri); n != 3 {
		t.Errorf("%d files", n)
	}
	if got := textOf(plain.read(uri)); strings.Contains(got, "![d](https://img") {
		t.Errorf("another client reads %q", got)
	}
}

// TestSkillsAreGranted: a client gets the skills that its principal is granted, and their files only
// with them. A grant of an outer skill covers the files of a nested one, which is no skill to it.
func TestSkillsAreGranted(t *testing.T) {
	nested := map[string]string{"skill://outer/SKILL.md": front("outer"), "skill://outer/inner/SKILL.md": front("inner", "allowed-tools: Bash\n"), "skill://other/SKILL.md": front("other")}
	g, kept := skillGateway(t, func(c *gateway.Config) {
		c.Policy.Options.Grants[0].Servers, c.Policy.Options.Grants[0].Skills = nil, []string{"a/outer"}
	}, newSkillServer(nested).endpoint(t, "a", "", options.Skills{}))
	h := newAppHost(t, g, rig.Newest, false)
	if got := slices.Collect(maps.Keys(h.skills())); !slices.Equal(got, []string{"skill://a/outer/SKILL.md"}) {
		t.Fatalf("listed %v", got)
	}
	if n := h.loads("skill://a/outer/SKILL.md"); n != 2 {
		t.Errorf("%d files", n)
	}
	for _, uri := range []string{"skill://a/outer/inner/SKILL.md", "skill://a/other/SKILL.md"} {
		if got := h.skill(uri); got.Get("error").IsZero() {
			t.Errorf("%s: %s", uri, got)
		}
	}
	if got := h.read("skill://a/other/SKILL.md"); got.Get("error").IsZero() {
		t.Error(got)
	}
	done := slices.DeleteFunc(kept.list(), func(code string) bool { return code != "done ok" })
	if len(done) != 3 { // the entry and two files
		t.Errorf("recorded %v", kept.list())
	}
}

// pinned returns a change of a configuration that keeps pins in a folder.
func pinned(dir string) func(*gateway.Config) {
	return func(c *gateway.Config) { c.Pins = &options.Pins{File: filepath.Join(dir, lock.FileName), Dir: dir} }
}
