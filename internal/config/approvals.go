package config

import (
	"errors"
	"strings"
	"time"
)

// Approvals says how people are asked about calls.
type Approvals struct {
	Channels []string      // client and cli; none: what a policy would ask is refused
	By       []string      // who may answer, in the words of grants: ids or role:NAME; nil: anybody who is asked
	NotSelf  bool          // nobody answers about their own calls; says nothing while everybody is local
	Hold     time.Duration // how long a call waits for an answer
	Expire   time.Duration // how long a question can be answered, and the answer be used
}

// channels are the ways in which people are asked.
var channels = []string{"client", "cli"}

func (d *decoder) approvals(to *Approvals, n *node, path string) {
	d.table(n, path, map[string]reader{
		"channels": d.texts(&to.Channels, among(channels)),
		"by":       d.texts(&to.By, checkApprover),
		"not_self": d.flag(&to.NotSelf),
		"hold":     d.duration(&to.Hold, 0, time.Hour),
		"expire":   d.duration(&to.Expire, time.Minute, 24*time.Hour),
	})
	if to.Hold > to.Expire {
		d.fail(n, join(path, "hold"), "is longer than expire, after which no answer counts")
	}
	if by := n.get("by"); by != nil && len(to.By) == 0 {
		d.fail(by, join(path, "by"), "names nobody: then no call could be approved")
	}
}

// checkApprover checks who may approve calls.
func checkApprover(s string) error {
	name, role := strings.CutPrefix(s, "role:")
	tenant, name := SplitPrincipal(name)
	good := !strings.Contains(name, "/") && (!strings.Contains(s, "/") || tenant == "*" || principalPattern.MatchString(tenant+"/x"))
	if role {
		good = good && rolePattern.MatchString(name)
	} else {
		good = good && (name == "*" || tenant != "*" && principalPattern.MatchString(name))
	}
	if !good {
		return errors.New("names nobody: the id of a principal, role:NAME or *, with TENANT/ before the name of one of a tenant")
	}
	return nil
}
