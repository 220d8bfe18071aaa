package policy_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

func TestLoadNamesEveryProblem(t *testing.T) {
	unraced.Long(t)
	tests := map[string]struct {
		files map[string]string
		o     policy.Options
		want  []string // beginnings of the problems, in their order
	}{
		"a syntax error in each of two files": {
			files: map[string]string{"a.rego": "package wasmgate\n\nallow contains 1 if {", "b/c.rego": "package wasmgate\nallow if {"},
			want:  []string{"a.rego:3: ", "b/c.rego:2: "},
		},
		"a file without a package": {
			files: map[string]string{"a.rego": "allow := true"},
			want:  []string{"a.rego:1: package expected"},
		},
		"an empty file": {
			files: map[string]string{"a.rego": ""},
			want:  []string{"a.rego:0: empty module"},
		},
		"a decision of the user's own": {
			files: map[string]string{"a.rego": "package wasmgate\n\ndecision := {\"effect\": \"allow\"} if true"},
			want:  []string{"a.rego:3: decision belongs to the gateway"},
		},
		"a decision by way of a package": {
			files: map[string]string{"a.rego": "package wasmgate.decision\n\neffect := \"allow\""},
			want:  []string{"a.rego:3: decision belongs to the gateway"},
		},
		"a decision by way of a reference": {
			files: map[string]string{"a.rego": "package wasmgate\n\ndecision.effect := \"allow\""},
			want:  []string{"a.rego:3: decision belongs to the gateway"},
		},
		"a decision in a test file": {
			files: map[string]string{"a_test.rego": "package wasmgate\n\ndecision := 1"},
			want:  []string{"a_test.rego:3: decision belongs to the gateway"},
		},
		"grants by way of a package": {
			files: map[string]string{"a.rego": "package grants\n\nx := 1"},
			want:  []string{"a.rego:1: package grants: data.grants belongs to the gateway"},
		},
		"allow as a value": {
			files: map[string]string{"a.rego": "package wasmgate\n\nallow := true"},
			want:  []string{"a.rego:3: allow is a set to which all rules add, and is empty by default"},
		},
		"a default that allows": {
			files: map[string]string{"a.rego": "package wasmgate\n\ndefault allow := true"},
			want:  []string{"a.rego:3: allow is a set to which all rules add, and is empty by default"},
		},
		"allow as an object": {
			files: map[string]string{"a.rego": "package wasmgate\n\nallow[x] := true if x := \"a\""},
			want:  []string{"a.rego:3: allow is a set to which all rules add, and is empty by default"},
		},
		"what strict compilation finds": {
			files: map[string]string{"a.rego": "package wasmgate\n\nimport data.lib\n\nallow contains \"x\" if {\n\ty := 1\n\ttrue\n}"},
			want:  []string{"a.rego:3: ", "a.rego:6: "},
		},
		"a set within a set": {
			files: map[string]string{"a.rego": "package wasmgate\n\nallow.more contains \"x\" if true"},
			want:  []string{"a.rego:3: allow is a set to which all rules add, and is empty by default"},
		},
		"a package within a set": {
			files: map[string]string{"a.rego": "package wasmgate.deny\n\nx := 1"},
			want:  []string{"a.rego:3: deny is a set to which all rules add, and is empty by default"},
		},
		"recursion": {
			files: map[string]string{"a.rego": "package wasmgate\n\nallow contains \"x\" if \"x\" in deny\n\ndeny contains \"x\" if \"x\" in allow"},
			want:  []string{"a.rego:3: ", "a.rego:5: "},
		},
		"grants that grant nothing to nobody": {
			o:    policy.Options{Grants: []policy.Grant{{}, {To: []string{"a", ""}, Tools: []string{"files", "a*b"}, Servers: []string{"A"}, Except: []string{""}}}},
			want: []string{"grants[0].to: missing", "grants[0]: grants nothing", "grants[1].to[1]: ", "grants[1].tools[0]: ", "grants[1].tools[1]: ", "grants[1].servers[0]: ", "grants[1].except[0]: "},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Load(t.Context(), tree(tt.files), tt.o)
			var ce *policy.CompileError
			if !errors.As(err, &ce) {
				t.Fatalf("error = %v, want a CompileError", err)
			}
			got := strings.Split(ce.Error(), "\n")
			ok := len(got) == len(tt.want)
			for i := 0; ok && i < len(got); i++ {
				ok = strings.Contains(got[i], tt.want[i])
			}
			if !ok {
				t.Errorf("problems:\n%s\nwant:\n%s", ce, strings.Join(tt.want, "\n"))
			}
			problems, err := policy.Check(tree(tt.files), tt.o)
			if diff := cmp.Diff(ce.Problems, problems); err != nil || diff != "" {
				t.Errorf("Check differs from Load: %v\n%s", err, diff)
			}
		})
	}
}

func tree(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestPoliciesReachNothingOutside(t *testing.T) {
	for _, call := range []string{
		`http.send({"method": "get", "url": "http://127.0.0.1"})`,
		`opa.runtime().env`,
		`net.lookup_ip_addr("localhost")`,
		`providers.aws.sign_req({}, {}, 1)`,
		`rego.parse_module("x", "package x")`,
		`rand.intn("x", 10)`,
		`uuid.rfc4122("x")`,
		`json.match_schema({}, {"$ref": "http://127.0.0.1"})`,
		`graphql.parse_query("{a}")`,
		`strings.render_template("{{.x}}", {"x": 1})`,
		`io.jwt.encode_sign({}, {}, {})`,
	} {
		_, err := policy.Load(t.Context(), user("allow contains \"x\" if "+call), policy.Options{})
		if err == nil || !strings.Contains(err.Error(), "user.rego:3: undefined function") {
			t.Errorf("%s: error = %v, want an undefined function", call, err)
		}
	}
	for _, call := range []string{
		`time.now_ns() > 0`, `net.cidr_contains("10.0.0.0/8", "10.1.2.3")`, `regex.match("a", "a")`, `json.is_valid("{}")`,
	} {
		if _, err := policy.Load(t.Context(), user("allow contains \"x\" if "+call), policy.Options{}); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestLoadRefusesMisuse(t *testing.T) {
	tests := map[string]struct {
		fsys fs.FS
		o    policy.Options
		want string
	}{
		"an unknown pack":    {o: policy.Options{Packs: []string{"nonsense"}}, want: `no policy pack "nonsense"; the packs are approve, apps, flow, flow-ask, grants, paths, ratelimit, readonly, skills, urls`},
		"a test as a pack":   {o: policy.Options{Packs: []string{"grants_test"}}, want: "no policy pack"},
		"a path as a pack":   {o: policy.Options{Packs: []string{"../policies/grants"}}, want: "no policy pack"},
		"a negative timeout": {o: policy.Options{Timeout: -time.Second}, want: "negative"},
		"a huge file":        {fsys: tree(map[string]string{"a.rego": "package a\n#" + strings.Repeat("x", 4<<20)}), want: "a.rego is larger than"},
		"a folder that is not there": {
			fsys: missing{}, want: "read policies: ",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := policy.Load(t.Context(), tt.fsys, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

type missing struct{}

func (missing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func TestCheckWarnsOfRulesWithoutEffect(t *testing.T) {
	problems, err := policy.Check(tree(map[string]string{
		"a.rego": `package wasmgate

import data.lib

allow contains "x" if lib.used(input.tool.name)

denies contains "misspelt" if true

denies contains "twice" if false

helper if input.arguments.a

deny contains "y" if helper
`,
		"lib.rego":    "package lib\n\nused(x) if x == \"a\"\n\nunused(x) if x == \"b\"\n",
		"other.rego":  "package other\n\nallow contains \"nobody sees this\" if true\n",
		"a_test.rego": "package a_test\n\ntest_x if { x := 1; true }\n",
	}), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		if s, _, ok := strings.Cut(p.String(), " has no effect"); ok {
			got = append(got, s)
		}
	}
	want := []string{
		"a.rego:7: warning: data.wasmgate.denies",
		"lib.rego:5: warning: data.lib.unused",
		"other.rego:3: warning: data.other.allow",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestCheckCompilesTests(t *testing.T) {
	problems, err := policy.Check(tree(map[string]string{
		"a_test.rego": "package a_test\n\ntest_x if nonsense(1)\n",
	}), policy.Options{})
	if err != nil || len(problems) != 1 || problems[0].File != "a_test.rego" || problems[0].Line != 3 || problems[0].Warning {
		t.Errorf("Check = %v, %v; want one problem at a_test.rego:3", problems, err)
	}
}
