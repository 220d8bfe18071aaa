package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/app/calls"
	"github.com/wasmgate/wasmgate/internal/background"
)

// TestDocuments: what calls of chosen tools were made with is found by the digests of the
// log, which itself has none of it, and can be deleted while the chain holds.
func TestDocuments(t *testing.T) {
	cfg := load(t, "version: 1\naudit: {arguments: {tools: [\"local__h*\"]}}\n")
	a := start(t, cfg)
	_, _, end := run(t, a, app.Front{Listen: []string{"127.0.0.1:0"}})
	secret := "ghp_" + (rand.Text() + rand.Text())[:36]
	for _, c := range []struct{ tool, args string }{
		{"local__hash", `{"text":"canary-kept","algorithm":"sha256"}`}, {"local__hash", `{"text":"` + secret + `","algorithm":"sha256"}`},
		{"local__json_query", `{"json":"{\"a\":\"canary-not\"}","query":"a"}`},
	} {
		_, _ = a.Calls.Call(t.Context(), calls.Request{Tool: c.tool, Args: c.args})
	}
	end()
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(cfg.Audit.Path)
	if err != nil || bytes.Contains(log, []byte("canary")) {
		t.Fatalf("arguments are in the log, %v", err)
	}
	wanted := make(map[string]bool)
	for e, err := range audit.Read(t.Context(), cfg.Audit.Path, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Event == gate.Done {
			wanted[e.ArgsSHA256], wanted[e.ResultSHA256] = true, true
		}
	}
	delete(wanted, "")
	found, err := background.Documents(cfg, wanted, 0)
	if err != nil {
		t.Fatal(err)
	}
	kept, results := 0, 0
	for _, text := range found {
		var args struct{ Text string }
		if err := json.Unmarshal(text, &args); err != nil || bytes.Contains(text, []byte("canary-not")) || bytes.Contains(text, []byte(secret)) {
			t.Errorf("kept: %s, %v", text, err)
		}
		if args.Text == "canary-kept" {
			kept++
		}
		if bytes.Contains(text, []byte(`"content"`)) {
			results++
		}
	}
	if kept != 1 || results == 0 {
		t.Errorf("%d documents, %d of them what was asked, %d results", len(found), kept, results)
	}
	if err := os.RemoveAll(filepath.Join(filepath.Dir(cfg.Audit.Path), "arguments")); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.VerifyFiles([]string{cfg.Audit.Path}, audit.Head{}); err != nil {
		t.Error("without the documents:", err)
	}
}
