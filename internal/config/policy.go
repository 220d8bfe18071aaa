package config

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Policy says what decides about calls.
type Policy struct {
	Packs      []string // built-in packs; may be empty
	Paths      []string // files and folders of the user's own policies
	Grants     string   // path of the grants file, which need not exist
	Labels     string   // path of the labels file, see [ReadLabels]; empty for none
	RateLimits string   // path of the rate limits file, see [ReadRateLimits]; empty for none
	Timeout    time.Duration
	Bundles    []Bundle
	// Shadow is a policy that decides beside this one, with its timeout and bundles,
	// and enforces nothing; nil for none.
	Shadow *Policy
}

func (d *decoder) policy(to *Policy, n *node, path string) {
	d.table(n, path, map[string]reader{
		"packs":   d.packs(to),
		"paths":   func(n *node, path string) { d.paths(&to.Paths, n, path) },
		"data":    d.policyData(to),
		"timeout": d.duration(&to.Timeout, time.Millisecond, time.Minute),
		"bundles": func(n *node, path string) { d.bundles(&to.Bundles, n, path) },
		"shadow":  func(*node, string) {}, // below: what it leaves out is as in the policy
	})
	if shadow := n.get("shadow"); shadow != nil {
		to.Shadow = d.shadow(*to, shadow, join(path, "shadow"))
	}
}

func (d *decoder) packs(to *Policy) reader {
	return d.texts(&to.Packs, func(s string) error {
		if !slices.Contains(packs, s) {
			return errors.New("is a pack that is not in this version; these are: " + strings.Join(packs, ", "))
		}
		return nil
	})
}

func (d *decoder) paths(to *[]string, n *node, path string) {
	d.items(n, path, func(item *node, at string) {
		var s string
		if d.path(&s, exists)(item, at); s != "" {
			*to = append(*to, s)
		}
	})
}

func (d *decoder) policyData(to *Policy) reader {
	return func(n *node, path string) {
		d.table(n, path, map[string]reader{"grants": d.path(&to.Grants), "labels": d.path(&to.Labels, exists), "ratelimit": d.path(&to.RateLimits, exists)})
	}
}

// packs are the built-in policy packs.
var packs = []string{"grants", "flow", "flow-ask", "readonly", "approve", "ratelimit", "paths", "urls"}
