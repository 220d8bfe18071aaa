package rewrite_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/packages"
	"github.com/wasmgate/wasmgate/sandbox/internal/rewrite"
)

// A listed module is one of the world, in a package that anybody can fetch.
type listed struct {
	packages.File
	Toolchain string `json:"toolchain"`
	Refused   string `json:"refused"` // why; "" if it is not
}

func realModules(t *testing.T) (all []listed) {
	list, err := os.Open("testdata/modules.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for lines := bufio.NewScanner(list); lines.Scan(); {
		var m listed
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// TestListOfModules checks that the list is of different modules, and of many toolchains.
func TestListOfModules(t *testing.T) {
	digests, toolchains := map[string]bool{}, map[string]int{}
	for _, m := range realModules(t) {
		if digests[m.SHA256] {
			t.Errorf("%s: its digest is in the list before", m)
		}
		digests[m.SHA256] = true
		toolchains[m.Toolchain]++
	}
	if len(digests) < 200 || len(toolchains) < 8 {
		t.Errorf("%d modules of %v", len(digests), toolchains)
	}
	t.Logf("%d modules of %v", len(digests), toolchains)
}

// TestRealModules reads the modules of the list. The clients of npm and Go fetch them, those of npm
// into the folder that WASMGATE_MODULES names. Each is cheap enough to compile, or is refused for
// the reason in the list. Those that are compiled within seconds have no more machine code than was
// estimated.
func TestRealModules(t *testing.T) {
	dir := os.Getenv("WASMGATE_MODULES")
	if dir == "" {
		t.Skip("WASMGATE_MODULES names no folder for the packages")
	}
	for _, m := range realModules(t) {
		t.Run(m.String(), func(t *testing.T) { checkReal(t, m.Fetch(t, dir), m.Refused) })
	}
}

func checkReal(t *testing.T, wasm []byte, refused string) {
	decoded, out, err := rewritten(wasm)
	if refused != "" || err != nil {
		if err == nil || err.Error() != refused {
			t.Errorf("%v; want %q", err, refused)
		}
		return
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

// rewritten reads a module, and writes it again in both ways.
func rewritten(wasm []byte) (*rewrite.Module, []byte, error) {
	decoded, err := rewrite.Decode(wasm)
	if err != nil {
		return nil, nil, err
	}
	var unfit *rewrite.UnfitError
	if _, err := decoded.Seal(); err != nil && !errors.As(err, &unfit) {
		return nil, nil, err
	}
	out, err := decoded.Meter()
	return decoded, out, err
}
