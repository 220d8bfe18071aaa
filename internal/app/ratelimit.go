package app

import (
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/policy"
)

// policyRateLimits puts the limits of a file into the words of a policy.
func policyRateLimits(from []config.RateLimit) []policy.RateLimit {
	var to []policy.RateLimit
	for _, l := range from {
		to = append(to, policy.RateLimit{
			To: l.To, Tools: l.Tools, Servers: l.Servers, Except: l.Except, Key: l.Key,
			Calls: int64(l.Calls), Bytes: l.Bytes, Per: l.Per.String(), Burst: int64(l.Burst),
		})
	}
	return to
}
