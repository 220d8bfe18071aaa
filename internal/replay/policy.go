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
	"github.com/wasmgate/wasmgate/internal/config"
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
		return gateway.Policy{}, cmp.Or(err, fmt.Errorf("%s is no folder", dir))
	}
	grants, err := config.ReadGrants(filepath.Join(dir, "grants.yaml"))
	if err != nil {
		return gateway.Policy{}, err
	}
	labels, err := config.ReadLabels(filepath.Join(dir, "labels.yaml"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return gateway.Policy{}, err
	}
	p := gateway.Policy{Files: os.DirFS(dir), Options: policy.Options{Labels: policyfiles.Labels(labels)}}
	for _, g := range grants {
		p.Options.Grants = append(p.Options.Grants, policy.Grant(g))
	}
	return p, nil
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
