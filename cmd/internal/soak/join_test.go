//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// TestJoin: each way in which servers, clients and log can disagree is found.
func TestJoin(t *testing.T) {
	for name, tt := range map[string]struct {
		saw, told string // a tag, and for told its outcome
		records   string // events of the tag a
		text      string
		want      string
	}{
		"all agree":                     {saw: "a", told: "a ok", records: "granted done", text: "a"},
		"a call that nobody granted":    {saw: "b", told: "a ok", records: "granted done", text: "a", want: "does not grant"},
		"a call that is seen twice":     {saw: "a a", told: "a ok", records: "granted done", text: "a", want: "2 times"},
		"a call without an end":         {saw: "a", told: "a broken", records: "granted", want: "its end is not in the log"},
		"told ok, and never seen":       {told: "a ok", records: "granted done", text: "a", want: "no server saw it"},
		"told refused, and carried out": {saw: "a", told: "a refused_record", records: "granted done", want: "its server saw it"},
		"the answer of another":         {saw: "a", told: "a ok", records: "granted done", text: "b", want: "another's"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &soak{folder: t.TempDir()}
			if err := os.Mkdir(s.disk(), 0o700); err != nil {
				t.Fatal(err)
			}
			args := func(tag string) string { return `{"tag":"` + tag + `"}` }
			saw := ""
			for _, tag := range strings.Fields(tt.saw) {
				saw += args(tag) + "\n"
			}
			for _, one := range servers {
				if err := os.WriteFile(witness(s.folder, one), []byte(saw), 0o600); err != nil {
					t.Fatal(err)
				}
				saw = ""
			}
			log, err := audit.Open(filepath.Join(s.disk(), "audit.jsonl"), audit.Options{Node: "n"})
			if err != nil {
				t.Fatal(err)
			}
			for _, event := range strings.Fields(tt.records) {
				r := gate.Record{Event: gate.Event(event), Call: &gate.Call{ID: "1", Action: gate.CallTool, Args: gate.MustDoc(args("a"))}}
				if event == "done" {
					r.Code = codes.OK
				}
				if err := log.Record(t.Context(), &r); err != nil {
					t.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			tag, code, _ := strings.Cut(tt.told, " ")
			s.told = []told{{tag: tag, args: args(tag), code: code, text: tt.text}}
			wrong := strings.Join(s.join(), "\n")
			wrong = strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(wrong, "only 0 of 1 calls passed: the run says nothing", "")), "\n")
			if tt.want == "" && wrong != "" || !strings.Contains(wrong, tt.want) {
				t.Errorf("%q, want %q", wrong, tt.want)
			}
		})
	}
}
