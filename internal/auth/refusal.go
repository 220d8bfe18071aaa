package auth

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Refusal says how to answer a request that is not let in (RFC 6750, 3.1; MCP, basic/authorization,
// "Error Handling").
type Refusal struct {
	Status      int           // 400, 401, 403 or 503
	Code        string        // RFC 6750's error; "" for a request without a credential
	Description string        // what strangers may read: the same for every fault of a token
	Scopes      []string      // what the resource, or the operation, needs
	RetryAfter  time.Duration // 0: none
	// Reason is only for the log of the gateway. It holds no part of a credential.
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// Write answers a request with the refusal. Metadata is the URL of the metadata of the
// protected resource (RFC 9728), or "".
func (r *Refusal) Write(w http.ResponseWriter, metadata string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(r.RetryAfter.Seconds())))
	}
	if challenge := r.challenge(metadata); challenge != "" {
		h.Set("WWW-Authenticate", challenge)
	}
	http.Error(w, r.Description, r.Status)
}

func (r *Refusal) challenge(metadata string) string {
	if r.Status != http.StatusUnauthorized && (r.Status != http.StatusForbidden || r.Code == "") {
		return ""
	}
	var params []string
	param := func(name, value string) {
		if value != "" {
			params = append(params, fmt.Sprintf("%s=%q", name, value))
		}
	}
	param("error", r.Code)
	if r.Code != "" {
		param("error_description", r.Description)
	}
	param("scope", strings.Join(r.Scopes, " "))
	param("resource_metadata", metadata)
	return strings.TrimSpace("Bearer " + strings.Join(params, ", "))
}

// missing refuses a request without any credential.
func missing(scopes []string, reason string) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Description: "authentication is required", Scopes: scopes, Reason: reason}
}

// invalid refuses a token, for whatever reason, in the same words.
func invalid(format string, args ...any) *Refusal {
	return &Refusal{
		Status: http.StatusUnauthorized, Code: "invalid_token", Description: "the token is not valid here",
		Reason: fmt.Sprintf(format, args...),
	}
}

// expired refuses an expired token, with a description of its own: clients fix that by themselves.
func expired(format string, args ...any) *Refusal {
	r := invalid(format, args...)
	r.Description = descriptionExpired
	return r
}

// malformed refuses a request that carries its credentials in a wrong way.
func malformed(reason string) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Code: "invalid_request", Description: reason, Reason: reason}
}

// unavailable refuses for now. A 401 would make a client throw a good token away.
func unavailable(retry time.Duration, format string, args ...any) *Refusal {
	return &Refusal{
		Status: http.StatusServiceUnavailable, Description: "credentials cannot be checked now", RetryAfter: retry,
		Reason: fmt.Sprintf(format, args...),
	}
}

// stranger refuses a sender that is verified, but that the configuration does not know.
func stranger(format string, args ...any) *Refusal {
	return &Refusal{Status: http.StatusForbidden, Description: "this account has no access here", Reason: fmt.Sprintf(format, args...)}
}

// insufficient refuses a token that lacks scopes of the resource.
func insufficient(scopes []string) *Refusal {
	return &Refusal{
		Status: http.StatusForbidden, Code: "insufficient_scope", Description: "the token lacks a scope", Scopes: scopes,
		Reason: "the token lacks one of the scopes " + strings.Join(scopes, " "),
	}
}

// Challenge is the header WWW-Authenticate for a request whose token lacks scopes, with all
// that it needs. Metadata is as in [Refusal.Write].
func Challenge(scopes []string, metadata string) string {
	return insufficient(scopes).challenge(metadata)
}

// Kind is a refusal in one word, for records: missing, malformed, invalid, expired,
// scope, stranger or unavailable.
func (r *Refusal) Kind() string {
	switch {
	case r.Status == http.StatusBadRequest:
		return "malformed"
	case r.Status == http.StatusServiceUnavailable:
		return "unavailable"
	case r.Code == "insufficient_scope":
		return "scope"
	case r.Status == http.StatusForbidden:
		return "stranger"
	case r.Code == "":
		return "missing"
	case r.Description == descriptionExpired:
		return "expired"
	}
	return "invalid"
}

const descriptionExpired = "the token has expired"
