package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/tree"
)

// Policy says what decides about calls.
type Policy struct {
	Packs      []string      `key:"packs pack" default:"grants"` // built-in packs; may be empty
	Paths      []string      `key:"paths existing"`              // files and folders of the user's own policies
	Grants     string        // path of the grants file, which need not exist
	Shared     []byte        // grants that gateways share, in the form of that file
	Labels     string        // path of the labels file, see [ReadLabels]; empty for none
	RateLimits string        // path of the rate limits file, see [ReadRateLimits]; empty for none
	Timeout    time.Duration `key:"timeout 1ms..1m" default:"50ms"`
	Bundles    []Bundle      `key:"bundles"`
	// Shadow is a policy that decides beside this one, with its timeout and bundles,
	// and enforces nothing; nil for none.
	Shadow *Policy
}

func (p *Policy) readers(d *decoder) map[string]reader {
	return map[string]reader{"data": d.policyData(p), "shadow": func(*tree.Node, string) {}} // which is read last: what it leaves out is as in the policy
}

func (p *Policy) check(d *decoder, n *tree.Node, path string) {
	for i, b := range p.Bundles {
		if slices.ContainsFunc(p.Bundles[:i], func(other Bundle) bool { return other.Name == b.Name }) {
			d.fail(n.Get("bundles").Items[i], fmt.Sprintf("%s.bundles[%d]", path, i), "has the name of another bundle, or its path or url ends as that of another: give it a name of its own")
		}
	}
	if shadow := n.Get("shadow"); shadow != nil {
		p.Shadow = d.shadow(*p, shadow, tree.Join(path, "shadow"))
	}
}

func checkPack(s string) error {
	if !slices.Contains(packs, s) {
		return errors.New("is not a pack of this version, which has: " + strings.Join(packs, ", "))
	}
	return nil
}

func (d *decoder) policyData(to *Policy) reader {
	return func(n *tree.Node, path string) {
		d.table(n, path, map[string]reader{"grants": d.path(&to.Grants), "labels": d.path(&to.Labels, exists), "ratelimit": d.path(&to.RateLimits, exists)})
	}
}

// packs are the built-in policy packs.
var packs = []string{"grants", "flow", "flow-ask", "readonly", "approve", "apps", "ratelimit", "skills", "paths", "urls"}
