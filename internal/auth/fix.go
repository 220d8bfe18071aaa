package auth

import (
	"strings"

	"github.com/wasmgate/wasmgate/internal/apikey"
)

// Fix says what the operator can do about a token, or an API key, that is refused for a
// resource.
func (r *Refusal) Fix(token, resource string) string {
	has := func(word string) bool { return strings.Contains(r.Reason, word) }
	switch {
	case strings.HasPrefix(strings.TrimSpace(token), apikey.Prefix):
		switch {
		case has("does not accept API keys"):
			return "write auth: {keys: true} into the configuration"
		case has("the form of an API key"):
			return "copy the key whole: its end is a checksum"
		case has("revoked"), has("ended"):
			return "make another with `wasmgate key create`"
		case has("no longer has"):
			return "list its principal under principals again, or revoke the key"
		}
		return "it is of another gateway, or of another state folder: see `wasmgate key list`"
	case has(" parts"):
		return "the issuer gives opaque tokens: have the client ask for the resource " + resource + ", or define an API of that name at the issuer, so that its access tokens are JWTs"
	case has("canonical base64url"):
		return "copy the token whole, and as it is"
	case has("ID token"):
		return "send the access token: the ID token tells the client who signed in, and is for nobody else"
	case has("the token's issuer is not configured here"):
		return "compare iss of the token with issuer in the configuration, byte for byte: often it is a / at the end. `wasmgate auth check` says what the issuer calls itself"
	case has("its audience is not"):
		return "have the client ask for the resource " + resource + ", or name the token's aud under auth.issuers.NAME.audience"
	case has("type "):
		return "name the token's typ under auth.issuers.NAME.typ, if it is one of access tokens"
	case has("algorithm "):
		return "name the algorithm under auth.issuers.NAME.algs, or have the issuer sign with another"
	case has("in the future"), has("not valid yet"):
		return "the clocks of this machine and of the issuer differ: set them by NTP, or raise auth.issuers.NAME.skew"
	case r.Kind() == "expired":
		return "get another token; if it is new, the clocks differ"
	case has("lacks one of the scopes"):
		return "have the client ask for the scopes " + strings.Join(r.Scopes, " ") + ", or change auth.issuers.NAME.scopes"
	case has("has no claim"):
		return "name another claim under auth.issuers.NAME.claims, or have the issuer put this one into access tokens"
	case has("names no group"):
		return "map one of the token's values under auth.issuers.NAME.groups"
	case has("reserved for callers"):
		return "rename the account: the id local is that of callers without a credential"
	case has("no key of the issuer matches"), has("signature"):
		return "the token is signed by a key that the issuer does not publish: `wasmgate auth check` shows its keys"
	case r.Kind() == "unavailable":
		return "the issuer's keys cannot be had: `wasmgate auth check` says why"
	case has("revoked"):
		return "sign in again, if the account may: it was ended with `wasmgate auth revoke`"
	}
	return "see docs/reference/identity.md"
}
