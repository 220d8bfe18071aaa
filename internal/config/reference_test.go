package config

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/config/tree"
)

var updateReference = flag.Bool("update", false, "write docs/reference/configuration.md")

// A documentedKey is a key of the file: its path, where NAME is a name of the user's own and [] an
// item of a list, and what it takes.
type documentedKey struct {
	path, takes, usual string
	restart            bool
}

// specialTypes are the types of keys that have a reader of their own; see [decode.Words].
var specialTypes = map[string]string{
	"age": "age such as `30d`", "health": "duration from 1s to 24h, or `off`", "seconds": "duration in whole seconds", "ratio": "number from 0 to 1",
	"profile": "`" + strings.Join(profiles, "`, `") + "`", "program": "list: program, arguments", "places": "list of paths", "args": "list of texts", "ports": "list of ports",
	"listen": "address, or list of addresses", "offered": "list of groups", "methods": "list of methods", "command": "text", "apps": "`on`, `off` or table",
	"skills": "`on`, `off` or table", "login": "mode, or table", "existing": "list of paths", "keyset": "URL or path", "roles": "table: value to role", "groups": "table: value to group",
	"addresses": "list of addresses or networks",
}

// checkTypes are the types of texts that a check reads.
var checkTypes = map[string]string{
	"approver": "principal, `role:NAME`", "bundle": "name", "console": "loopback address, or `off`", "digest": "SHA-256 in hex", "endpoint": "URL", "group": "group", "guest": "path",
	"header": "header name", "host": "host", "hostport": "address", "identity": "text", "link": "origin", "moduleserver": "name of a server", "origin": "origin", "pack": "pack",
	"path": "path", "tool": "tool pattern", "mime": "media type", "pointer": "JSON Pointer", "prefix": "path of a URL", "public": "URL", "regexp": "regular expression", "repository": "repository", "role": "role",
	"scope": "scope", "secretname": "secret", "source": "origin", "url": "URL", "web": "origin",
}

// takes says what a key takes, as a reader of the page would say it.
func takes(k decode.Key) string {
	word := strings.Join(k.Words, " ")
	if s := specialTypes[word]; s != "" {
		return s
	}
	low, high, bounded := strings.Cut(word, "..")
	one := "text"
	switch {
	case strings.Contains(word, "|"):
		one = "`" + strings.ReplaceAll(k.Words[len(k.Words)-1], "|", "`, `") + "`"
	case len(k.Words) > 0 && checkTypes[k.Words[0]] != "":
		one = checkTypes[k.Words[0]]
	}
	switch k.Field.Interface().(type) {
	case bool:
		if word == "" {
			return "`true`, `false`"
		}
		return one
	case int, int64, time.Duration:
		of := map[bool]string{true: "size", false: "number"}[k.Field.Kind() == reflect.Int64]
		if k.Field.Type() == reflect.TypeFor[time.Duration]() {
			of = "duration"
		}
		if !bounded {
			return of
		}
		return of + " from " + low + " to " + high
	case []string:
		if strings.HasSuffix(one, "`") {
			return "list of " + one
		}
		return "list of " + one + "s"
	case map[string]Secret:
		return "table of texts"
	}
	return one
}

// isTable reports whether a key of type t is a table, or a list of tables.
func isTable(t reflect.Type) bool {
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[netip.Prefix]()
}

// allWords are those of the configuration, and of the files that it names.
func allWords() *decode.Words {
	all := &decode.Words{Checks: maps.Clone(words.Checks), Readers: words.Readers}
	all.Checks["pointer"] = check.Pointer
	return all
}

// documented lists the keys of a struct below path.
func documented(v reflect.Value, path string, restart bool) (all []documentedKey) {
	allWords().Fields(reflect.New(v.Type()).Interface()) // which panics if a tag is wrong
	for _, k := range decode.Keys(v) {
		at := tree.Join(path, k.Name)
		switch k.Name {
		case "*":
			continue
		case "=":
			at = path
		}
		usual := k.Usual
		if usual != "" {
			usual = "`" + strings.ReplaceAll(usual, " ", "`, `") + "`"
		}
		table := isTable(k.Field.Type())
		if !table || specialTypes[strings.Join(k.Words, " ")] != "" {
			all = append(all, documentedKey{at, takes(k), usual, restart || k.Restart})
		}
		if !table {
			continue
		}
		switch k.Field.Kind() {
		case reflect.Struct:
			all = append(all, documented(k.Field, at, restart || k.Restart)...)
		case reflect.Pointer:
			all = append(all, documented(reflect.Zero(k.Field.Type().Elem()), at, restart || k.Restart)...)
		case reflect.Slice:
			of, below := reflect.Zero(k.Field.Type().Elem()), "[]"
			if decode.Keys(of)[0].Name == "*" {
				below = ".NAME"
			}
			all = append(all, documented(of, at+below, restart || k.Restart)...)
		}
	}
	if r, ok := reflect.New(v.Type()).Interface().(decode.Reading); ok {
		for _, name := range slices.Sorted(maps.Keys(r.Readers())) {
			if at := tree.Join(path, name); !slices.ContainsFunc(all, func(k documentedKey) bool { return k.path == at }) {
				all = append(all, documentedKey{path: at, restart: restart})
			}
		}
	}
	return all
}

// roots are the tables that the page documents.
var roots = []struct {
	path string
	of   any
}{
	{"", Config{}}, {"servers.NAME", Server{}}, {"tools.NAME", Module{}}, {"secrets.NAME", BoundSecret{}}, {"labels", policydata.ToolLabel{}}, {"ratelimit", policydata.RateLimit{}},
}

// readElsewhere are keys that no tag and no [decode.Reading] names.
var readElsewhere = []string{"version", "servers.NAME.env_from", "servers.NAME.env_file", "servers.NAME.module", "servers.NAME.sha256", "servers.NAME.limits", "servers.NAME.verify"}

// TestReference: docs/reference/configuration.md has a row for each key, with an example that the
// reader of the file accepts. Run it with -update after a change of a key.
func TestReference(t *testing.T) {
	known := map[string]documentedKey{}
	for _, root := range roots {
		for _, k := range documented(reflect.ValueOf(root.of), root.path, false) {
			known[k.path] = k
		}
	}
	for _, path := range readElsewhere {
		known[path] = documentedKey{path: path}
	}
	template, err := os.ReadFile("testdata/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	rows, seen := 0, map[string]bool{}
	for line := range strings.Lines(string(template)) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(cells) < 3 || strings.Contains(cells[0], " ") {
			rows = 0
			page.WriteString(line)
			continue
		}
		cells = append(cells, "", "")[:5]
		path, example, what, usual, takes := cells[0], cells[1], cells[2], cells[3], cells[4]
		k, found := known[path]
		switch {
		case !found:
			t.Errorf("%s is not a key", path)
		case seen[path]:
			t.Errorf("%s has two rows", path)
		case k.usual != "" && usual != "" && !strings.HasPrefix(usual, k.usual):
			t.Errorf("the default of %s is %s, not %s", path, k.usual, usual)
		}
		seen[path] = true
		if k.restart {
			what += "; needs a restart"
		}
		if rows++; rows == 1 {
			page.WriteString("| key | type | default | example | what it is |\n| --- | --- | --- | --- | --- |\n")
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | `%s` | %s |\n", path, cmp.Or(takes, k.takes), cmp.Or(usual, k.usual), example, what)
		checkExample(t, path, example)
	}
	for path := range known {
		if !seen[path] {
			t.Errorf("testdata/configuration.md has no row for %s", path)
		}
	}
	const document = "../../docs/reference/configuration.md"
	if *updateReference {
		if err := os.WriteFile(document, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(document); err != nil || string(text) != page.String() {
		t.Errorf("%s is not what the keys say; run go test ./internal/config -run Reference -update (%v)", document, err)
	}
}

// otherKeys are the messages about what an example lacks when it is alone in a file.
var otherKeys = regexp.MustCompile(`does not exist|has no effect without|needs |no group is named|no secret is named|does not name|there is no principal|is not a media type|works only with calls`)

// checkExample reads a file that has the key alone, and expects nothing to be wrong at it.
func checkExample(t *testing.T, path, example string) {
	file, at := example, strings.NewReplacer("NAME", "name", "[]", "[0]").Replace(path)
	parts := strings.Split(strings.ReplaceAll(path, "NAME", "name"), ".")
	for i := len(parts) - 1; i >= 0; i-- {
		name, item := strings.CutSuffix(parts[i], "[]")
		if item {
			file = "[" + file + "]"
		}
		file = "{" + name + ": " + file + "}"
	}
	var err error
	dir := t.TempDir()
	named := filepath.Join(dir, "a.yaml")
	switch parts[0] {
	case "labels":
		err = os.WriteFile(named, []byte(strings.Replace(file, "labels", "name", 1)), 0o600)
		if err == nil {
			_, err = policydata.ReadLabels(named)
		}
		at = strings.Replace(at, "labels", "name", 1)
	case "ratelimit":
		err = os.WriteFile(named, []byte("["+file[len("{ratelimit: "):len(file)-1]+"]"), 0o600)
		if err == nil {
			_, err = policydata.ReadRateLimits(named)
		}
		at = "[0]." + strings.TrimPrefix(at, "ratelimit.")
	default:
		if path != "version" {
			file = "{version: 1, " + file[1:]
		}
		getenv := func(string) (string, bool) { return "a value of the reader's own", true }
		_, err = Parse(named, []byte(file), Options{Dirs: Dirs{Home: dir, Config: dir, State: dir}, Getenv: getenv})
	}
	var problems tree.Problems
	if err != nil && !errors.As(err, &problems) {
		t.Errorf("%s: %v", path, err)
	}
	for _, p := range problems {
		if (p.Path == "" || strings.HasPrefix(p.Path, at)) && !otherKeys.MatchString(p.Message) {
			t.Errorf("the example of %s, %s: %s %s", path, example, p.Path, p.Message)
		}
	}
}
