package configured_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmgate/wasmgate/bridge/configured"
	"github.com/wasmgate/wasmgate/bridge/gateway"
)

// A program uses the tools that a configuration file names.
func Example() {
	dir, err := os.MkdirTemp("", "configured-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "wasmgate.yaml")
	text := "version: 1\nstate: state/\ntools: {embedded: {module: embedded}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	gw, err := configured.Open(ctx, path, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close(ctx)
	client := gw.NewClient(gateway.ClientConfig{})
	tools, err := client.Tools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tools {
		fmt.Println(t.Offered)
	}
	// Output:
	// local__csv_query
	// local__hash
	// local__html_to_text
	// local__json_query
	// local__text_diff
}

// As programs do: the modules are compiled by a child then, which ends with its gateway.
func TestMain(m *testing.M) {
	gateway.ChildMain()
	os.Exit(m.Run())
}

func TestOpen(t *testing.T) {
	dir, err := os.MkdirTemp("", "configured") // the names of t.TempDir are too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "wasmgate.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version: 2\n")
	if _, err := configured.Open(t.Context(), path, nil); err == nil {
		t.Error("a wrong file: no error")
	}
	write("version: 1\nstate: state/\n")
	gw, err := configured.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configured.Open(t.Context(), path, nil); !errors.Is(err, configured.ErrRuns) {
		t.Errorf("a second gateway: %v", err)
	}
	for range 2 { // the second does nothing
		if err := gw.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	again, err := configured.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
