package policy_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/actions"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/policies"
	"github.com/wasmgate/wasmgate/policy"
	"github.com/wasmgate/wasmgate/policy/internal/input"
)

// An object is an object of the input, for one action.
type object struct {
	action string
	steps  []string // names; * is a member of a map, 0 one of a list
	shape  *input.Shape
}

// objects returns all objects of the input that have known fields and no others.
func objects() []object {
	var all []object
	seen := map[string]bool{}
	var visit func(o object)
	visit = func(o object) {
		if id := fmt.Sprintf("%p %q", o.shape, o.steps); seen[id] {
			return
		} else {
			seen[id] = true
		}
		below := func(step string, s *input.Shape) { visit(object{o.action, append(slices.Clip(o.steps), step), s}) }
		switch o.shape.Kind {
		case input.Map:
			below("*", o.shape.Each)
		case input.List:
			below("0", o.shape.Each)
		case input.Object:
			if !o.shape.Open {
				all = append(all, o)
			}
			for _, f := range o.shape.Fields {
				below(f.Name, f.Shape)
			}
		}
	}
	for _, action := range append(input.Actions(), "acme/search") {
		for _, s := range input.For(action) {
			visit(object{action, nil, s})
		}
	}
	return all
}

func (o object) ref() string {
	s := "input"
	for _, step := range o.steps {
		if step == "*" || step == "0" {
			s += "[_]"
		} else {
			s += "." + step
		}
	}
	return s
}

// plain reports whether the object is reached by names alone.
func (o object) plain() bool { return !slices.Contains(o.steps, "*") && !slices.Contains(o.steps, "0") }

func (o object) path(more string) string {
	return `["` + strings.Join(append(slices.Clip(o.steps), more), `", "`) + `"]`
}

// literal returns an input in which the object has a field.
func (o object) literal(field string) string {
	s := `{"` + field + `": "x"}`
	for i := len(o.steps) - 1; i >= 0; i-- {
		switch step := o.steps[i]; step {
		case "*":
			s = `{"/to": ` + s + `}`
		case "0":
			s = `[` + s + `]`
		default:
			s = `{"` + step + `": ` + s + `}`
		}
	}
	return s
}

// ruleForms are the forms in which a rule can name a field of an object. N is a number of its
// own, OBJ the object, FIELD the field, PATH the path from the input, ACTION the action.
var ruleForms = []string{
	`OBJ.FIELD == "x"`,
	`OBJ["FIELD"] == "x"`,
	`"x" in OBJ.FIELD`,
	`is_string(OBJ.FIELD)`,
	`o := OBJ; o.FIELD == "x"`,
	`k := "FIELD"; OBJ[k] == "x"`,
	`[o, _] := [OBJ, 1]; o.FIELD == "x"`,
	`o := {"it": OBJ}; o.it.FIELD == "x"`,
	`some k in ["FIELD"]; OBJ[k] == "x"`,
	`some k, _ in OBJ; k == "FIELD"`,
	`"FIELD" in object.keys(OBJ)`,
	`count([1 | OBJ.FIELD == "x"]) > 0`,
	`every o in [OBJ] { o.FIELD == "x" }`,
	`os := [o | o := OBJ]; os[0].FIELD == "x"`,
	`object.get(OBJ, "FIELD", "") == "x"`,
	`object.get(OBJ, ["FIELD"], "") == "x"`,
	`object.subset(OBJ, {"FIELD": "x"})`,
	`object.filter(OBJ, ["FIELD"]) != {}`,
	`object.remove(OBJ, {"FIELD"}) != {}`,
	`json.filter(OBJ, ["FIELD"]) != {}`,
	`json.remove(OBJ, ["/FIELD"]) != {}`,
	`object.union(OBJ, {"of-mine": 1}).FIELD == "x"`,
	`OBJ == {"FIELD": "x"}`,
	`walk(OBJ, [p, _]); p == ["FIELD"]`,
	`walk(OBJ, [["FIELD"], v]); v == "x"`,
	`walk(OBJ, [p, _]); p[0] == "FIELD"`,
	"fN(OBJ) }\nfN(o) if { o.FIELD == \"x\"",
	"fN(OBJ) == \"x\" }\nfN(o) := gN(o, \"FIELD\")\ngN(o, k) := o[k] if { true",
	"fN(OBJ) }\nfN({\"FIELD\": x}) if { x == 1",
	"rN.FIELD == \"x\" }\nrN := OBJ if { input.action == \"ACTION\"",
	"some o in rN; o.FIELD == \"x\" }\nrN contains OBJ if { input.action == \"ACTION\"",
	"rN.it.FIELD == \"x\" }\nrN.it := OBJ if { input.action == \"ACTION\"",
	"eN }\neN if { false } else := 1 if { input.action == \"ACTION\"; OBJ.FIELD == \"y\"",
}

// plainForms are more for objects that are reached by names alone.
var plainForms = []string{
	`not OBJ.FIELD == "x"`,
	`not OBJ.FIELD`,
	`x := $"{OBJ.FIELD}"; x != ""`,
	`object.get(input, PATH, "") == "x"`,
	`walk(input, [p, _]); p == PATH`,
	`walk(input, [PATH, _])`,
	"fN(input) }\nfN(i) if { i.REST.FIELD == \"x\"",
}

// testForms are those in which a test can name it. INPUT is an input with the field.
var testForms = []string{
	`deny with input as INPUT`,
	`deny with input as object.union({"action": "ACTION"}, INPUT)`,
	`deny with input as json.patch(INPUT, [{"op": "add", "path": "/session", "value": {}}])`,
	`i := INPUT; deny with input as i`,
	`some i in [INPUT]; deny with input as i`,
	"dN(INPUT) }\ndN(i) if { deny with input as i",
	"deny with input as iN }\niN := INPUT if { true",
	"deny with input as mN(INPUT) }\nmN(i) := object.union({\"action\": \"ACTION\"}, i) if { true",
}

// A misspelling is a rule in which a name is misspelt.
type misspelling struct {
	text, name, meant string
	from, to          int // lines
}

// misspell changes a letter of a name so that it is none of the others.
func misspell(r *rand.Rand, name string, others []string) string {
	for {
		at, letter := r.IntN(len(name)), string(rune('a'+r.IntN(26)))
		other := [...]string{
			name[:at] + name[at+1:], name[:at] + letter + name[at:], name[:at] + letter + name[at+1:],
			strings.ToUpper(name[:1]) + name[1:],
			name[:max(at-1, 0)] + name[at:min(at+1, len(name))] + name[max(at-1, 0):at] + name[min(at+1, len(name)):],
		}[r.IntN(5)]
		if !slices.Contains(others, other) && regexp.MustCompile(`^[a-zA-Z_]{2,}$`).MatchString(other) {
			return other
		}
	}
}

func fieldsOf(o object) (names []string) {
	for _, f := range o.shape.Fields {
		names = append(names, f.Name)
	}
	return names
}

// TestMisspeltFields: a misspelt field in each object of the input, in each form in which a
// policy can name one, is an error that says which field is meant, in the line of the rule.
func TestMisspeltFields(t *testing.T) {
	r := seed.Rand(t)
	const keywords = " in as if default with some every not else contains package import null true false "
	all := []string{}
	for _, o := range objects() {
		all = append(all, fieldsOf(o)...)
	}
	var rules, tests []misspelling
	n := 0
	for _, o := range objects() {
		forms, testable := slices.Clone(ruleForms), slices.Clone(testForms)
		if o.plain() && len(o.steps) > 0 {
			forms = append(forms, plainForms...)
			testable = append(testable, `deny with input.action as "ACTION" with OBJ.FIELD as "x"`, `deny with OBJ as {"FIELD": "x"} with input.action as "ACTION"`)
		}
		for i, form := range append(forms, testable...) {
			n++
			meant := o.shape.Fields[r.IntN(len(o.shape.Fields))].Name
			name := misspell(r, meant, append(all, strings.Fields(keywords)...))
			text := strings.NewReplacer("N(", fmt.Sprint(n, "("), "N ", fmt.Sprint(n, " "), "N.", fmt.Sprint(n, "."), "N;", fmt.Sprint(n, ";"),
				"OBJ", o.ref(), "FIELD", name, "PATH", o.path(name), "REST", strings.Join(o.steps, "."), "ACTION", o.action, "INPUT", withAction(o.literal(name), o.action)).Replace(form)
			if i < len(forms) {
				rules = append(rules, misspelling{text: `deny contains "` + fmt.Sprint(n) + `" if { input.action == "` + o.action + `"; ` + text + " }", name: name, meant: meant})
			} else {
				tests = append(tests, misspelling{text: fmt.Sprintf("test_%d if { %s }", n, text), name: name, meant: meant})
			}
		}
	}
	if len(rules) < 500 || len(tests) < 100 {
		t.Fatalf("%d rules, %d tests: too few", len(rules), len(tests))
	}
	check := func(file string, list []misspelling) {
		text, line := "package wasmgate\n", 2
		for i := range list {
			lines := strings.Count(list[i].text, "\n") + 1
			text += list[i].text + "\n"
			list[i].from, list[i].to = line, line+lines-1
			line += lines
		}
		problems, err := policy.Check(fstest.MapFS{file: {Data: []byte(text)}}, policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) < len(list) {
			t.Fatalf("%d rules, %d problems: %v", len(list), len(problems), problems[:min(3, len(problems))])
		}
		for _, m := range list {
			if !slices.ContainsFunc(problems, func(p policy.Problem) bool {
				return !p.Warning && p.File == file && p.Line >= m.from && p.Line <= m.to && names(p.Message, m.name, m.meant)
			}) {
				t.Errorf("nothing says that %q is meant by %q:\n%s\n%v", m.meant, m.name, m.text, slices.DeleteFunc(slices.Clone(problems), func(p policy.Problem) bool { return p.Line < m.from || p.Line > m.to }))
			}
		}
	}
	check("user.rego", rules)
	check("user_test.rego", tests)
}

func withAction(literal, action string) string {
	return strings.Replace(literal, "{", `{"action": "`+action+`", `, 1)
}

// names reports whether a message says that there is no such name, and which is meant.
func names(message, name, meant string) bool {
	return strings.Contains(message, `has no field "`+name+`"`) && regexp.MustCompile(`\b`+meant+`\b`).MatchString(strings.Replace(message, `"`+name+`"`, "", 1))
}

// TestMisspeltPacks: 200 mutations of the shipped policies, each in the name of a field, are
// errors that say which field is meant.
func TestMisspeltPacks(t *testing.T) {
	r := seed.Rand(t)
	var known []string
	for _, o := range objects() {
		known = append(known, fieldsOf(o)...)
	}
	field := regexp.MustCompile(`\b(?:input|value|input\.values\[pointer\])((?:\.[a-z_]+)+)`)
	mutations := 0
	for mutations < 200 {
		pack := policies.Packs()[r.IntN(len(policies.Packs()))]
		text, _, err := policies.Pack(pack)
		if err != nil {
			t.Fatal(err)
		}
		code := regexp.MustCompile(`(?m)^#.*$`).ReplaceAllStringFunc(string(text), func(s string) string { return strings.Repeat(" ", len(s)) })
		found := field.FindAllStringSubmatchIndex(code, -1)
		if len(found) == 0 {
			continue
		}
		at := found[r.IntN(len(found))]
		parts := strings.Split(code[at[2]+1:at[3]], ".")
		i := r.IntN(len(parts))
		meant := parts[i]
		if parts[0] == "request" && i > 0 {
			continue // it has whatever a module asks for
		}
		if !slices.Contains(known, meant) {
			t.Fatalf("%s: the pattern takes %q for a field", pack, code[at[0]:at[1]])
		}
		parts[i] = misspell(r, meant, known)
		mutated := code[:at[2]+1] + strings.Join(parts, ".") + code[at[3]:]
		mutations++
		line := strings.Count(code[:at[0]], "\n") + 1
		_, err = policy.Load(t.Context(), fstest.MapFS{"user.rego": {Data: []byte(mutated)}}, policy.Options{Packs: []string{}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("user.rego:%d: ", line)) || !names(err.Error(), parts[i], meant) {
			t.Errorf("%s:%d: nothing says that %q is meant by %q: %v", pack, line, meant, parts[i], err)
		}
	}
}

// TestOpenFields: what others decide on may have any names, and a policy that looks whether
// something is there is honest.
func TestOpenFields(t *testing.T) {
	for _, rule := range []string{
		`input.arguments.anything.at[0].all == "x"`,
		`input.principal.claims.groups[_] == "x"`,
		`input.tool.annotations["x-vendor"].level > 3`,
		`input.request.whatever == "x"`,
		`input.action == "elicitation/create"; input.request.requestedSchema.properties.pin`,
		`input.tool.labels == {}; input.tool.capabilities == {}; input.tool.origin == {}`,
		`input.tool.labels == {"result": "trusted", "private": false, "effect": ["read"]}`,
		`input.prompt == {"name": "files__greet", "server": "files", "groups": []}`,
		`input.values["/to"].listed; input.provenance["/to"][_] == "prompt"; input.carried["/body"]["https://a.example"][_] == "prompt"`,
		`input.action == "prompts/get"; not input.tool; not input.provenance`,
		`some kind in ["tool", "prompt", "resource", "method"]; input[kind].server == "files"`,
		`some part, v in input; v == "x"; part != "action"`,
		`walk(input.arguments, [path, v]); path[_] == "password"; v != ""`,
		`object.get(input, ["arguments", "deep", "er"], null) == null`,
		`object.get(input.arguments, "nmae", "") == "x"`,
		"title(input.tool) == \"x\"; title(input.resource) == \"x\" }\ntitle(o) := o.name\ntitle(o) := o.uri if { true",
		"title(input.tool) == \"x\"; title(data.other) == \"x\" }\ntitle(o) := o.name\ntitle(o) := o.caption if { true",
		`o := object.union(input.tool, {"mine": 1}); o.mine == 1`,
		`json.patch(input, [{"op": "add", "path": "/mine", "value": 1}]).mine == 1`,
		`o := {"nmae": input.tool.name}; o.nmae == "x"`,
		`input.action == "acme/search"; input.method.name == "files__acme/search"; input.arguments.q`,
		`startswith(input.action, "sandbox/"); input.request.path; input.request.key; input.request.origin`,
	} {
		problems, err := policy.Check(user(`deny contains "x" if { `+rule+" }\n"), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if !p.Warning || strings.Contains(p.Message, "wasmgate knows") {
				t.Errorf("%s: %v", rule, p)
			}
		}
	}
}

// TestMisspeltOpenFields: a name of an open part that is nearly a known one is a warning.
func TestMisspeltOpenFields(t *testing.T) {
	for rule, meant := range map[string]string{
		`input.tool.annotations.readonlyHint == true`:                                  "readOnlyHint",
		`input.action == "` + string(actions.Sample) + `"; input.request.maxToken > 5`: "maxTokens",
		`input.tool.name == "local__fetch"; input.request.hots == "a.example"`:         "host",
	} {
		problems, err := policy.Check(user(`deny contains "x" if { `+rule+" }\n"), policy.Options{})
		if err != nil || !slices.ContainsFunc(problems, func(p policy.Problem) bool {
			return p.Warning && strings.Contains(p.Message, `did you mean "`+meant+`"?`)
		}) {
			t.Errorf("%s: %v, %v", rule, problems, err)
		}
	}
}

// TestShippedFields: the packs, their tests and the rules in the documents name fields that
// there are.
func TestShippedFields(t *testing.T) {
	check := func(name string, files fstest.MapFS, packs ...string) {
		problems, err := policy.Check(files, policy.Options{Packs: append([]string{}, packs...)})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if !p.Warning {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
	for _, pack := range []string{"apps", "approve", "flow", "flow-ask", "grants", "ratelimit", "readonly", "skills"} {
		rules, tests, err := policies.Pack(pack)
		if err != nil {
			t.Fatal(err)
		}
		check(pack, fstest.MapFS{"user.rego": {Data: rules}, "user_test.rego": {Data: tests}})
	}
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	howTos, err := filepath.Glob("../docs/how-to/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, document := range slices.Concat(documents, howTos, []string{"../README.md"}) {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```rego\n(.*?)```").FindAllSubmatch(text, -1) {
			rules := string(block[1])
			if !strings.Contains(rules, "package ") {
				rules = "package wasmgate\n\n" + rules
			}
			blocks++
			check(fmt.Sprintf("%s, %s", document, rules), fstest.MapFS{"user.rego": {Data: []byte(rules)}}, "grants", "paths", "urls")
		}
	}
	if blocks == 0 {
		t.Error("the documents have no rules")
	}
}

// TestUnconfigured: a text that is compared with a server, a tool or a role and names none of
// the configuration is a warning.
func TestUnconfigured(t *testing.T) {
	known := policy.Names{Servers: []string{"files", "mail"}, Roles: []string{"dev", "lead"}, Tools: []*gate.Tool{newTool("files__read_file")}}
	for rule, want := range map[string]string{
		`input.tool.server == "fils"`:                                     `input.tool.server is compared with "fils": there is no such server; did you mean "files"?`,
		`input.tool.server in {"files", "mial"}`:                          `"mial": there is no such server; did you mean "mail"?`,
		`t := input.tool; s := "fils"; t.server == s`:                     `"fils"`,
		`input.server == "elsewhere"`:                                     `there is no such server`,
		`input.tool.name == "fils__read_file"`:                            `did you mean "files"?`,
		`input.tool.name == "files__raed_file"`:                           `there is no such tool of this server; did you mean "read_file"?`,
		`input.tool.name == "read_file"`:                                  `such a name begins with its server`,
		`startswith(input.tool.name, "fils__")`:                           `"fils__": there is no such server`,
		`startswith(input.tool.name, "files__rd")`:                        `no such tool`,
		`not input.tool.server == "fils"`:                                 `"fils"`,
		`input.tool.server != "fils"`:                                     `"fils"`,
		`"dve" in input.principal.roles`:                                  `there is no such role; did you mean "dev"?`,
		`some role in input.principal.roles; role in {"dev", "leed"}`:     `did you mean "lead"?`,
		`input.principal.roles[_] == "dve"`:                               `"dve"`,
		`input.tool.server == "files"; "dev" in input.principal.roles`:    "",
		`input.tool.name in {"files__read_file", "mail__send"}`:           "",
		`startswith(input.tool.name, "files__re")`:                        "",
		`startswith(input.tool.name, "fil")`:                              "",
		`input.tool.local_name == "delete"; input.arguments.name == "of"`: "",
	} {
		e := load(t, user(`deny contains "x" if { `+rule+" }\n"), policy.Options{})
		problems := policy.Unconfigured(e, known)
		if want == "" && len(problems) > 0 || want != "" && !slices.ContainsFunc(problems, func(p policy.Problem) bool {
			return p.Warning && p.File == "user.rego" && p.Line == 3 && strings.Contains(p.Message, want)
		}) {
			t.Errorf("%s: %v, want %q", rule, problems, want)
		}
	}
}

// TestTypes: a comparison that no input can meet is an error, and so is a function of what it does not take.
func TestTypes(t *testing.T) {
	for condition, want := range map[string]string{
		`input.action == 5`:                       "match error",
		`input.principal.roles == "admin"`:        "match error",
		`startswith(input.principal.roles, "x")`:  "startswith: invalid argument",
		`input.tool.name == ["files__read_file"]`: "match error",
	} {
		problems, err := policy.Check(user(`deny contains "x" if { `+condition+" }\n"), policy.Options{})
		if err != nil || !slices.ContainsFunc(problems, func(p policy.Problem) bool { return !p.Warning && strings.Contains(p.Message, want) }) {
			t.Errorf("%s: %v, %v, want %q", condition, problems, err, want)
		}
	}
}

// TestFixedActions: a rule is checked by the fields of its action, in whatever way it fixes it.
func TestFixedActions(t *testing.T) {
	for _, fixed := range []string{
		`input.action == "sandbox/http"`, `"sandbox/http" == input.action`, `a := "sandbox/http"; input.action == a`, `a := input.action; a == "sandbox/http"`,
		`input.action in {"sandbox/http", "sandbox/file"}`, `some a in ["sandbox/http"]; input.action == a`, `startswith(input.action, "sandbox/")`,
		`is_http`, `is_action("sandbox/http")`, `is_action_of(input, "sandbox/http")`, `input.tool.name == "local__fetch"; is_http`,
	} {
		const helpers = "is_http if input.action == \"sandbox/http\"\nis_action(a) if input.action == a\nis_action_of(i, a) if i.action == a\n"
		_, err := policy.Load(t.Context(), user(`deny contains "x" if { `+fixed+`; input.request.hots == "a.example" }`+"\n"+helpers), policy.Options{})
		if err == nil || !strings.Contains(err.Error(), "user.rego:3: ") || !names(err.Error(), "hots", "host") {
			t.Errorf("%s: %v", fixed, err)
		}
	}
}
