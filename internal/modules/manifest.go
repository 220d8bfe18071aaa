package modules

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config/manifest"
	"github.com/wasmgate/wasmgate/internal/config/tree"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/sandbox"
)

// ManifestBeside returns the manifest next to a module, nil if there is none.
// It is whole: its schemas are schemas. The error is a [config.Problems] where a line of
// the file is wrong.
func ManifestBeside(module string) (*sandbox.Manifest, error) {
	file, err := manifest.Read(module)
	if err != nil || file == nil {
		return nil, err
	}
	return parsed(file)
}

// WithManifest reads a module, and puts the manifest next to it into it. If there is none,
// embedded is false and the module is as it was.
func WithManifest(module string) (wasm []byte, embedded bool, err error) {
	if wasm, err = os.ReadFile(module); err != nil {
		return nil, false, err
	}
	manifest, err := ManifestBeside(module)
	if err != nil || manifest == nil {
		return wasm, false, err
	}
	wasm, err = sandbox.Embed(wasm, *manifest)
	return wasm, true, err
}

func parsed(file *manifest.Manifest) (*sandbox.Manifest, error) {
	m, err := sandbox.ParseManifest(file.JSON)
	if err != nil {
		return nil, tree.Problems{file.Problem("", strings.TrimPrefix(err.Error(), "sandbox: "))}
	}
	var problems tree.Problems
	for _, f := range Flaws(m) {
		problems = append(problems, file.Problem(f.Pointer, f.Message))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return &m, nil
}

// A Flaw is what is wrong at a JSON Pointer into a manifest.
type Flaw struct{ Pointer, Message string }

// Flaws returns what keeps a gateway from offering the tools of a manifest.
func Flaws(m sandbox.Manifest) (all []Flaw) {
	for i, t := range m.Tools {
		at := fmt.Sprintf("/tools/%d/", i)
		if below, err := checkSchema(t.InputSchema, true); err != nil {
			all = append(all, Flaw{at + "inputSchema" + below, fmt.Sprintf("tool %s: %v", t.Name, err)})
		}
		if t.OutputSchema == nil {
			continue
		}
		if below, err := checkSchema(t.OutputSchema, false); err != nil {
			all = append(all, Flaw{at + "outputSchema" + below, fmt.Sprintf("tool %s: %v", t.Name, err)})
		}
	}
	return all
}

// checkSchema says what is wrong with a schema of a tool, and where.
func checkSchema(raw []byte, input bool) (pointer string, err error) {
	doc, err := gate.ParseDoc(raw)
	if err != nil {
		return "", err
	}
	if input {
		doc, _ = schema.Repair(doc)
		of := doc.Get("type")
		object := of.Text() == "object"
		for one := range of.Elements() {
			object = object || one.Text() == "object"
		}
		if !object {
			return "/type", errors.New(`arguments are of the type "object"`)
		}
	}
	if _, err = schema.Compile(doc); err == nil {
		return "", nil
	}
	if at, rest, ok := strings.Cut(err.Error(), ": "); ok && strings.HasPrefix(at, "/") {
		return at, errors.New(rest)
	}
	return "", err
}
