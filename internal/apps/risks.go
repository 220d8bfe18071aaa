package apps

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/wasmgate/wasmgate/bridge/options"
	"github.com/wasmgate/wasmgate/gate/doc"
)

// The rules that tell a person what a page may do. Package scan has their severities.
const (
	RiskCut       = "app/cut"       // what no host gets, because it is malformed
	RiskInjection = "app/injection" // what would be more than a source in the policy of a host
	RiskNarrowed  = "app/narrowed"  // what the configuration does not allow
	RiskConnect   = "app/connect"   // addresses to which the page can send what it sees
	RiskResources = "app/resources" // addresses from which it loads code that is not pinned
	RiskFrames    = "app/frames"    // pages of others inside of it
	RiskBase      = "app/base"      // where its relative addresses lead
	RiskWildcard  = "app/wildcard"  // a source that is any name of a domain
	RiskDevice    = "app/device"    // camera, microphone or geolocation
	RiskClipboard = "app/clipboard"
	RiskDomain    = "app/domain" // an origin that it shares with other pages of the same domain
)

// A Risk is a part of what a page asks of its host that a person should look at.
type Risk struct{ Rule, At, Excerpt string }

// Risks returns what a person should look at in what a page asks of its host, as it is pinned.
func Risks(pinned doc.Doc, allow options.AppSources) (all []Risk) {
	_, cuts := Settings(pinned, allow)
	cut := make(map[string]bool)
	for _, c := range cuts {
		rule := c.Rule()
		if !c.Narrowed && strings.ContainsFunc(pinned.At(c.At).Text(), separates) {
			rule = RiskInjection
		}
		cut[c.At] = true
		all = append(all, Risk{rule, c.At, c.String()})
	}
	add := func(rule, at, excerpt string) {
		if !cut[at] {
			all = append(all, Risk{rule, at, excerpt})
		}
	}
	for _, d := range directives {
		i := 0
		for one := range pinned.Get("csp").Get(d.name).Elements() {
			at, source := "/csp/"+d.name+"/"+strconv.Itoa(i), one.Text()
			add(d.risk, at, source)
			if strings.Contains(source, "*") { // also where it is cut
				all = append(all, Risk{RiskWildcard, at, source})
			}
			if i++; i == maxSources {
				break
			}
		}
	}
	for _, name := range Permissions {
		if !pinned.Get("permissions").Get(name).IsZero() {
			rule := RiskDevice
			if name == "clipboardWrite" {
				rule = RiskClipboard
			}
			add(rule, "/permissions/"+name, name)
		}
	}
	if domain := pinned.Get("domain"); !domain.IsZero() {
		add(RiskDomain, "/domain", domain.Text())
	}
	return all
}

// separates reports whether a character ends a source, or a directive of a policy.
func separates(c rune) bool {
	return c == ';' || c == ',' || unicode.IsSpace(c) || unicode.IsControl(c)
}
