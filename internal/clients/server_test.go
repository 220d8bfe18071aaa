package clients

import (
	"reflect"
	"strings"
	"testing"
)

// written are files as people have them: with comments, other servers, and other settings.
var written = map[string][]string{
	"json": {"", "{}\n", "{\"theme\": \"dark\"}", "{\n\t\"MEMBER\": {\n\t\t\"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"files\"]}\n\t},\n\t\"n\": 12345678901234567890\n}\n", "{\r\n  \"MEMBER\": {},\r\n  \"z\": [1, 2]\r\n}\r\n", `{"MEMBER": {"a": {"url": "https://example.com/mcp"}}}`, `{"MEMBER": null}`},
	"toml": {"", "model = \"x\"\n", "# mine\nmodel = \"x\"\n\n[MEMBER.files]\ncommand = \"npx\"\nargs = [\"-y\", \"files\"]\n\n[MEMBER.files.env]\nA = \"b\"\n\n[tools]\nweb = true\n", "model = \"x\"\r\n[MEMBER.a]\r\nurl = \"https://example.com/mcp\"\r\n", "[tools]\nweb = true"},
	"yaml": {"", "GOOSE_MODEL: x\n", "# mine\nMEMBER:\n  files:\n    cmd: npx\n    args: [-y, files]\n    enabled: true\nGOOSE_MODEL: x\n", "MEMBER:\n    # first\n    a:\n        uri: https://example.com/mcp\n        type: sse\n    b: {type: builtin}\n", "MEMBER:\r\n  a:\r\n    uri: https://example.com/mcp\r\nx: 1\r\n"},
}

var here = System{"linux", "/home/ann", func(string) string { return "" }}

func TestServersOfClients(t *testing.T) {
	entries := []Entry{{Command: "/usr/bin/wasmgate", Args: []string{"serve", "--stdio"}}, {Command: `C:\a b\wasmgate.exe`, Args: []string{"serve", "--stdio", "--config", `C:\"q"`}}, {URL: "http://127.0.0.1:7420/mcp"}}
	for _, c := range here.Clients() {
		f := c.Servers[len(c.Servers)-1]
		if c.Member == "" || len(written[f.Format.Name]) == 0 {
			t.Fatalf("%s has servers in %q of a file of %s", c.ID, c.Member, f.Format.Name)
		}
		for _, text := range written[f.Format.Name] {
			before := []byte(strings.ReplaceAll(text, "MEMBER", c.Member))
			was, err := c.Entries(f.Format, before)
			if err != nil {
				t.Fatalf("%s: %v in %q", c.ID, err, before)
			}
			last := before
			for _, e := range entries {
				if c.ID == "claude-desktop" && e.URL != "" {
					if _, err := c.SetServer(f.Format, before, "wasmgate", e); err == nil {
						t.Errorf("%s takes a URL", c.ID)
					}
					continue
				}
				after, err := c.SetServer(f.Format, last, "wasmgate", e) // in the place of the one before
				if err != nil {
					t.Errorf("%s: %v", c.ID, err)
					continue
				}
				is, err := c.Entries(f.Format, after)
				if err != nil || !reflect.DeepEqual(is["wasmgate"], e) {
					t.Errorf("%s has %+v (%v) in\n%s", c.ID, is["wasmgate"], err, after)
				}
				if delete(is, "wasmgate"); !reflect.DeepEqual(is, was) {
					t.Errorf("%s has the others as %v, not %v", c.ID, is, was)
				}
				last = after
			}
			gone, err := c.RemoveServers(f.Format, last, "wasmgate")
			if err != nil {
				t.Errorf("%s: %v", c.ID, err)
			}
			if is, err := c.Entries(f.Format, gone); err != nil || !reflect.DeepEqual(is, was) {
				t.Errorf("%s: after all %v, %v", c.ID, is, err)
			}
			for line := range strings.Lines(string(before)) { // the last one of some gets a comma, or a line end
				if kept := strings.TrimSuffix(strings.Trim(line, " \t\r\n,{}"), " null"); !strings.Contains(string(gone), kept) {
					t.Errorf("%s lost %q:\n%s", c.ID, kept, gone)
				}
			}
			if others, err := c.RemoveServers(f.Format, before, "files", "a", "b"); err != nil && c.ID != "goose" {
				t.Errorf("%s: %v", c.ID, err)
			} else if left, _ := c.Entries(f.Format, others); err == nil && len(left) > 0 {
				t.Errorf("%s still has %v", c.ID, left)
			}
		}
	}
}

// What is written in a form that the editing does not know stays as it is, and the error has what to write.
func TestFormsThatAreNotKnown(t *testing.T) {
	for id, text := range map[string]string{
		"codex": "mcp_servers = {files = {command = \"npx\"}}\n",
		"goose": "extensions: {files: {cmd: npx}}\n",
	} {
		c, _ := here.Client(id)
		_, err := c.SetServer(c.Servers[len(c.Servers)-1].Format, []byte(text), "wasmgate", Entry{Command: "wasmgate", Args: []string{"serve"}})
		if err == nil || !strings.Contains(err.Error(), "write into it") || !strings.Contains(err.Error(), "serve") {
			t.Errorf("%s: %v", id, err)
		}
	}
}
