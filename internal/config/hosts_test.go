package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/config/edit"
	"github.com/wasmgate/wasmgate/internal/config/extract"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// server returns what a host's file leaves to the defaults, changed by set.
func server(id string, set func(*config.Server)) config.Server {
	s := config.Server{ID: id, Transport: "auto", Timeout: 5 * time.Minute, Enabled: true, Prefix: true, Schema: "declared", Output: "enforce"}
	set(&s)
	return s
}

const hostFile = `// as an editor writes it
{
  "inputs": [{"id": "key", "type": "promptString", "password": true}],
  "mcpServers": {
    "GitHub Tools": {
      "command": "npx",
      "args": ["-y", "pkg", "--root=${workspaceFolder}", "a$$b"], /* two dollars */
      "env": {"GITHUB_TOKEN": "${env:GH}", "N": 1},
      "envFile": ".env",
      "autoApprove": ["*"],
      "disabled": true,
    },
    "github-tools": {"type": "http", "url": "https://example.com/mcp", "headers": {"X": "${userHome}"}, "timeout": 60},
    "local": {"serverUrl": "https://example.com/sse", "transport": "sse", "colour": "red"},
    "asks": {"type": "stdio", "command": "./run", "env": {"KEY": "${input:key}"}},
    "old": {"httpUrl": "https://example.com/"},
    "ws": {"type": "websocket", "url": "https://example.com/"},
  },
  "theme": "dark"
}
`

func TestImportMCP(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", "/home/ann")
	t.Setenv("USERPROFILE", "/home/ann")
	name := filepath.Join(dir, ".vscode", "mcp.json")
	got, reports, err := config.ImportMCP(strings.NewReader(hostFile), name)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Server{
		server("github-tools", func(s *config.Server) {
			s.Command, s.Args = "npx", []string{"-y", "pkg", "--root=" + dir, "a$$$$b"}
			s.Env = map[string]config.Secret{"GITHUB_TOKEN": "${env:GH}", "N": "1"}
			s.Enabled = false
		}),
		server("github-tools-2", func(s *config.Server) {
			s.URL, s.Transport = "https://example.com/mcp", "streamable-http"
			s.Headers = map[string]config.Secret{"X": "/home/ann"}
		}),
		server("local-server", func(s *config.Server) { s.URL, s.Transport = "https://example.com/sse", "sse" }),
		server("asks", func(s *config.Server) {
			s.Command, s.Env = filepath.Join(dir, "run"), map[string]config.Secret{"KEY": "${KEY}"}
			s.Written = []string{"./run"}
			s.Fault = "only the client with these settings can fill in ${input:key}; in wasmgate.yaml write ${KEY}"
		}),
		server("old", func(s *config.Server) { s.URL, s.Transport = "https://example.com/", "streamable-http" }),
		server("ws", func(s *config.Server) {
			s.URL, s.Fault = "https://example.com/", `its transport "websocket" is not known here`
		}),
	}
	if diff := cmp.Diff(want, got, undeclared); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	wantReports := []tree.Problem{
		{File: name, Line: 3, Path: "inputs", Message: "ignored: only the client can ask for these values"},
		{File: name, Line: 0, Path: "", Message: "ignored, since they concern only the client: theme"},
		{File: name, Line: 5, Path: `mcpServers["GitHub Tools"]`, Message: "is imported as github-tools"},
		{File: name, Line: 9, Path: `mcpServers["GitHub Tools"].envFile`, Message: "ignored: name the variables that it sets in env, as ${NAME}"},
		{File: name, Line: 10, Path: `mcpServers["GitHub Tools"].autoApprove`, Message: "never honoured: what may be called is granted with `wasmgate grant`"},
		{File: name, Line: 13, Path: `mcpServers.github-tools`, Message: "is imported as github-tools-2"},
		{File: name, Line: 13, Path: `mcpServers.github-tools.timeout`, Message: "ignored: hosts disagree on its unit; in wasmgate.yaml write timeout: 30s"},
		{File: name, Line: 14, Path: `mcpServers.local`, Message: "is imported as local-server"},
		{File: name, Line: 14, Path: `mcpServers.local.colour`, Message: "ignored: unknown key"},
	}
	if diff := cmp.Diff(wantReports, reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// Some hosts write their servers as a list, each with its name.
func TestImportList(t *testing.T) {
	got, warnings, err := config.ImportMCP(strings.NewReader(`{"servers": [{"name": "Files", "command": "npx", "args": ["-y", "x"]}, {"name": "far", "url": "https://example.com/mcp"}]}`), "mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Server{
		server("files", func(s *config.Server) { s.Command, s.Args = "npx", []string{"-y", "x"} }),
		server("far", func(s *config.Server) { s.URL = "https://example.com/mcp" }),
	}
	if diff := cmp.Diff(want, got, undeclared); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if len(warnings) != 1 || warnings[0].Message != "is imported as files" {
		t.Errorf("warnings %v", warnings)
	}
	_, _, err = config.ImportMCP(strings.NewReader("{\"servers\": [{\"name\": \"a\", \"command\": \"x\"},\n{\"name\": \"a\", \"command\": \"y\"}, {\"command\": \"z\"}]}"), "mcp.json")
	if err == nil || err.Error() != "mcp.json:2: servers[1].name: given twice\nmcp.json:2: servers[2]: needs a name" {
		t.Errorf("error %v", err)
	}
}

func TestLoadMCP(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "grants.yaml"), "")
	file := write(t, filepath.Join(dir, ".mcp.json"), `{"mcpServers": {
		"fs": {"command": "npx", "args": ["${workspaceFolder}", "a$$b"], "env": {"T": "${TICKETS_TOKEN}", "U": "${env:TICKETS_TOKEN}"}},
		"asks": {"url": "${input:url}", "headers": {"A": "${NOT_SET}"}, "disabled": true}
	}}`)
	c, err := config.Load(file, options(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Server{
		server("fs", func(s *config.Server) {
			s.Command, s.Args, s.Env = "npx", []string{dir, "a$$b"}, map[string]config.Secret{"T": "t0p", "U": "t0p"}
			s.Written = []string{"npx", dir, "a$$$$b"}
		}),
		server("asks", func(s *config.Server) {
			s.Enabled = false
			s.Fault = "only the client with these settings can fill in ${input:url}; in wasmgate.yaml write ${URL}"
		}),
	}
	if diff := cmp.Diff(want, c.Servers, undeclared); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	own := c.State
	if !strings.HasPrefix(own, filepath.Join(dir, ".local", "state", "wasmgate", "files")+"/") {
		t.Errorf("state is in %s, not in the person's folder", c.State)
	}
	if c.Audit.Path != filepath.Join(own, "audit.jsonl") || c.Policy.Grants != filepath.Join(own, "grants.yaml") {
		t.Errorf("log %s and grants %s are not in the state folder %s", c.Audit.Path, c.Policy.Grants, c.State)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Message, "grants.yaml beside it is not read") {
		t.Errorf("warnings %v do not tell of the grants.yaml that is not read", c.Warnings)
	}
}

func TestMCPProblems(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"not JSON":                   {"{\n  \"servers\": {,}}", "mcp.json:2: not JSON: invalid character ',' at start of value"},
		"half of a token":            {"{\n  \"servers\": \"sec\nret\"}", "mcp.json:2: not JSON: neither a string in quotes, a number, true, false nor null"},
		"no servers":                 {"{}", "mcp.json: holds neither mcpServers nor servers"},
		"a list":                     {"[]", "mcp.json:1: must be a mapping, not a list"},
		"servers in two places":      {"{\"servers\": {},\n\"mcpServers\": {}}", "mcp.json:2: mcpServers: the servers are under servers already; keep one of the two keys"},
		"a server given twice":       {"{\"servers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}", "mcp.json:2: servers.a: given twice; first in line 1"},
		"a server that is text":      {"{\"servers\": {\"a\": \"x\"}}", "mcp.json:1: servers.a: must be a mapping, not text"},
		"neither command nor url":    {"{\"servers\": {\"a\":\n{}}}", "mcp.json:1: servers.a: needs a command, a url, a module, or a folder of skills"},
		"a wrong URL":                {"{\"servers\": {\"A\":\n{\"serverUrl\": \"example.com\"}}}", "mcp.json:2: servers.A.serverUrl: \"example.com\" does not begin with https:// or http://"},
		"two keys for one thing":     {"{\"servers\": {\"a\": {\"url\": \"https://a/\",\n\"serverUrl\": \"https://a/\"}}}", "mcp.json:2: servers.a.serverUrl: means the same as another key here: keep one of them"},
		"a header with a line break": {"{\"servers\": {\"a\": {\"url\": \"https://a/\", \"headers\": {\"A\": \"b\\nc\"}}}}", "mcp.json:1: servers.a.headers.A: the value holds a line break or another control character"},
		"disabled in words":          {"{\"servers\": {\"a\": {\"command\": \"x\", \"disabled\": \"yes\"}}}", "mcp.json:1: servers.a.disabled: must be true or false, not text"},
		"too deep":                   {strings.Repeat("[", 100), "mcp.json:1: nested deeper than 32 levels"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("mcp.json", []byte(tt.file), options(t.TempDir()))
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

func TestMCPShapes(t *testing.T) {
	const entry = `{"a": {"command": "x"}}`
	for name, content := range map[string]string{
		"mcp.json":      `{"servers": ` + entry + `}`,
		"settings.json": `{"editor.x": 1, "mcp": {"servers": ` + entry + `}}`,
		"noextension":   " \n// comment\n{\"mcpServers\": " + entry + `}`,
		"bom.JSON":      "\ufeff{\"mcpServers\": " + entry + "}\r\n",
	} {
		c, err := config.Parse(name, []byte(content), options(t.TempDir()))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(c.Servers) != 1 || c.Servers[0].Command != "x" {
			t.Errorf("%s: servers are %v", name, c.Servers)
		}
	}
}

func TestHostVariables(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", "/home/ann")
	for in, want := range map[string]string{
		"${workspaceFolder}/a":       dir + "/a",
		"${workspaceRoot}${/}a":      dir + "/a",
		"${cwd}${pathSeparator}a":    dir + "/a",
		"${workspaceFolderBasename}": filepath.Base(dir),
		"${userHome}":                "/home/ann",
		"${A}${env:A}${A:-b}":        "${A}${env:A}${A:-b}",
		"$A $$ ${":                   "$$A $$$$ $${",
		"${file}":                    "${FILE}",
		"${config:a.b}":              "${A_B}",
		"${command:9}":               "${VALUE_9}",
		"${}":                        "${VALUE_}",
	} {
		file := `{"servers": {"a": {"command": "x", "args": ["` + in + `"]}}}`
		servers, _, err := config.ImportMCP(strings.NewReader(file), filepath.Join(dir, ".cursor", "mcp.json"))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := servers[0].Args[0]; got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
		alone := strings.HasPrefix(in, "${file") || strings.Contains(in, ":") && !strings.Contains(in, "env") || in == "${}"
		if (servers[0].Fault != "") != alone {
			t.Errorf("%s: fault is %q", in, servers[0].Fault)
		}
	}
}

// What belongs to the host alone is named in one line, however much it is.
func TestHostKeysBesideServers(t *testing.T) {
	file := `{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "mcpServers": {},
		"projects": {"/x": {"mcpServers": {"z": {"command": "x"}}}, "/y": {}}}`
	_, reports, err := config.ImportMCP(strings.NewReader(file), "f")
	want := []tree.Problem{
		{File: "f", Line: 2, Path: "projects", Message: "ignored: the servers of single projects are not read"},
		{File: "f", Line: 0, Path: "", Message: "ignored, since they concern only the client: a, b, c, d, e, 2 more"},
	}
	if diff := cmp.Diff(want, reports); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A user's own file belongs to no workspace, so its ${workspaceFolder} cannot
// be known.
func TestNoWorkspace(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	servers, _, err := config.ImportMCP(strings.NewReader(`{"mcpServers": {"a": {"command": "x", "args": ["${workspaceFolder}"]}}}`),
		filepath.Join(home, ".cursor", "mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "only the client with these settings can fill in ${workspaceFolder}; in wasmgate.yaml write ${WORKSPACEFOLDER}"; servers[0].Fault != want {
		t.Errorf("fault is %q, want %q", servers[0].Fault, want)
	}
}

func TestRender(t *testing.T) {
	servers := []config.Server{
		server("files", func(s *config.Server) {
			s.Command = "npx"
			s.Args = []string{"-y", "", "yes", "3", "a: b", "# no", "<x>", "tab\t", "line\nbreak", "\u2028", "'", `"`, "é", "{}", "${HOME}/x", "*a", "&a", "~", "1e3", ".inf", "0x1", "-", "?"}
			s.Env = map[string]config.Secret{"A": "1", "b c": "null", "TRUE": "true"}
			s.Cwd, s.Timeout, s.Enabled, s.Prefix = "/srv/x", 90*time.Second, false, false
			s.Schema, s.Output, s.Sanitize = "normalized", "warn", "off"
			s.Timeouts = []config.ToolTimeout{{Pattern: "b", Timeout: time.Second}, {Pattern: "a*", Timeout: 2 * time.Minute}}
			s.Retry, s.Health = "idempotent", config.HealthOff
		}),
		server("no", func(s *config.Server) {
			s.URL, s.Transport, s.Health = "https://example.com/?a=b", "sse", time.Minute
			s.Headers = map[string]config.Secret{"X-A": ": "}
		}),
	}
	text := edit.Render(servers)
	o := options(t.TempDir())
	o.Getenv = environment(map[string]string{"HOME": "${HOME}"})
	c, err := config.Parse("wasmgate.yaml", text, o)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	faulty := []config.Server{{ID: "a", Command: "x", Enabled: true, Prefix: true, Fault: "one\ntwo"}}
	if got := string(edit.Render(faulty)); got != "servers:\n  # one two\n  a:\n    command: x\n" {
		t.Errorf("a fault is rendered as %q", got)
	}
	if diff := cmp.Diff(servers, c.Servers, undeclared); diff != "" {
		t.Errorf("what is read back differs (-want +got):\n%s\n%s", diff, text)
	}
}

func TestExtract(t *testing.T) {
	long := strings.Repeat("aB3", 12) // looks like a key, and is none
	tests := map[string]struct {
		in, out string // of the one place that is looked at
		set     func(*config.Server, string)
		get     func(config.Server) string
		moved   []extract.Moved
	}{
		"a variable by its name":           envCase("API_TOKEN", "abcdef", "${API_TOKEN}", "API_TOKEN", "abcdef"),
		"a variable by its shape":          envCase("X", long, "${X}", "X", long),
		"a doubled dollar is one":          envCase("DB_PASSWORD", "a$$b", "${DB_PASSWORD}", "DB_PASSWORD", "a$b"),
		"a connection with a password":     envCase("DATABASE", "pg://u:p@h/db", "${DATABASE}", "DATABASE", "pg://u:p@h/db"),
		"a key in a URL of a variable":     envCase("BASE", "https://h/?api_key=abc", "https://h/?api_key=${S_API_KEY}", "S_API_KEY", "abc"),
		"what is a variable already":       envCase("API_TOKEN", "${T}", "${T}", "", ""),
		"headers in a variable":            envCase("H", `{"Authorization": "Bearer abc", "V": "1"}`, "${H}", "H", `{"Authorization": "Bearer abc", "V": "1"}`),
		"plain JSON in a variable":         envCase("H", `{"region": "eu", "a": [{"b": "c"}]}`, `{"region": "eu", "a": [{"b": "c"}]}`, "", ""),
		"a plain variable":                 envCase("LOG_LEVEL", "debug", "debug", "", ""),
		"a count of tokens":                envCase("MAX_TOKENS", "4096", "4096", "", ""),
		"where a key is":                   envCase("SSH_KEY_PATH", "/home/a/.ssh/id", "/home/a/.ssh/id", "", ""),
		"a switch":                         envCase("USE_TOKEN", "true", "true", "", ""),
		"a package":                        argCase("@modelcontextprotocol/server-filesystem@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31", "", ""),
		"a path":                           argCase("/Users/ann/Documents/Projects2026/wasmgate-Test", "/Users/ann/Documents/Projects2026/wasmgate-Test", "", ""),
		"an option with its value":         argCase("--api-key=abc", "--api-key=${S_API_KEY}", "S_API_KEY", "abc"),
		"a header in an argument":          argCase("Authorization: Bearer abc", "Authorization: Bearer ${S_AUTHORIZATION}", "S_AUTHORIZATION", "abc"),
		"an argument by its shape":         argCase(long, "${S_SECRET}", "S_SECRET", long),
		"a connection in an argument":      argCase("pg://u:p@h/db", "${S_URL}", "S_URL", "pg://u:p@h/db"),
		"a bearer token":                   headerCase("Authorization", "Bearer abc", "Bearer ${S_TOKEN}", "S_TOKEN", "abc"),
		"a key in a header":                headerCase("x-api-key", "abc", "${S_X_API_KEY}", "S_X_API_KEY", "abc"),
		"a plain header":                   headerCase("X-Region", "eu", "eu", "", ""),
		"a key in a query":                 urlCase("https://h/mcp?apiKey=abc&x=1", "https://h/mcp?apiKey=${S_APIKEY}&x=1", "S_APIKEY", "abc"),
		"a key in a path":                  urlCase("https://h/"+long+"/mcp", "https://h/${S_SECRET}/mcp", "S_SECRET", long),
		"a plain URL":                      urlCase("https://h/mcp?x=1", "https://h/mcp?x=1", "", ""),
		"a dollar brace that is not a var": envCase("API_TOKEN", "a$${b}", "${API_TOKEN}", "API_TOKEN", "a${b}"),
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := config.Server{ID: "s"}
			tt.set(&in, tt.in)
			out, moved := extract.Servers([]config.Server{in})
			if got := tt.get(out[0]); got != tt.out {
				t.Errorf("becomes %q, want %q", got, tt.out)
			}
			if diff := cmp.Diff(tt.moved, moved); diff != "" {
				t.Errorf("moved (-want +got):\n%s", diff)
			}
			if tt.get(in) != tt.in {
				t.Error("the argument was changed")
			}
		})
	}
}

type extractCase = struct {
	in, out string
	set     func(*config.Server, string)
	get     func(config.Server) string
	moved   []extract.Moved
}

func moves(where, name, value string) []extract.Moved {
	if name == "" {
		return nil
	}
	return []extract.Moved{{Server: "s", Where: where, Name: name, Value: config.Secret(value)}}
}

func envCase(key, in, out, name, value string) extractCase {
	return extractCase{
		in, out, func(s *config.Server, v string) { s.Env = map[string]config.Secret{key: config.Secret(v)} },
		func(s config.Server) string { return string(s.Env[key]) }, moves("env."+key, name, value),
	}
}

func headerCase(key, in, out, name, value string) extractCase {
	return extractCase{
		in, out, func(s *config.Server, v string) { s.Headers = map[string]config.Secret{key: config.Secret(v)} },
		func(s config.Server) string { return string(s.Headers[key]) }, moves("headers."+key, name, value),
	}
}

func argCase(in, out, name, value string) extractCase {
	return extractCase{
		in, out, func(s *config.Server, v string) { s.Args = []string{"--verbose", "x", v} },
		func(s config.Server) string { return s.Args[2] }, moves("args[2]", name, value),
	}
}

func urlCase(in, out, name, value string) extractCase {
	return extractCase{
		in, out, func(s *config.Server, v string) { s.URL = v },
		func(s config.Server) string { return s.URL }, moves("url", name, value),
	}
}

func TestExtractSharesAndSeparates(t *testing.T) {
	env := func(v string) map[string]config.Secret { return map[string]config.Secret{"TOKEN": config.Secret(v)} }
	out, moved := extract.Servers([]config.Server{
		{ID: "a", Env: env("one")}, {ID: "b", Env: env("one")}, {ID: "c-d", Env: env("two")}, {ID: "c-d", Env: env("six")},
		{ID: "f", Args: []string{"--token", "abc", "--port", "80"}},
	})
	var names []string
	for _, m := range moved {
		names = append(names, m.Server+" "+m.Where+" "+m.Name)
	}
	want := []string{"a env.TOKEN TOKEN", "b env.TOKEN TOKEN", "c-d env.TOKEN C_D_TOKEN", "c-d env.TOKEN C_D_TOKEN_2", "f args[1] F_TOKEN"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := out[1].Env["TOKEN"]; string(got) != "${TOKEN}" {
		t.Errorf("b has %q", string(got))
	}
	if diff := cmp.Diff([]string{"--token", "${F_TOKEN}", "--port", "80"}, out[4].Args); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImportMCPIsBounded(t *testing.T) {
	_, _, err := config.ImportMCP(&spaces{}, "mcp.json")
	if err == nil || err.Error() != "mcp.json: larger than 8 MiB" {
		t.Errorf("an endless file: %v", err)
	}
	if _, _, err := config.ImportMCP(&broken{}, "mcp.json"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("an unreadable file: %v", err)
	}
}

type spaces struct{}

func (*spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, os.ErrClosed }
