package guest

import (
	"testing"

	"github.com/wasmgate/wasmgate/bridge/dial"
	"github.com/wasmgate/wasmgate/sandbox"
)

func TestCheck(t *testing.T) {
	if _, err := Check(Grant{Secrets: []string{"KEY"}}, nil); err == nil {
		t.Error("a secret that there is not can be granted")
	}
	grant, err := Check(Grant{HTTP: []dial.Rule{{Origin: "https://example.com"}}, Dirs: []sandbox.Dir{{Path: "/srv", Write: true}}, KV: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"http":[{"origin":"https://example.com","methods":["GET","HEAD"],"path":"/"}],"dirs":[{"path":"/srv","write":true}],"kv":true}`
	if got, err := grant.capabilities(); err != nil || got.String() != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if got, err := new(Granted).capabilities(); err != nil || got.String() != "{}" {
		t.Errorf("of nothing: %s, %v", got, err)
	}
}

func TestResult(t *testing.T) {
	for _, tt := range []struct {
		of   sandbox.Result
		want string
	}{
		{sandbox.Result{Output: []byte(`{"a":1}`)}, `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`},
		{sandbox.Result{Output: []byte(`"a"`)}, `{"content":[{"type":"text","text":"\"a\""}]}`},
		{sandbox.Result{Output: []byte(`{"a":1}`), IsError: true}, `{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":true}`},
		{sandbox.Result{Output: []byte(`{"content":[]}`), Whole: true}, `{"content":[]}`},
	} {
		if got, err := result(tt.of); err != nil || got.Doc.String() != tt.want || got.IsError != tt.of.IsError {
			t.Errorf("%s: got %s, %v, want %s", tt.of.Output, got.Doc, err, tt.want)
		}
	}
	if _, err := result(sandbox.Result{Output: []byte(`{"a":1,"a":2}`)}); err == nil {
		t.Error("an output that is not a strict JSON is a result")
	}
}
