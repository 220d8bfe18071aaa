package policy

import (
	"io"
	"time"

	"github.com/wasmgate/wasmgate/policy/bundle"
)

// Options configures an [Engine].
type Options struct {
	// Packs names the built-in packs. Nil means the pack grants; an empty list
	// means none.
	Packs []string
	// Grants are what the pack grants allows, and data.grants to all rules.
	Grants []Grant
	// Labels say what tools are; see [Label].
	Labels []Label
	// RateLimits are what the pack ratelimit holds calls to, and data.ratelimit to all
	// rules.
	RateLimits []RateLimit
	// Timeout bounds one decision, by steps of evaluation of a microsecond each: 50 ms are
	// 50,000 steps. One that takes ten times as long on the clock fails with
	// [gate.ErrOverdue]. Zero means 50 ms; negative is an error.
	Timeout time.Duration
	// Bundles are policies and data that come as a whole. Their names differ, and
	// no two have the same roots, but for wasmgate, to whose sets all rules add.
	Bundles []*bundle.Bundle
	// Data is data to all rules, as data.NAME: values that marshal to JSON, by names that neither
	// a bundle nor the gateway has. It is copied, and part of the revision; nil is none.
	Data map[string]any
	// Print gets what print() in rules says, each on a line; nil drops it.
	Print io.Writer
}

const defaultTimeout = 50 * time.Millisecond

// packGrants is the pack that is on by default, and the one that makes the
// command grant a remedy.
const packGrants = "grants"
