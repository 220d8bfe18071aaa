package config

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/check"
	"github.com/wasmgate/wasmgate/internal/config/decode"
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
	// Shadow is a policy that is evaluated in addition to this one, with its timeout and bundles, and
	// enforces nothing; nil for none.
	Shadow *Policy
}

// Readers implements [decode.Reading].
func (p *Policy) Readers() map[string]decode.Reader {
	return map[string]decode.Reader{"data": policyData(p), "shadow": func(decode.Value) {}} // which is read last: what it leaves out is as in the policy
}

// Check implements [decode.Checker].
func (p *Policy) Check(v decode.Value) {
	for i, b := range p.Bundles {
		if slices.ContainsFunc(p.Bundles[:i], func(other Bundle) bool { return other.Name == b.Name }) {
			v.Get("bundles").Item(i).Fail("has the name of another bundle, or its path or url ends as that of another: give it a name of its own")
		}
	}
	if v.Has("shadow") {
		p.Shadow = shadow(*p, v.Get("shadow"))
	}
}

func checkPack(s string) error {
	if !slices.Contains(packs, s) {
		return errors.New("is not a pack of this version, which has: " + strings.Join(packs, ", "))
	}
	return nil
}

func policyData(to *Policy) decode.Reader {
	return func(v decode.Value) {
		v.Table(map[string]decode.Reader{"grants": decode.Path(&to.Grants), "labels": decode.Path(&to.Labels, check.Exists), "ratelimit": decode.Path(&to.RateLimits, check.Exists)})
	}
}

// packs are the built-in policy packs.
var packs = []string{"grants", "flow", "flow-ask", "readonly", "approve", "apps", "ratelimit", "skills", "paths", "urls"}
