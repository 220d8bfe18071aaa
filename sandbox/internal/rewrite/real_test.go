package rewrite_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/wasmgate/wasmgate/internal/npm"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// TestRealModules reads the modules of a list, which npm's client fetches into the
// folder that WASMGATE_MODULES names: each is cheap enough to compile. Those that
// are compiled within seconds have no more machine code than was estimated.
func TestRealModules(t *testing.T) {
	dir := os.Getenv("WASMGATE_MODULES")
	if dir == "" {
		t.Skip("WASMGATE_MODULES names no folder for the packages")
	}
	list, err := os.Open("testdata/modules.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for lines := bufio.NewScanner(list); lines.Scan(); {
		var m npm.File
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		t.Run(m.String(), func(t *testing.T) { checkReal(t, m.Fetch(t, dir)) })
	}
}

func checkReal(t *testing.T, wasm []byte) {
	decoded, err := rewrite.Decode(wasm)
	if err != nil {
		t.Fatal(err)
	}
	var unfit *rewrite.UnfitError
	if _, err := decoded.Seal(); err != nil && !errors.As(err, &unfit) {
		t.Fatal(err)
	}
	out, err := decoded.Meter()
	if err != nil {
		t.Fatal(err)
	}
	cost := decoded.Cost()
	t.Logf("%d bytes: %+v", len(wasm), cost)
	if len(wasm) > 4<<20 {
		return
	}
	if code := machineCode(t, out); cost.Code < code {
		t.Errorf("machine code of %d bytes was estimated at %d", code, cost.Code)
	}
}
