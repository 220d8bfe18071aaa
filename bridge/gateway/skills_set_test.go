package gateway_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/internal/rig"
	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/skills/folder"
	"github.com/wasmgate/wasmgate/policy"
)

// reads records who has read which file.
type reads struct {
	mu   sync.Mutex
	list []string
}

func (r *reads) Record(_ context.Context, rec *gate.Record) error {
	if rec.Event != gate.Done || rec.Call.Action != gate.ReadResource {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprint(rec.Call.Who.ID, " ", rec.Code, " ", rec.Tool.Offered, " ", rec.Tool.Skill.Files[rec.Tool.File].Digest))
	return nil
}

// TestTwoRolesOfOneFolder: of 40 skills in one folder each role is offered its own and loads them.
// Each read is one record with the digest of the file that was read.
func TestTwoRolesOfOneFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		name := fmt.Sprintf("s%02d", i)
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"SKILL.md": front(name), "guide.md": "# Guide of " + name + "\n"} {
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	kept := new(reads)
	g := start(t, gateway.Config{
		Recorder: kept,
		Policy: gateway.Policy{Options: policy.Options{Grants: []policy.Grant{
			{To: []string{"role:dev"}, Skills: []string{"team/s0*", "team/s1*"}}, {To: []string{"role:ops"}, Skills: []string{"team/s2*", "team/s3*"}},
		}}},
		Servers: []options.Endpoint{{
			Server: "team", Tools: options.Tools{Skills: options.Skills{Own: true, Trusted: true}},
			Dial: gateway.DialStreams(func() (io.ReadCloser, io.WriteCloser, error) { return folder.Serve(dir) }), MaxMessage: folder.MaxMessage,
		}},
	})
	if err := g.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, role := range []string{"dev", "ops"} {
		who := &gate.Principal{Owner: gate.Owner{ID: role}, Auth: "bearer", Roles: []string{role}}
		do := func(action gate.Action, name string) (gate.Doc, error) {
			r, err := g.Do(t.Context(), gate.Call{ID: gate.NewID(), Action: action, Name: name, Who: who, Session: gate.SessionKey{Owner: who.Owner, ID: role}})
			return r.Doc, err
		}
		own, err := g.Operator().Features(t.Context(), who, gate.FeatureSkill)
		if err != nil || len(own) != 20 {
			t.Fatalf("%s is offered %d skills, %v", role, len(own), err)
		}
		for i := range 40 {
			uri := fmt.Sprintf("skill://team/s%02d/SKILL.md", i)
			mine := slices.ContainsFunc(own, func(s *gate.Tool) bool { return s.Offered == uri })
			if mine != (i < 20 == (role == "dev")) {
				t.Errorf("%s is offered %s: %t", role, uri, mine)
			}
			answer, err := do(gate.GetSkill, uri)
			if !mine {
				if _, ofFile := do(gate.ReadResource, uri); err == nil || ofFile == nil {
					t.Errorf("%s loads %s", role, uri)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for f := range answer.At("/skill/resources").Elements() {
				content, err := do(gate.ReadResource, f.Get("uri").Text())
				if digestOf(content.At("/contents/0/text").Text()) != f.Get("digest").Text() {
					t.Errorf("%s reads %s: %s, %v", role, f, content, err)
				}
				want = append(want, fmt.Sprint(role, " ok ", f.Get("uri").Text(), " ", f.Get("digest").Text()))
			}
		}
	}
	done := slices.DeleteFunc(slices.Clone(kept.list), func(one string) bool { return !strings.Contains(one, " ok ") })
	if len(want) != 80 || !slices.Equal(done, want) {
		t.Errorf("%d reads, and the records %q", len(want), done)
	}
}

// TestRecordOfAFile: the log has the digest of the file and that of the whole skill.
func TestRecordOfAFile(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit.jsonl"), audit.Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := skillGateway(t, func(c *gateway.Config) { c.Recorder = log }, newSkillServer(workflow("skill://git-workflow")).endpoint(t, "a", "", options.Skills{}))
	newAppHost(t, g, rig.Newest, false).loads("skill://a/git-workflow/SKILL.md")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var found []string
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if e := gate.MustDoc(strings.TrimSpace(line)); e.Get("event").Text() == string(gate.Done) && !e.Get("file_digest").IsZero() {
				found = append(found, e.Get("tool").Text()+" "+e.Get("file_digest").Text())
			}
		}
	}
	var want []string
	for uri, text := range workflow("skill://git-workflow") {
		want = append(want, uri+" "+digestOf(text))
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("records %q, not %q", found, want)
	}
}

// notesOf returns what the status says of the first server.
func notesOf(g *gateway.Gateway) (all string) {
	for _, n := range g.Fleet().Status()[0].Notes {
		all += n.Text + "\n"
	}
	return all
}

// TestSkillListingsThatDoNotEnd: a listing without an end, and one that is too large, are cut, and the
// skills before that go on.
func TestSkillListingsThatDoNotEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		page  []any
		most  int
		words string
	}{
		"endless cursor": {[]any{}, 64, "64 pages"},
		"large pages":    {[]any{map[string]any{"uri": strings.Repeat("x", 1<<20)}}, 9, "8 MiB"},
	} {
		s, n := newSkillServer(map[string]string{"skill://good/SKILL.md": front("good")}), 0
		s.answers["skills/list"] = func(p gate.Doc) any {
			page := tt.page
			if p.Get("cursor").IsZero() {
				n, page = 0, s.entries()
			}
			n++
			return map[string]any{"skills": page, "nextCursor": fmt.Sprint("page", n)}
		}
		g, _ := skillGateway(t, nil, s.endpoint(t, "a", "2025-11-25", options.Skills{}))
		c := newAppHost(t, g, rig.Newest, false)
		if got := slices.Collect(maps.Keys(c.skills())); len(got) != 1 || c.loads("skill://a/good/SKILL.md") != 1 {
			t.Errorf("%s: listed %v", name, got)
		}
		s.mu.Lock()
		if n > tt.most {
			t.Errorf("%s: %d pages were read", name, n)
		}
		s.mu.Unlock()
		if got := notesOf(g); !strings.Contains(got, tt.words) {
			t.Errorf("%s: the status says %q", name, got)
		}
	}
}

// TestSkillFileThatIsLarge: a file of 33 MiB in place of a small one quarantines its skill only.
func TestSkillFileThatIsLarge(t *testing.T) {
	s := newSkillServer(map[string]string{"skill://bad/SKILL.md": front("bad"), "skill://bad/a.md": "a", "skill://good/SKILL.md": front("good")})
	large := strings.Repeat("x", 33<<20)
	s.answers["resources/read"] = func(p gate.Doc) any {
		uri := p.Get("uri").Text()
		text := s.files[uri]
		if uri == "skill://bad/a.md" {
			text = large
		}
		return map[string]any{"contents": []any{map[string]any{"uri": uri, "text": text}}}
	}
	g, _ := skillGateway(t, nil, s.endpoint(t, "a", "2025-11-25", options.Skills{}))
	c := newAppHost(t, g, rig.Newest, false)
	if got := slices.Collect(maps.Keys(c.skills())); !slices.Equal(got, []string{"skill://a/good/SKILL.md"}) || c.loads("skill://a/good/SKILL.md") != 1 {
		t.Errorf("listed %v; %s", got, notesOf(g))
	}
}

// TestSkillsAfterARestart: an approval holds over a restart for the same set of files only.
func TestSkillsAfterARestart(t *testing.T) {
	s, dir := newSkillServer(workflow("skill://git-workflow"), map[string]string{"skill://good/SKILL.md": front("good")}), t.TempDir()
	server := s.endpoint(t, "a", "2025-11-25", options.Skills{})
	for _, step := range []struct {
		name, file, text string
		skills           int
	}{
		{"first seen", "", "", 2}, {"unchanged", "", "", 2},
		{"changed", "scripts/check.sh", "#!/bin/sh\n", 1}, {"still changed", "", "", 1}, {"as before", "scripts/check.sh", workflow("")["/scripts/check.sh"], 2},
	} {
		t.Run(step.name, func(t *testing.T) {
			if step.file != "" {
				s.set("skill://git-workflow/"+step.file, step.text)
			}
			g, _ := skillGateway(t, pinned(dir), server)
			c := newAppHost(t, g, rig.Newest, false)
			if got := c.skills(); len(got) != step.skills {
				t.Errorf("%d skills, not %d: %s", len(got), step.skills, notesOf(g))
			}
			if got := c.skill("skill://a/git-workflow/SKILL.md"); got.Get("error").IsZero() != (step.skills == 2) {
				t.Error(got)
			}
			c.loads("skill://a/good/SKILL.md")
		})
	}
}
