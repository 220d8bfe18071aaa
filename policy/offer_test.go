package policy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
	"github.com/wasmgate/wasmgate/policy"
)

const offerable = `{"name":"a__b","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","minimum":0},"c":{"type":"string","enum":["x","y"]},"d":{"type":"string","pattern":"^q"},"e":{"enum":[1.0,2,3]}}}}`

func offered(t *testing.T, rules string) gate.Doc {
	t.Helper()
	e := load(t, user(rules), policy.Options{Packs: []string{}})
	tool := newTool("a__b")
	tool.Definition = gate.MustDoc(offerable)
	if visible, err := e.Visible(t.Context(), alice, []*gate.Tool{tool}); err != nil || !visible[0] {
		t.Fatalf("%v, %v", visible, err)
	}
	return e.Offer(t.Context(), alice, tool)
}

func TestOffer(t *testing.T) {
	const a, b = "/inputSchema/properties/a", "/inputSchema/properties/b"
	tests := map[string]struct {
		rules, at, want string
	}{
		"one value":                                       {`allow contains "x" if input.arguments.a == "p"`, a, `{"type":"string","const":"p"}`},
		"a number":                                        {`allow contains "x" if input.arguments.b == 3`, b, `{"type":"integer","minimum":0,"const":3}`},
		"values of several rules":                         {"allow contains \"x\" if input.arguments.a == \"q\"\n\nallow contains \"y\" if input.arguments.a == \"p\"", a, `{"type":"string","enum":["p","q"]}`},
		"values of a list":                                {`allow contains "x" if input.arguments.a in {"p", "q"}`, a, `{"type":"string","enum":["p","q"]}`},
		"a beginning":                                     {`allow contains "x" if startswith(input.arguments.a, "/srv/docs.d/")`, a, `{"type":"string","pattern":"^/srv/docs\\.d/"}`},
		"several beginnings":                              {"allow contains \"x\" if startswith(input.arguments.a, \"/b\")\n\nallow contains \"y\" if startswith(input.arguments.a, \"/a\")", a, `{"type":"string","pattern":"^(?:/a|/b)"}`},
		"a value beside another condition":                {`allow contains "x" if { input.arguments.a == "p"; input.arguments.b > 5 }`, a, `{"type":"string","const":"p"}`},
		"asked for one, allowed for other":                {"allow contains \"x\" if input.arguments.a == \"p\"\n\nask contains \"y\" if input.arguments.a == \"q\"", a, `{"type":"string","const":"p"}`},
		"a value and a beginning":                         {"allow contains \"x\" if input.arguments.a == \"p\"\n\nallow contains \"y\" if startswith(input.arguments.a, \"/b\")", a, `{"type":"string"}`},
		"another rule that does not care":                 {"allow contains \"x\" if input.arguments.a == \"p\"\n\nallow contains \"y\" if input.arguments.b == 1", a, `{"type":"string"}`},
		"asked for anything":                              {"allow contains \"x\" if input.arguments.a == \"p\"\n\nask contains \"y\" if true", a, `{"type":"string","const":"p"}`},
		"all but one value":                               {`allow contains "x" if input.arguments.a != "p"`, a, `{"type":"string"}`},
		"not one value":                                   {`allow contains "x" if not input.arguments.a == "p"`, a, `{"type":"string"}`},
		"what is denied":                                  {"allow contains \"x\" if true\n\ndeny contains \"y\" if input.arguments.a == \"p\"", a, `{"type":"string"}`},
		"one of the values that are declared":             {`allow contains "x" if input.arguments.c == "x"`, "/inputSchema/properties/c", `{"type":"string","enum":["x"]}`},
		"some of the values that are declared":            {`allow contains "x" if input.arguments.c in {"z", "y"}`, "/inputSchema/properties/c", `{"type":"string","enum":["y"]}`},
		"all of the values that are declared":             {`allow contains "x" if input.arguments.c in {"x", "y"}`, "/inputSchema/properties/c", `{"type":"string","enum":["x","y"]}`},
		"none of the values that are declared":            {`allow contains "x" if input.arguments.c == "z"`, "/inputSchema/properties/c", `{"type":"string","enum":["x","y"]}`},
		"the beginning of some of those":                  {`allow contains "x" if startswith(input.arguments.c, "y")`, "/inputSchema/properties/c", `{"type":"string","enum":["y"]}`},
		"numbers that are declared, in whatever spelling": {`allow contains "x" if input.arguments.e in {1, 3}`, "/inputSchema/properties/e", `{"enum":[1.0,3]}`},
		"what has a pattern already":                      {`allow contains "x" if startswith(input.arguments.d, "/srv/")`, "/inputSchema/properties/d", `{"type":"string","pattern":"^q"}`},
		"the beginning of a number":                       {`allow contains "x" if startswith(input.arguments.b, "1")`, b, `{"type":"integer","minimum":0}`},
		"what the schema does not name":                   {`allow contains "x" if input.arguments.z == "p"`, "/inputSchema/properties/z", ``},
		"a part of an argument":                           {`allow contains "x" if input.arguments.a.k == "p"`, a, `{"type":"string"}`},
		"without any condition":                           {`allow contains "x" if true`, a, `{"type":"string"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := offered(t, tt.rules).At(tt.at).String(); got != tt.want && !(tt.want == "" && got == "null") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What a narrowed schema leaves out does not pass: over rules and calls made at
// random, every call that the policy lets pass keeps to what was offered.
func TestOfferLeavesOutOnlyWhatIsRefused(t *testing.T) {
	unraced.Long(t)
	r := seed.Rand(t)
	strings := []string{"p", "q", "/a/x", "/b/x", "p*", "(p)"}
	condition := func() string {
		switch r.IntN(6) {
		case 0:
			return fmt.Sprintf(`input.arguments.a == %q`, strings[r.IntN(len(strings))])
		case 1:
			return fmt.Sprintf(`input.arguments.a in {%q, %q}`, strings[r.IntN(len(strings))], strings[r.IntN(len(strings))])
		case 2:
			return fmt.Sprintf(`startswith(input.arguments.a, %q)`, strings[r.IntN(len(strings))][:1])
		case 3:
			return fmt.Sprintf(`input.arguments.b == %d`, r.IntN(3))
		case 4:
			return fmt.Sprintf(`not input.arguments.a == %q`, strings[r.IntN(len(strings))])
		default:
			return fmt.Sprintf(`input.arguments.b > %d`, r.IntN(3))
		}
	}
	narrowed, passed := 0, 0
	for range unraced.Fewer(150) {
		rules := ""
		for i := range 1 + r.IntN(3) {
			set := []string{"allow", "allow", "ask"}[r.IntN(3)]
			rules += fmt.Sprintf("%s contains \"%d\" if { %s; %s }\n\n", set, i, condition(), condition())
		}
		e := load(t, user(rules), policy.Options{Packs: []string{}})
		tool := newTool("a__b")
		tool.Definition = gate.MustDoc(offerable)
		visible, err := e.Visible(t.Context(), alice, []*gate.Tool{tool})
		if err != nil {
			t.Fatal(err)
		}
		if !visible[0] {
			continue
		}
		definition := e.Offer(t.Context(), alice, tool)
		if definition.String() != offerable {
			narrowed++
		}
		s, err := schema.NewCompiler().Compile(definition.Get("inputSchema"))
		if err != nil {
			t.Fatalf("%v: %s", err, definition)
		}
		for range 40 {
			args := gate.MustDoc(fmt.Sprintf(`{"a":%q,"b":%d}`, strings[r.IntN(len(strings))], r.IntN(4)))
			d, err := e.Authorize(context.Background(), gate.Query{Call: &gate.Call{Action: gate.CallTool, Name: "a__b", Who: alice, Args: args}, Tool: tool})
			if err != nil || d.Effect == gate.Deny || d.Effect == "" {
				continue
			}
			passed++
			if err := s.Validate(args); err != nil {
				t.Fatalf("%s passes, and the schema that is offered has no place for it: %v\n%s\n%s", args, err, definition, rules)
			}
		}
	}
	if narrowed < unraced.Fewer(10) || passed < unraced.Fewer(100) {
		t.Errorf("only %d schemas were narrowed, only %d calls passed", narrowed, passed)
	}
}
