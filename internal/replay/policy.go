package replay

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config/policydata"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
	"github.com/wasmgate/wasmgate/internal/schema"
	"github.com/wasmgate/wasmgate/policy"
)

// Timeout bounds a decision of a replay. It is far above what a gateway allows, so that
// a busy machine does not change what comes out.
const Timeout = 10 * time.Second

// Folder reads a policy that is all in one folder.
func Folder(dir string) (gateway.Policy, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return gateway.Policy{}, cmp.Or(err, fmt.Errorf("%s is not a folder", dir))
	}
	files, err := policyfiles.Folder(dir)
	if err != nil {
		return gateway.Policy{}, err
	}
	p := gateway.Policy{Files: files}
	return p, Put(&p, filepath.Join(dir, "grants.yaml"), filepath.Join(dir, "labels.yaml"))
}

// Put puts the grants and labels of files in the place of a policy's. A name that is empty leaves
// them; a file that is not there has none.
func Put(p *gateway.Policy, grants, labels string) error {
	for _, one := range []struct {
		file string
		put  func(*gateway.Policy, string, []byte) error
	}{{grants, PutGrants}, {labels, PutLabels}} {
		if one.file == "" {
			continue
		}
		text, err := os.ReadFile(one.file)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			err = one.put(p, one.file, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PutGrants puts those that a text has in the place of a policy's. File is what it is called.
func PutGrants(p *gateway.Policy, file string, text []byte) error {
	grants, err := policydata.ParseGrants(file, text)
	p.Options.Grants = nil
	for _, g := range grants {
		p.Options.Grants = append(p.Options.Grants, policy.Grant(g))
	}
	return err
}

// PutLabels does so with labels.
func PutLabels(p *gateway.Policy, file string, text []byte) error {
	labels, err := policydata.ParseLabels(file, text)
	p.Options.Labels = policyfiles.Labels(labels)
	return err
}

// InputSchema returns what coerces the arguments of a tool, as it does in the gateway, or
// nil if its schema cannot be used.
func InputSchema(definition gate.Doc) gate.Coercer {
	repaired, _ := schema.Repair(definition.Get("inputSchema"))
	s, err := schema.Compile(repaired)
	if err != nil {
		return nil
	}
	return s
}
