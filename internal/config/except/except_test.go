package except_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/except"
)

// An edit is a finding, which of its exceptions is chosen, and what is to become of a file.
type edit struct {
	found       except.Found
	name        string
	file, after string
	byHand      string // why only a person can write it
}

var (
	script = except.Found{Rule: "html/script", Tool: "files__read", Server: "files"}
	hidden = except.Found{Rule: "unicode/bidi", Tool: "files__read", Server: "files"}
	key    = except.Found{Rule: "secret/github-pat", Tool: "files__read", Server: "files", Fingerprint: "abc123"}
	sent   = except.Found{Rule: "secret/github-pat", Tool: "files__read", Server: "files", Arguments: true}
	server = "servers:\n  files: {command: files}\n"
)

var edits = map[string]edit{
	"nothing yet":          {script, "tool", "# mine\n" + server, "# mine\n" + server + "sanitize: {tools: {\"files__read\": code}}\n", ""},
	"no newline":           {script, "tool", "log: {level: info}", "log: {level: info}\nsanitize: {tools: {\"files__read\": code}}\n", ""},
	"flow, before others":  {script, "tool", "sanitize: {tools: {\"files__*\": text}} # why\n", "sanitize: {tools: {\"files__read\": code, \"files__*\": text}} # why\n", ""},
	"flow, empty":          {script, "tool", "sanitize: {tools: {}}\n", "sanitize: {tools: {\"files__read\": code}}\n", ""},
	"flow, another key":    {script, "tool", "sanitize: {profile: text}\n", "sanitize: {tools: {\"files__read\": code}, profile: text}\n", ""},
	"block":                {script, "tool", "sanitize:\n    tools: # rules\n        # of mail\n        mail__*: text\nlog: {level: info}\n", "sanitize:\n    tools: # rules\n        \"files__read\": code\n        # of mail\n        mail__*: text\nlog: {level: info}\n", ""},
	"block, CRLF":          {script, "tool", "sanitize:\r\n  tools:\r\n    mail__*: text\r\n", "sanitize:\r\n  tools:\r\n    \"files__read\": code\r\n    mail__*: text\r\n", ""},
	"block, another key":   {script, "tool", "sanitize:\n  profile: text\n", "sanitize:\n  tools: {\"files__read\": code}\n  profile: text\n", ""},
	"another profile":      {script, "tool", "sanitize:\n  tools:\n    files__read: \"strict\" # é\n    files__write: strict\n", "sanitize:\n  tools:\n    files__read: code # é\n    files__write: strict\n", ""},
	"flow, profile":        {script, "tool", "sanitize: {tools: {é: text, files__read: strict}}\n", "", "problems"},
	"behind another":       {script, "tool", "sanitize: {tools: {files__*: text, files__read: strict}}\n", "", "an entry that takes precedence"},
	"a server":             {script, "server", server, "servers:\n  files: {sanitize: code, command: files}\n", ""},
	"a server, in block":   {script, "server", "servers:\n  files:\n    command: files\n", "servers:\n  files:\n    sanitize: code\n    command: files\n", ""},
	"off":                  {hidden, "tool", server, server + "sanitize: {tools: {\"files__read\": off}}\n", ""},
	"one value":            {key, "one", server, server + "sanitize: {secrets: {allow: [{rule: github-pat, fingerprint: \"abc123\"}]}}\n", ""},
	"one value, in a list": {key, "one", "sanitize:\n  secrets:\n    allow:\n      - path: /x\n", "sanitize:\n  secrets:\n    allow:\n      - {rule: github-pat, fingerprint: \"abc123\"}\n      - path: /x\n", ""},
	"one value, in flow":   {key, "one", "sanitize: {secrets: {allow: [{path: /x}]}}\n", "sanitize: {secrets: {allow: [{rule: github-pat, fingerprint: \"abc123\"}, {path: /x}]}}\n", ""},
	"a rule":               {key, "rule", server, server + "sanitize: {secrets: {report: [generic-api-key, github-pat]}}\n", ""},
	"a rule, in a list":    {key, "rule", "sanitize: {secrets: {report: [jwt]}}\n", "sanitize: {secrets: {report: [github-pat, jwt]}}\n", ""},
	"results":              {key, "tool", server, server + "sanitize: {secrets: {tools: {\"files__read\": {results: allow}}}}\n", ""},
	"arguments":            {sent, "tool", "sanitize: {secrets: {tools: {files__*: {results: refuse}}}}\n", "sanitize: {secrets: {tools: {\"files__read\": {arguments: allow, results: refuse}, files__*: {results: refuse}}}}\n", ""},
	"arguments, named":     {sent, "tool", "sanitize: {secrets: {tools: {files__read: {results: refuse}}}}\n", "sanitize: {secrets: {tools: {files__read: {arguments: allow, results: refuse}}}}\n", ""},
	"arguments, refused":   {sent, "tool", "sanitize: {secrets: {tools: {files__read: {arguments: refuse}}}}\n", "sanitize: {secrets: {tools: {files__read: {arguments: allow}}}}\n", ""},
	"an anchor":            {script, "tool", "sanitize: &x\n  tools: {mail__*: text}\n", "", "anchors"},
	"an alias":             {script, "server", "servers:\n  other: &s {command: files}\n  files: *s\n", "", "anchors"},
	"null":                 {script, "tool", "sanitize:\n  tools:\nlog: {level: info}\n", "", "the key has no value yet"},
	"a flow document":      {script, "tool", "{version: 1, log: {level: info}}\n", "", "only a person"},
	"brackets over lines":  {script, "tool", "sanitize: {tools: {\n  mail__*: text}}\n", "sanitize: {tools: {\"files__read\": code, \n  mail__*: text}}\n", ""},
}

// An exception is written as a person writes it: where the file has its keys, before what would
// match earlier, and nothing else changes; or not at all, with the reason.
func TestWrite(t *testing.T) {
	for name, tt := range edits {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "wasmgate.yaml")
			before := "version: 1\n" + tt.file
			if strings.HasPrefix(tt.file, "{") {
				before = tt.file
			}
			if err := errors.Join(os.WriteFile(file, []byte(before), 0o640), os.Chmod(file, 0o640)); err != nil { // umask
				t.Fatal(err)
			}
			c, err := config.Load(file, config.Options{})
			if err != nil && tt.byHand != "problems" {
				t.Fatal(err)
			} else if err != nil {
				c = config.Default(config.Dirs{})
			}
			seen, _, err := except.See(file)
			if err != nil {
				t.Fatal(err)
			}
			e := one(t, except.For(c, tt.found), tt.name)
			_, err = except.Write(file, seen, e)
			now, _ := os.ReadFile(file)
			if tt.byHand != "" {
				if !errors.As(err, new(*except.ByHand)) || !strings.Contains(err.Error(), tt.byHand) || string(now) != before {
					t.Errorf("error %v, file\n%s", err, now)
				}
				return
			}
			if want := "version: 1\n" + tt.after; err != nil || string(now) != want {
				t.Fatalf("error %v, file\n%s\nwant\n%s", err, now, want)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%v %v", info.Mode(), err)
			}
			c, err = config.Load(file, config.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, again := range except.For(c, tt.found) {
				if again.Name == tt.name {
					t.Error("it is offered again")
				}
			}
			if _, err := except.Write(file, seen, e); !errors.Is(err, except.ErrChanged) {
				t.Errorf("over what was not seen: %v", err)
			}
		})
	}
}

func one(t *testing.T, all []except.Exception, name string) except.Exception {
	t.Helper()
	for _, e := range all {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("no exception %q in %+v", name, all)
	return except.Exception{}
}

// What no entry decides on has no exception, and names that are no names are written nowhere.
func TestNoException(t *testing.T) {
	c := config.Default(config.Dirs{})
	for _, f := range []except.Found{
		{Rule: "flow/echo", Tool: "a__b"}, {Rule: "redacted", Tool: "a__b"}, {Rule: "html/script", Tool: "a__b\": off, \"*", Server: "none"},
		{Rule: "secret/x\ny", Tool: "a__b", Fingerprint: "z"}, {Rule: "html/script", Tool: "a__b", Arguments: true}, {},
	} {
		if all := except.For(c, f); len(all) > 0 {
			t.Errorf("%+v: %+v", f, all)
		}
	}
	if all := except.For(c, except.Found{Rule: "secret/jwt", Tool: "x\": {}", Fingerprint: "\"}]"}); len(all) != 1 || all[0].Name != "rule" {
		t.Errorf("%+v", all)
	}
}
