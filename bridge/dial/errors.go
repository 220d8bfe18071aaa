package dial

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Denied reports a request that was refused: by a rule, by the policy, or
// because it is one that is never sent. A refused redirect is a refused request:
// the requests before it were sent.
type Denied struct {
	Target Target // what was refused; zero if the URL could not be read
	Reason string // safe to tell the tool
	Need   *Rule  // the rule that would have allowed it, for the operator; nil if no rule would
	Err    error  // cause, for the operator; may be nil
}

// Error leaves out Need and Err, which are for the operator.
func (d *Denied) Error() string {
	return message(d.Target, "refused", d.Reason)
}

// Unwrap returns the cause.
func (d *Denied) Unwrap() error { return d.Err }

// A Limit is the name of one of the [Limits].
type Limit string

// The limits that a call can exceed.
const (
	LimitRequests      Limit = "requests"
	LimitRequestBytes  Limit = "request_bytes"
	LimitResponseBytes Limit = "response_bytes"
	LimitTimeout       Limit = "timeout"
	LimitRedirects     Limit = "redirects"
)

// Failed reports a request that was allowed and got no usable answer.
type Failed struct {
	Target Target
	Reason string // safe to tell the tool: without secrets, and without addresses of the network
	Detail string // for the operator: the whole text, without secrets
	Limit  Limit  // the limit that was exceeded; "" if it was none

	ended error // the context's error if it ended; nothing else, since foreign errors quote what the origin sent
}

func (f *Failed) Error() string {
	return message(f.Target, "failed", f.Reason)
}

// Unwrap returns [context.Canceled] or [context.DeadlineExceeded] if that was
// the cause, else nil.
func (f *Failed) Unwrap() error { return f.ended }

// reason returns what a tool may read of err. The errors of package net name
// addresses of servers and resolvers, by which a tool could map the network.
func reason(err error) string {
	var name *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &name):
		return "resolve: " + name.Err
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

func message(t Target, how, reason string) string {
	if t.Host == "" {
		return fmt.Sprintf("dial: request %s: %s", how, reason)
	}
	return fmt.Sprintf("dial: %s %s %s: %s", t.Method, t, how, reason)
}

// maxReason bounds, in bytes, what an error repeats of foreign text: enough for
// every message of our own and of net/http.
const maxReason = 400

func short(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "") + "..."
}
