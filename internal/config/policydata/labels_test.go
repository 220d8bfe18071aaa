package policydata_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config/policydata"
)

func TestReadLabels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.yaml")
	write(t, path, `# what tools are
files__read_text_file: {result: untrusted, private: true, effect: [read]}
mail__send: {result: echo, effect: [external], control: [/to, /cc]}
"pay__*": {result: echo, effect: [external, destructive], control: [], content: [/note]}
clock__now: {result: trusted, effect: [read]}
quiet__x: {effect: [local]}
chat__list: {effect: [read], ids: {"/*": channel}, identity: ["/*/sender"], names: ["/*/title"]}
chat__post: {effect: [external], to: {/channel: channel}, commits: {"/items/*/id": item, /when: }, makes: [/name], own: [/email], destroys: own}
`)
	got, err := policydata.ReadLabels(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []policydata.ToolLabel{
		{Pattern: "files__read_text_file", Result: "untrusted", Private: true, Effect: []string{"read"}},
		{Pattern: "mail__send", Result: "echo", Effect: []string{"external"}, Control: []string{"/to", "/cc"}},
		{Pattern: "pay__*", Result: "echo", Effect: []string{"external", "destructive"}, Control: []string{}, Content: []string{"/note"}},
		{Pattern: "clock__now", Result: "trusted", Effect: []string{"read"}},
		{Pattern: "quiet__x", Result: "untrusted", Effect: []string{"local"}},
		{
			Pattern: "chat__list", Result: "untrusted", Effect: []string{"read"},
			IDs: map[string]string{"/*": "channel"}, Identity: []string{"/*/sender"}, Names: []string{"/*/title"},
		},
		{
			Pattern: "chat__post", Result: "untrusted", Effect: []string{"external"}, To: []string{"/channel"}, Commits: []string{"/items", "/when"},
			Takes: map[string]string{"/channel": "channel", "/items/*/id": "item", "/when": ""}, Makes: []string{"/name"}, Own: []string{"/email"}, Destroys: "own",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if none, err := policydata.ReadLabels(""); none != nil || err != nil {
		t.Errorf("no file: %v, %v", none, err)
	}
	if _, err := policydata.ReadLabels(path + "x"); err == nil {
		t.Error("a file that does not exist was read")
	}
}

func TestReadLabelsProblems(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"a list":                       {"- a\n", `labels.yaml:1: must be a mapping, not a list`},
		"a pattern with * inside":      {"a*b: {effect: [read]}\n", `labels.yaml:1: ["a*b"]: "a*b" is not the name of a tool, or its beginning and *`},
		"the same tool twice":          {"a__b: {effect: [read]}\na__b: {effect: [local]}\n", `labels.yaml:2: a__b: given twice; first in line 1`},
		"an unknown result":            {"a__b: {result: clean, effect: [read]}\n", `labels.yaml:1: a__b.result: "clean" is not one of trusted, untrusted, echo`},
		"an unknown effect":            {"a__b: {effect: [write]}\n", `labels.yaml:1: a__b.effect[0]: "write" is not one of read, local, internal, external, destructive, egress, credential`},
		"no effect":                    {"a__b: {result: echo}\n", `labels.yaml:1: a__b.effect: is missing: list what the tool does, such as [read]`},
		"a pointer without its stroke": {"a__b: {effect: [external], control: [to]}\n", `labels.yaml:1: a__b.control[0]: "to" is not a JSON Pointer to an argument, such as /to`},
		"both ways to say to":          {"a__b: {effect: [external], control: [/to], to: [/to]}\n", `labels.yaml:1: a__b.control: means the same as to and commits together: write one or the other`},
		"a kind of ids that is none":   {"a__b: {effect: [read], ids: {/x: a b}}\n", `labels.yaml:1: a__b.ids["/x"]: "a b" is not the name of a kind of ids: letters, digits and . _ -`},
		"an unknown key":               {"a__b: {effect: [read], secret: true}\n", `labels.yaml:1: a__b.secret: unknown key`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "labels.yaml")
			write(t, path, tt.file)
			_, err := policydata.ReadLabels(path)
			if err == nil {
				t.Fatal("no problem")
			}
			if want := filepath.Join(filepath.Dir(path), tt.want); err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		})
	}
}
