package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type object = map[string]any

const sum = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// entry returns an entry with one package, changed.
func entry(kind, identifier, version string, changes object) object {
	p := object{"registryType": kind, "identifier": identifier, "version": version, "transport": object{"type": "stdio"}}
	for k, v := range changes {
		p[k] = v
	}
	return object{"packages": []object{p}}
}

func npm(changes object) object { return entry("npm", "@acme/weather", "1.2.3", changes) }

func docker(changes object) object {
	return entry("oci", "ghcr.io/acme/weather:1.2.3@"+sum, "", changes)
}

func at(url string, changes object) object {
	r := object{"type": "streamable-http", "url": url}
	for k, v := range changes {
		r[k] = v
	}
	return object{"remotes": []object{r}}
}

func args(in ...object) object { return object{"packageArguments": in} }
func runs(in ...object) object { return object{"runtimeArguments": in} }
func env(in ...object) object  { return object{"environmentVariables": in} }

// values are what a person gives.
var values = map[string]string{"folder": "/srv/docs", "TOKEN": "not $ecret", "tenant": "acme", "port": "8080", "odd": "--evil", "line": "a\nb", "bad": "evil.example.com/x"}

// TestEntries: honest entries become a command or a URL, or it is said what they lack; hostile ones are refused, and
// nothing of them is in what can be run.
func TestEntries(t *testing.T) {
	named := func(name string, o object) object { o["name"] = name; return o }
	for _, tt := range []struct {
		name  string
		entry object
		want  string // the command, or part of an error
		fails bool
	}{
		{"npm", npm(nil), "npx -y @acme/weather@1.2.3", false},
		{"npm with its runner", npm(object{"runtimeHint": "npx"}), "npx -y @acme/weather@1.2.3", false},
		{"npm, base", npm(object{"registryBaseUrl": "https://registry.npmjs.org"}), "npx -y @acme/weather@1.2.3", false},
		{"npm, -y", npm(runs(object{"type": "positional", "value": "-y"})), "npx -y @acme/weather@1.2.3", false},
		{"npm, folder", npm(args(object{"type": "positional", "valueHint": "folder", "format": "filepath", "isRequired": true})), "npx -y @acme/weather@1.2.3 /srv/docs", false},
		{"npm, fixed words", npm(args(object{"type": "positional", "value": "stdio"}, object{"type": "named", "name": "--port", "value": "{port}", "variables": object{"port": object{}}})), "npx -y @acme/weather@1.2.3 stdio --port=8080", false},
		{"npm, short option", npm(args(object{"type": "named", "name": "-p", "valueHint": "port"})), "", false},
		{"npm, switch", npm(args(object{"type": "named", "name": "--read-only", "isRequired": true})), "npx -y @acme/weather@1.2.3 --read-only", false},
		{"npm, left out", npm(args(object{"type": "named", "name": "--verbose"})), "npx -y @acme/weather@1.2.3", false},
		{"npm, default", npm(env(object{"name": "MODE", "default": "fast"})), "MODE=fast npx -y @acme/weather@1.2.3", false},
		{"npm, secret", npm(env(object{"name": "TOKEN", "isRequired": true, "isSecret": true})), "TOKEN=${vault:TOKEN} npx -y @acme/weather@1.2.3", false},
		{"npm, dollars", npm(env(object{"name": "PRICE", "value": "${HOME}"})), "PRICE=$${HOME} npx -y @acme/weather@1.2.3", false},
		{"npm, choice", npm(env(object{"name": "MODE", "default": "a", "choices": []string{"a", "b"}})), "MODE=a npx -y @acme/weather@1.2.3", false},
		{"npm, plain name", entry("npm", "weather-mcp", "0.1.0-beta.2", nil), "npx -y weather-mcp@0.1.0-beta.2", false},
		{"pypi", entry("pypi", "weather", "1.2", nil), "uvx weather@1.2", false},
		{"pypi, post", entry("pypi", "acme.weather_mcp", "1.2.post1", object{"runtimeHint": "uvx"}), "uvx acme.weather_mcp@1.2.post1", false},
		{"nuget", entry("nuget", "Acme.Weather", "1.2.3", args(object{"type": "positional", "value": "mcp"})), "dnx Acme.Weather@1.2.3 --yes -- mcp", false},
		{"oci", docker(nil), "docker run -i --rm --cap-drop=ALL --security-opt=no-new-privileges ghcr.io/acme/weather:1.2.3@" + sum, false},
		{"oci, variable", docker(env(object{"name": "TOKEN", "isSecret": true})), "TOKEN=${vault:TOKEN} docker run -i --rm --cap-drop=ALL --security-opt=no-new-privileges -e TOKEN ghcr.io/acme/weather:1.2.3@" + sum, false},
		{"oci, -e", docker(runs(object{"type": "named", "name": "-e", "value": "MODE=fast"})), "MODE=fast docker run -i --rm --cap-drop=ALL --security-opt=no-new-privileges -e MODE ghcr.io/acme/weather:1.2.3@" + sum, false},
		{"oci, folder", docker(runs(object{"type": "named", "name": "--mount", "value": "type=bind,src={folder},dst=/data", "variables": object{"folder": object{"isRequired": true}}})), "docker run -i --rm --cap-drop=ALL --security-opt=no-new-privileges --mount=type=bind,src=/srv/docs,dst=/data ghcr.io/acme/weather:1.2.3@" + sum, false},
		{"oci, by a tag", entry("oci", "docker.io/acme/weather:1.2.3", "", nil), "docker run -i --rm --cap-drop=ALL --security-opt=no-new-privileges docker.io/acme/weather:1.2.3@" + sum, false},
		{"oci, by no tag", entry("oci", "acme/weather", "", nil), "docker run -i --rm --cap-drop=ALL --security-opt=no-new-privileges acme/weather@" + sum, false},
		{"remote", at("https://mcp.example.com/mcp", nil), "https://mcp.example.com/mcp", false},
		{"remote, sse", at("https://example.com/sse", object{"type": "sse"}), "https://example.com/sse", false},
		{"remote, header", at("https://example.com/mcp", object{"headers": []object{{"name": "Authorization", "value": "Bearer {TOKEN}", "isSecret": true, "variables": object{"TOKEN": object{"isRequired": true}}}}}), "Authorization=Bearer ${vault:TOKEN} https://example.com/mcp", false},
		{"remote, tenant", at("https://{tenant}.example.com/mcp", object{"variables": object{"tenant": object{"isRequired": true}}}), "https://acme.example.com/mcp", false},
		{"remote of an account", named("io.github.acme/weather", at("https://weather.example.net/mcp", nil)), "https://weather.example.net/mcp", false},
		{"second package", object{"packages": []object{{"registryType": "mcpb", "identifier": "https://example.com/x.mcpb"}, {"registryType": "npm", "identifier": "weather", "version": "1.0.0"}}}, "npx -y weather@1.0.0", false},
		// what lacks something
		{"mcpb alone", entry("mcpb", "https://example.com/weather.mcpb", "1.0.0", nil), "published as an MCPB bundle", true},
		{"nothing", object{}, "nothing to run", true},
		{"unknown kind", entry("cargo", "weather", "1.0.0", nil), "are not known", true},
		{"serves http", npm(object{"transport": object{"type": "streamable-http"}}), "serves streamable-http", true},
		{"image by a tag that is unknown", entry("oci", "docker.io/acme/none:1.2.3", "", nil), "--digest sha256:", true},
		{"wanted", npm(env(object{"name": "ELSE", "isRequired": true})), "wants ELSE", true},
		{"no such choice", npm(env(object{"name": "port", "choices": []string{"1"}})), "is not one of", true},
		{"deleted", object{"deleted": true, "packages": []object{}}, "was deleted", true},
		// hostile
		{"option for a name", entry("npm", "--registry=https://evil.example.com", "1.0.0", nil), "is not a valid name", true},
		{"git for a name", entry("npm", "git+https://evil.example.com/x", "1.0.0", nil), "is not a valid name", true},
		{"file for a name", entry("npm", "../../evil", "1.0.0", nil), "is not a valid name", true},
		{"look-alike", entry("npm", "@\u0430cme/weather", "1.0.0", nil), "is not a valid name", true},
		{"range", entry("npm", "weather", "^1.0.0", nil), "is not exact", true},
		{"half a version", entry("npm", "weather", "1", nil), "is not exact", true},
		{"wildcard", entry("pypi", "weather", "1.x", nil), "is not exact", true},
		{"pypi extra", entry("pypi", "weather @ https://evil.example.com/x.whl", "1.0", nil), "is not a valid name", true},
		{"other runner", npm(object{"runtimeHint": "bash"}), "to be run by", true},
		{"other registry", npm(object{"registryBaseUrl": "https://evil.example.com"}), "comes from evil.example.com", true},
		{"runner's registry", npm(runs(object{"type": "named", "name": "--registry", "value": "https://evil.example.com"})), "option \"--registry", true},
		{"runner's command", npm(runs(object{"type": "positional", "value": "--call"}, object{"type": "positional", "value": "id"})), "option \"--call", true},
		{"another package", npm(runs(object{"type": "positional", "value": "evil"})), "the option", true},
		{"uvx index", entry("pypi", "weather", "1.0", runs(object{"type": "named", "name": "--index-url", "value": "https://evil.example.com"})), "option \"--index-url", true},
		{"privileged", docker(runs(object{"type": "named", "name": "--privileged"})), "option \"--privileged", true},
		{"whole disk", docker(runs(object{"type": "named", "name": "-v", "value": "/:/host"})), "option \"-v /:/host", true},
		{"mounted by the entry", docker(runs(object{"type": "named", "name": "--mount", "value": "type=bind,src=/etc,dst=/data"})), "the option", true},
		{"option for an argument", npm(args(object{"type": "positional", "value": "--registry=https://evil.example.com"})), "begins like an option", true},
		{"option from a person", npm(args(object{"type": "positional", "valueHint": "odd"})), "begins like an option", true},
		{"command in an option", npm(args(object{"type": "named", "name": "--x; id", "value": "y"})), "not a name of an option", true},
		{"preloaded", npm(env(object{"name": "NODE_OPTIONS", "value": "--require=/tmp/x"})), "could change what runs", true},
		{"linker", docker(env(object{"name": "ld_preload", "value": "/tmp/x"})), "could change what runs", true},
		{"control character", npm(env(object{"name": "X", "value": "a\u001b[2Jb"})), "a screen hides", true},
		{"turned round", npm(args(object{"type": "positional", "value": "a\u202eb"})), "a screen hides", true},
		{"line break", npm(args(object{"type": "positional", "valueHint": "line"})), "control character", true},
		{"circle", npm(args(object{"type": "positional", "value": "{a}", "variables": object{"a": object{"value": "{b}"}, "b": object{"value": "{a}"}}})), "refers to other variables", true},
		{"many", npm(object{"packageArguments": make([]object, 1000)}), "more than 64", true},
		{"long", npm(args(object{"type": "positional", "value": strings.Repeat("x", 1<<16)})), "more than 4096 bytes", true},
		{"its own secret", npm(env(object{"name": "T", "value": "literal", "isSecret": true})), "a secret of its own", true},
		{"other host", at("https://evil.example.net/mcp", nil), "not below example.com", true},
		{"host with a tail", at("https://example.com.evil.net/mcp", nil), "not below example.com", true},
		{"host glued on", at("https://evilexample.com/mcp", nil), "not below example.com", true},
		{"plain http", at("http://example.com/mcp", nil), "not an https URL", true},
		{"this machine", at("https://127.0.0.1/mcp", nil), "not a host of the Internet", true},
		{"address in digits", at("https://2130706433/mcp", nil), "not a host of the Internet", true},
		{"metadata", at("https://metadata.google.internal/mcp", nil), "not a host of the Internet", true},
		{"user", at("https://example.com@evil.net/mcp", nil), "not an https URL", true},
		{"punycode", named("io.github.acme/weather", at("https://xn--exmple-cua.com/mcp", nil)), "look like other letters", true},
		{"host from a value", at("https://{bad}.example.com/mcp", object{"variables": object{"bad": object{}}}), "is not allowed in this URL", true},
		{"image with options", entry("oci", "--privileged", "", nil), "not a valid name of an image", true},
		{"image by a bad digest", entry("oci", "acme/weather@sha256:00", "", nil), "not a digest", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := tt.entry
			if e["name"] == nil {
				e["name"] = "com.example/weather"
			}
			e["version"] = "1.2.3"
			text, err := json.Marshal(object{"server": e, "_meta": object{"io.modelcontextprotocol.registry/official": object{"status": map[bool]string{true: "deleted"}[e["deleted"] == true]}}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := planned(t, text, e["name"].(string))
			switch {
			case tt.fails && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%q, %v; want an error with %q", got, err, tt.want)
			case !tt.fails && (err != nil || tt.want != "" && got != tt.want):
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// TestGeneratedEntries: each text of an entry is in turn what no honest entry has there. It is refused, whatever else the
// entry has, or it is one word that starts nothing: the runner, its options and the package stay those of the honest entry.
func TestGeneratedEntries(t *testing.T) {
	options := []string{
		"-", "--", "-y", "-c", "--yes", "--registry=https://evil.example.com", "--package=evil", "--call=id", "--prefix=/", "--node-options=--require=/x",
		"--index-url=https://evil.example.com", "--with=evil", "--from=evil", "--privileged", "--volume=/:/host", "-v/:/host", "--network=host", "--pid=host",
		"--entrypoint=sh", "--cap-add=ALL", "--security-opt=seccomp=unconfined", "--device=/dev/sda", "--add-source=https://evil.example.com", "--configfile=/x",
	}
	ranges := []string{"", "*", "x", "latest", "next", "1", "1.2", "1.2.x", "1.2.*", "^1.2.3", "~1.2.3", ">=1.2.3", "<2.0.0", "=1.2.3", "1.2.3 || 2.0.0", "1.2.3 - 2.0.0", "v1.2.3", " 1.2.3", "1.2.3 ", "1.2.3,2.0.0", "==1.2.3", "~=1.2.3", "[1.2.3,)", "1.2.3\n", "npm:evil@1.2.3"}
	names := []string{
		"@\u0430cme/weather", "@acme/we\u0430ther", "@acme/weather\u200b", "@acme\u2215weather", "@acme/weath\u0435r", "\uff20acme/weather", "@acme/weather\u0000", "@acme/\u202erehtaew",
		"@ACME/weather", "@acme/weather ", "@acme//weather", "@acme/../evil", "./evil", "/tmp/evil", "evil.tgz@", "https://evil.example.com/x.tgz", "git+ssh://evil.example.com/x",
		"github:evil/x", "evil/x", "npm:evil", "file:evil", "@acme/weather@1.0.0", "xn--acme-8cd", "a b", "a;b", "$(id)", "`id`", "a&b", "a|b", strings.Repeat("a", 215),
	}
	hosts := []string{
		"http://example.com/mcp", "https://evil.net/mcp", "https://example.com.evil.net/mcp", "https://evilexample.com/mcp", "https://example.net/mcp", "https://example.com:x/mcp", "https://a@example.com/mcp",
		"https://[::1]/mcp", "https://[fe80::1%25a.b]/mcp", "https://10.0.0.1/mcp", "https://0x7f.1/mcp", "https://169.254.169.254/mcp", "https://localhost/mcp", "https://a.localhost/mcp", "https://nas.local/mcp", "https://ex\u0430mple.com/mcp",
		"https://xn--exmple-4nf.com/mcp", "https://mcp.xn--exmple-4nf.com/mcp", "ftp://example.com/mcp", "file:///etc/passwd", "//example.com/mcp", "javascript:alert(1)", "https:///mcp", "https://com/mcp", "https://example.com#@evil.net/",
	}
	refused := map[string][]object{}
	for _, text := range slices.Concat(options, ranges) {
		for _, kind := range []string{"npm", "pypi", "nuget"} {
			if !slices.Contains([]string{"1", "1.2", "v1.2.3"}, text) || kind == "npm" { // which are exact elsewhere
				refused["version"] = append(refused["version"], entry(kind, "weather", text, nil))
			}
		}
	}
	for _, text := range slices.Concat(options, names) {
		for _, kind := range []string{"npm", "pypi", "nuget", "oci"} {
			if kind != "oci" && kind != "nuget" && kind != "pypi" || !slices.Contains([]string{"evil/x", "github:evil/x", "npm:evil", "file:evil"}, text) {
				refused["name"] = append(refused["name"], entry(kind, text, map[bool]string{false: "1.2.3"}[kind == "oci"], nil))
			}
		}
		if !slices.Contains([]string{"-y", "--yes", "-"}, text) {
			name, value, _ := strings.Cut(text, "=")
			for _, with := range []func(object) object{npm, docker, func(o object) object { return entry("pypi", "weather", "1.2", o) }} {
				refused["runner"] = append(refused["runner"], with(runs(object{"type": "positional", "value": text})), with(runs(object{"type": "named", "name": name, "value": value})))
			}
		}
	}
	for _, text := range options {
		refused["argument"] = append(refused["argument"], npm(args(object{"type": "positional", "value": text})), npm(args(object{"type": "positional", "default": text})))
	}
	for _, text := range hosts {
		refused["host"] = append(refused["host"], at(text, nil))
		if u, err := url.Parse(text); err != nil || !strings.Contains(text, "evil") && !strings.HasPrefix(u.Host, "example.net") { // an account may have a host anywhere on the Internet
			of := at(text, nil)
			of["name"] = "io.github.acme/weather"
			refused["host of an account"] = append(refused["host of an account"], of)
		}
	}
	for _, name := range steering {
		if strings.HasSuffix(name, "_") {
			name += "X"
		}
		for _, name := range []string{name, strings.ToLower(name)} {
			refused["variable"] = append(refused["variable"], npm(env(object{"name": name, "value": "x"})), docker(runs(object{"type": "named", "name": "-e", "value": name + "=x"})))
		}
	}
	for n := range 4 { // circles of several lengths
		variables := object{}
		for i := range n + 1 {
			variables[fmt.Sprint("v", i)] = object{"value": fmt.Sprintf("{v%d}", (i+1)%(n+1))}
		}
		refused["circle"] = append(refused["circle"], npm(args(object{"type": "positional", "value": "{v0}", "variables": variables})))
	}
	for _, n := range []int{65, 1000} {
		list := slices.Repeat([]object{{"type": "positional", "value": "x"}}, n)
		refused["size"] = append(refused["size"], npm(args(list...)), npm(runs(list...)), npm(env(list...)), object{"packages": slices.Repeat([]object{{"registryType": "npm"}}, n)})
	}
	for place, entries := range refused {
		for _, e := range entries {
			if e["version"] = "1.2.3"; e["name"] == nil {
				e["name"] = "com.example/weather"
			}
			text, err := json.Marshal(object{"server": e})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := planned(t, text, e["name"].(string)); err == nil {
				t.Errorf("%s: %.300s runs %q", place, text, got)
			}
		}
	}
}

// planned returns what an entry runs, in one line.
func planned(t *testing.T, text []byte, name string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "server.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Fetch(t.Context(), file, name)
	if err != nil {
		return "", err
	}
	p, err := e.Plan(options())
	if err != nil {
		return "", err
	}
	if len(p.Wanted) > 0 {
		return "", fmt.Errorf("it wants %s", p.Wanted[0].Key())
	}
	var words []string
	for _, set := range []map[string]string{p.Env, p.Headers} {
		for k, v := range set {
			words = append(words, k+"="+v)
		}
	}
	slices.Sort(words)
	if p.URL != "" {
		return strings.Join(append(words, p.URL), " "), nil
	}
	return strings.Join(append(append(words, p.Command), p.Args...), " "), nil
}

func options() Options {
	return Options{
		Values: values, Here: func(string) bool { return true },
		Secret: func(name, _ string) (string, error) { return "${vault:" + name + "}", nil },
		Resolve: func(image string) (string, error) {
			if strings.Contains(image, "weather") {
				return sum, nil
			}
			return "", errors.New("no such image")
		},
		Literal: func(s string) string { return strings.ReplaceAll(s, "$", "$$") },
		Given:   func(s string) string { return s },
	}
}

// A program that is missing is named, and another package is taken instead.
func TestMissingRunner(t *testing.T) {
	o := options()
	o.Here = func(program string) bool { return program == "uvx" }
	e := Entry{Name: "com.example/weather", Packages: []Package{{Type: NPM, Identifier: "weather", Version: "1.0.0"}}}
	if _, err := e.Plan(o); err == nil || !strings.Contains(err.Error(), "npx, which is not installed") {
		t.Error(err)
	}
	e.Packages = append(e.Packages, Package{Type: PyPI, Identifier: "weather", Version: "1.0"})
	if p, err := e.Plan(o); err != nil || p.Command != "uvx" {
		t.Errorf("%v, %v", p, err)
	}
	e.Packages[0].Hint = "sh" // hostile: the other package does not save it
	if _, err := e.Plan(o); err == nil {
		t.Error("an entry with a hostile package was taken")
	}
}

// A registry answers for the name and the version that it is asked for, at its own address.
func TestFetch(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer other.Close()
	var asked []string
	mux := http.NewServeMux()
	say := func(pattern, text string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.EscapedPath())
			fmt.Fprint(w, text)
		})
	}
	say("/v0.1/servers/com.example%2Fgood/versions/latest", `{"server": {"name": "com.example/good", "version": "2.0.0"}, "_meta": {"io.modelcontextprotocol.registry/official": {"status": "active", "isLatest": true}}}`)
	say("/v0.1/servers/com.example%2Fgood/versions/1.0.0", `{"server": {"name": "com.example/good", "version": "1.0.0"}}`)
	say("/v0.1/servers/com.example%2Fother/versions/latest", `{"server": {"name": "com.example/0ther", "version": "1.0.0"}}`)
	say("/v0.1/servers/com.example%2Fold/versions/1.0.0", `{"server": {"name": "com.example/old", "version": "2.0.0"}}`)
	say("/v0.1/servers/com.example%2Fhuge/versions/latest", `{"server": "`+strings.Repeat("x", maxEntry)+`"}`)
	say("/v0.1/servers/com.example%2Fdeep/versions/latest", strings.Repeat("[", 100_000))
	say("/v0.1/servers/com.example%2Fpage/versions/latest", "<html>")
	mux.Handle("/v0.1/servers/com.example%2Fmoved/versions/latest", http.RedirectHandler(other.URL, http.StatusFound))
	mux.HandleFunc("/v0.1/servers/com.example%2Fround/versions/latest", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.String(), http.StatusFound)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	for word, want := range map[string]string{"com.example/good": "2.0.0", "com.example/good@1.0.0": "1.0.0"} {
		if e, err := Fetch(t.Context(), s.URL, word); err != nil || e.Version != want || len(e.SHA256) != 64 {
			t.Errorf("%s: %v, %v", word, e, err)
		}
	}
	if len(asked) != 2 {
		t.Errorf("asked %q", asked)
	}
	for word, want := range map[string]string{
		"com.example/none": "has no", "com.example/other": "was requested", "com.example/old@1.0.0": "was requested", "com.example/huge": "more than", "com.example/deep": "not an entry",
		"com.example/page": "not an entry", "com.example/moved": "redirects", "com.example/round": "redirects", "com.example/good@^1": "write an exact version", "com.example/good@latest || 1": "write an exact version",
		"../../etc": "not a name", "com.example/\u0430": "not a name", "com.example/a/b": "not a name", "-x.y/z": "not a name",
	} {
		if e, err := Fetch(t.Context(), s.URL, word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", word, e, err, want)
		}
	}
	for _, address := range []string{"http://registry.example.com", "ftp://registry.example.com", "https://user@registry.example.com", "https://"} {
		if _, err := Fetch(t.Context(), address, "com.example/good"); err == nil || !strings.Contains(err.Error(), "must be an https URL") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// An offline copy is a file, a list or a folder. The latest version is the highest, or the one that the registry says.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := put("one.json", `{"name": "com.example/a", "version": "1.9.0"}`)
	list := put("list.json", `{"servers": [{"server": {"name": "com.example/a", "version": "1.10.0"}}, {"server": {"name": "com.example/b", "version": "2.0.0"}}, {"server": {"name": "com.example/b", "version": "1.0.0"}, "_meta": {"io.modelcontextprotocol.registry/official": {"isLatest": true}}}]}`)
	put("notes.txt", "no entry")
	for _, tt := range []struct{ address, word, want string }{
		{one, "com.example/a", "1.9.0"}, {list, "com.example/a", "1.10.0"}, {dir, "com.example/a", "1.10.0"}, {dir, "com.example/a@1.9.0", "1.9.0"}, {dir, "com.example/b", "1.0.0"}, {dir, "com.example/b@2.0.0", "2.0.0"},
	} {
		if e, err := Fetch(t.Context(), tt.address, tt.word); err != nil || e.Version != tt.want {
			t.Errorf("%s %s: %v, %v", tt.address, tt.word, e, err)
		}
	}
	if _, err := Fetch(t.Context(), filepath.Join(dir, "none"), "com.example/a"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for i, v := range []string{"1.0.0-alpha", "1.0.0-beta", "1.0.0", "1.0.1", "1.2", "1.10.0", "2"} {
		for j, w := range []string{"1.0.0-alpha", "1.0.0-beta", "1.0.0", "1.0.1", "1.2", "1.10.0", "2"} {
			if got := Compare(v, w); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d", v, w, got)
			}
		}
	}
}
