package config

import (
	"errors"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// Approvals says how people are asked about calls.
type Approvals struct {
	Channels []string      `key:"channels client|cli" default:"client cli"` // none: what a policy would ask is refused
	By       []string      `key:"by approver"`                              // who may answer, as in grants: ids or role:NAME; nil: anyone who is asked
	NotSelf  bool          `key:"not_self"`                                 // no one answers about their own calls; no effect while everybody is local
	Hold     time.Duration `key:"hold 0s..1h" default:"55s"`                // how long a call waits for an answer
	Propose  bool          `key:"propose"`                                  // agents can ask one question about several calls
	Expire   time.Duration `key:"expire 1m..24h" default:"10m"`             // how long a question can be answered, and the answer be used
}

// Check implements [decode.Checker].
func (a *Approvals) Check(v decode.Value) {
	if a.Hold > a.Expire {
		v.Under("hold").Fail("is longer than expire, after which no answer counts")
	}
	if v.Has("by") && len(a.By) == 0 {
		v.Get("by").Fail("names no principal, so that no call could be approved")
	}
}

// checkApprover checks who may approve calls.
func checkApprover(s string) error {
	name, role := strings.CutPrefix(s, "role:")
	tenant, name := SplitPrincipal(name)
	good := !strings.Contains(name, "/") && (!strings.Contains(s, "/") || tenant == "*" || principalPattern.MatchString(tenant+"/x"))
	if good = good && (!role || rolePattern.MatchString(name)); !role {
		good = good && (name == "*" || tenant != "*" && principalPattern.MatchString(name))
	}
	if !good {
		return errors.New("names no principal: write the id of a principal, role:NAME or *, with TENANT/ before the name of one of a tenant")
	}
	return nil
}
