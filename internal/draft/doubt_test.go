package draft_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/draft"
)

func doubt(t *testing.T, name string, definition map[string]any) string {
	t.Helper()
	b, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	return draft.Of(map[string]gate.Doc{name: gate.MustDoc(string(b))}).Doubt(name)
}

// changes are verbs by which tools change something, with their forms.
var changes = strings.Fields(`delete remove write overwrite create update edit append insert rename move send post publish upload install execute run save set
	add drop destroy purge truncate wipe erase replace patch modify apply commit merge push deploy restart stop kill terminate enable disable revoke grant
	approve reject cancel archive restore import sync share forward pay transfer buy submit upsert format reset clear lock unlock move`)

func present(verb string) string {
	switch {
	case strings.HasSuffix(verb, "s"), strings.HasSuffix(verb, "sh"), strings.HasSuffix(verb, "x"):
		return verb + "es"
	case strings.HasSuffix(verb, "ply"):
		return strings.TrimSuffix(verb, "y") + "ies"
	}
	return verb + "s"
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// A server whose tools all claim to read, and whose names, texts or arguments say that they write.
func TestDoubt(t *testing.T) {
	claim := func(members map[string]any) map[string]any {
		members["annotations"] = map[string]any{"readOnlyHint": true, "destructiveHint": false}
		return members
	}
	check := func(name string, definition map[string]any) {
		t.Helper()
		if doubt(t, "s__"+name, claim(definition)) == "" {
			b, _ := json.Marshal(definition)
			t.Errorf("%s %s passes for a tool that only reads", name, b)
		}
	}
	n := 0
	for _, verb := range changes {
		names := []string{"%s_item", "%s-item", "%sItem", "%s", "item_%s", "read_and_%s", "get_or_%s_item", "find_then_%s", "fetchAnd%[2]s", "search_items_and_%s"}
		for _, form := range names {
			name := fmt.Sprintf(form, verb, title(verb))
			if i := strings.Index(name, "%!"); i >= 0 {
				name = name[:i]
			}
			check(name, map[string]any{"description": "Returns the item."})
			n++
		}
		for _, form := range []string{
			"%[1]s the item.", "%[2]s the item.", "This tool %[3]s the item.", "Get the item. %[2]s it afterwards.", "Gets the item; then %[1]s it.", "Reads the item.\n%[2]s it.",
			"Use this to %[1]s an item and read it.", "Returns an item that you name. It will %[1]s it as well.", "Read items - %[1]s them.",
		} {
			check("get_item", map[string]any{"description": fmt.Sprintf(form, verb, title(present(verb)), present(verb))})
			check("get_item", map[string]any{"title": fmt.Sprintf(form, title(verb), title(present(verb)), present(verb)), "description": "Returns the item."})
			n += 2
		}
	}
	for _, name := range []string{"read_unlink_file", "listEvictAll", "fetch-rewrite-file", "unlink_get_file", "get_d\u0435lete", "zap_get_file"} {
		check(name, map[string]any{})
		n++
	}
	for _, about := range []string{
		"Get the report. It gets deleted.", "Get the report. The original will be removed.", "The file is overwritten with what is read.", "Reads the report. D\u0435letes it.",
		"Returns the report. \uff44elete it.", "Returns it. 删除报告", "Löscht den Bericht.", "Supprime le rapport.", "Borra el informe.", "レポートを削除します",
	} {
		check("get_report", map[string]any{"description": about})
		n++
	}
	for _, arguments := range []string{
		"path content", "file data", "path text", "id body", "key value", "url", "url method body", "sql", "query_sql", "command", "cmd", "code", "expression", "script", "function",
		"id delete", "id overwrite", "path newText", "path edits", "table row_values", "path output_path", "id save_to", "id dest", "id destination", "id patch", "id updates", "id dryRun",
		"id confirm", "to subject text", "recipient", "cc", "id action", "id operation", "id method", "channel message", "id payload", "path new_name", "id force",
	} {
		properties := map[string]any{}
		for _, name := range strings.Fields(arguments) {
			properties[name] = map[string]any{"type": "string"}
		}
		about := "Returns the item."
		check("get_item", map[string]any{"description": about, "inputSchema": map[string]any{"type": "object", "properties": properties}})
		check("get_item", map[string]any{"description": about, "inputSchema": map[string]any{"type": "object", "properties": map[string]any{
			"options": map[string]any{"type": "object", "properties": properties}}}})
		check("get_item", map[string]any{"description": about, "inputSchema": map[string]any{"type": "object", "properties": map[string]any{"options": map[string]any{"$ref": "#/$defs/o"}},
			"$defs": map[string]any{"o": map[string]any{"anyOf": []any{map[string]any{"type": "object", "properties": properties}}}}}})
		n += 3
	}
	for _, property := range []map[string]any{
		{"enum": []string{"read", "delete"}}, {"enum": []string{"GET", "POST"}}, {"description": "Overwrites the item if true"}, {"description": "Where to save the item"},
	} {
		check("get_item", map[string]any{"description": "Returns the item.", "inputSchema": map[string]any{"properties": map[string]any{"how": property}}})
		n++
	}
	t.Logf("%d tools", n)
}

// A hint of the server can take a tool off the list.
func TestDoubtOfHints(t *testing.T) {
	for hints, doubtful := range map[string]bool{
		`{}`: false, `{"readOnlyHint":true}`: false, `{"readOnlyHint":false}`: true, `{"destructiveHint":true}`: true,
		`{"readOnlyHint":true,"destructiveHint":true}`: true,
	} {
		if why := doubt(t, "s__get_item", map[string]any{"description": "Returns the item.", "annotations": json.RawMessage(hints)}); (why != "") != doubtful {
			t.Errorf("%s: %q", hints, why)
		}
	}
}

// Tools that read, as servers describe them.
func TestNoDoubt(t *testing.T) {
	for name, definition := range map[string]string{
		"files__read_text_file":      `{"description":"Read the complete contents of a file as text. Only works within allowed directories.","inputSchema":{"properties":{"path":{},"head":{"description":"If provided, returns only the first N lines"}}}}`,
		"files__list_directory":      `{"description":"Get a detailed listing of all files and directories, with [FILE] and [DIR] prefixes. It cannot be modified; use write_file to change a file.","inputSchema":{"properties":{"path":{}}}}`,
		"git__get_commit":            `{"description":"Get details of a commit, its status, commit information, and types."}`,
		"git__list_deleted_branches": `{"description":"Lists branches that are deleted or archived."}`,
		"shop__get_release":          `{"description":"Retrieves the latest release"}`,
		"sheets__search":             `{"description":"Searches all sheets.","inputSchema":{"properties":{"query":{},"limit":{},"sort_order":{"enum":["asc","desc"]},"include_deleted":{"type":"boolean"}}}}`,
		"text__count_words":          `{"description":"Counts the words of a text.","inputSchema":{"properties":{"text":{}}}}`,
		"time__get_current_time":     `{"inputSchema":{"properties":{"timezone":{}}}}`,
		"cal__find_event":            `{"description":"Find events by their date. Does not create or change anything."}`,
	} {
		if why := draft.Of(map[string]gate.Doc{name: gate.MustDoc(definition)}).Doubt(name); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// Of the tools of real servers that are drafted as reading, few are in doubt.
func TestDoubtOfRealTools(t *testing.T) {
	corpus := os.Getenv("WASMGATE_CORPUS")
	if corpus == "" {
		t.Skip("WASMGATE_CORPUS is not set: the definitions of real servers are there")
	}
	f, err := os.Open(filepath.Join(corpus, "corpora", "tools", "benign.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tools := make(map[string]gate.Doc)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		d := gate.MustDoc(lines.Text())
		tools[strings.ReplaceAll(d.Get("source").Text(), "_", "-")+"__"+d.Get("name").Text()] = d
	}
	drafts := draft.Of(tools)
	reads, doubts := 0, 0
	for name := range tools {
		if effects := drafts.Label(name).Effects; len(effects) == 1 && effects[0] == "read" {
			reads++
			if drafts.Doubt(name) != "" {
				doubts++
			}
		}
	}
	t.Logf("%d of %d tools are drafted as reading, %d of them are in doubt", reads, len(tools), doubts)
	if reads < 100 || doubts > reads*15/100 {
		t.Errorf("%d of %d tools that read are in doubt", doubts, reads)
	}
}
