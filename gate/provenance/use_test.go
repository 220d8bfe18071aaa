package provenance_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate/doc"
	"github.com/wasmgate/wasmgate/gate/provenance"
)

func arguments(p provenance.Provenance, args string) map[string]provenance.Argument {
	all := make(map[string]provenance.Argument)
	for a := range p.Arguments(doc.Must(`{"inputSchema":{"properties":{"to":{},"text":{}}}}`), doc.Must(args)) {
		all[a.Pointer] = a
	}
	return all
}

// A folder of one's own covers what is below it, and nothing that only looks so.
func TestFoldersOfOnesOwn(t *testing.T) {
	own := provenance.Identities{"/home/ann/docs", `C:\Users\ann\`, "docs", "/"}
	of := func(path string, effect provenance.ToolEffect) provenance.Argument {
		said := provenance.ToolLabels{Effects: []provenance.ToolEffect{effect}, To: []string{"/to"}}
		return arguments(provenance.For(provenance.Provenance{}, "files", said, own, nil), `{"to":`+string(doc.AppendString(nil, path))+`}`)["/to"]
	}
	for _, path := range []string{"/home/ann/docs", "/home/ann/docs/a.txt", "/home/ann/docs/a/b c", `C:\Users\ann\a.txt`, "C:/Users/ann/a/b"} {
		if a := of(path, provenance.EffectLocal); !a.Own || !a.Source.Trusted() {
			t.Errorf("%s: own %v, %v", path, a.Own, a.Source.Names())
		}
	}
	if a := of("/home/ann/docs/a.txt", provenance.EffectDestructive); !a.Own || a.Source.Trusted() {
		t.Errorf("removed: own %v, %v", a.Own, a.Source.Names())
	}
	for _, path := range []string{
		"/home/ann/docsx", "/home/ann/docs/../x", "/home/ann/docs/a/../../x", "/home/ann/docs/./../x", `/home/ann/docs\..\x`, "/home/ann/docs/%2e%2e/x", "/home/ann/docs/.ssh/config",
		"docs/a.txt", "/etc/passwd", "/home/ann", "home/ann/docs/a", "x/home/ann/docs/a", `C:\Users\eve`, `D:\Users\ann\a`, "/home/ann/docs/a\x00b",
	} {
		if a := of(path, provenance.EffectLocal); a.Own || a.Source.Trusted() {
			t.Errorf("%s: own %v, %v", path, a.Own, a.Source.Names())
		}
	}
}

// An empty text says as little as one that is left out, but not below a name that the caller chose.
func TestEmptyArguments(t *testing.T) {
	for args, want := range map[string]int{
		`{"to":""}`: 0, `{"to":"  "}`: 0, `{"to":"\"\""}`: 0, `{"to":[""],"text":null}`: 0, `{"to":["","a"]}`: 1, `{"to":{"eve@evil.example":""}}`: 1, `{"to":false}`: 1,
	} {
		if got := arguments(provenance.Provenance{}, args); len(got) != want {
			t.Errorf("%s: %v", args, got)
		}
	}
}
