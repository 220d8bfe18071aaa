package dial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Scope is what one call of a tool may do. The zero Scope allows nothing.
type Scope struct {
	Rules   Rules
	Secrets []Secret // that the call may use, with different names
	Limits  Limits
	// Ask puts a request to the policy, and each redirect again, before its name
	// is resolved or anything is sent. An error refuses it. Nil refuses all.
	Ask func(ctx context.Context, t Target) error
	// AskSecret does so for each secret in a request, after Ask. Nil refuses all.
	AskSecret func(ctx context.Context, name string, t Target) error
}

// An Egress carries out the requests of one call of a tool. It may be used from
// several goroutines.
type Egress struct {
	client *Client
	scope  Scope
	quota  quota
}

// Egress returns an Egress for one call.
func (c *Client) Egress(s Scope) *Egress {
	s.Secrets = slices.DeleteFunc(slices.Clone(s.Secrets), func(s Secret) bool { return s.open == nil })
	return &Egress{client: c, scope: s, quota: quota{limits: s.Limits.withDefaults()}}
}

// A Request is what a tool asks for.
type Request struct {
	Method string // "" means GET
	URL    string // absolute
	// Header may hold {{secret:NAME}} in values. Names that frame the message are
	// refused.
	Header map[string][]string
	Body   []byte // sent as it is; a placeholder in it is not replaced
}

// A Response is what the origin answered, without secrets. It is the caller's.
type Response struct {
	Status int
	Header map[string][]string
	Body   []byte
}

// Do carries out r and follows redirects (RFC 9110, 15.4). The error is a
// [*Denied] or a [*Failed].
func (e *Egress) Do(ctx context.Context, r Request) (Response, error) {
	ctx, cancel := e.quota.within(ctx)
	defer cancel()
	h := hop{body: r.Body}
	var err error
	if h.target, err = NewTarget(r.Method, r.URL); err != nil {
		return Response{}, &Denied{Reason: err.Error()}
	}
	if h.header, err = newHeader(r.Header); err != nil {
		return Response{}, &Denied{Target: h.target, Reason: err.Error()}
	}
	for redirects := 0; ; redirects++ {
		res, err := e.send(ctx, h)
		if err != nil {
			return Response{}, e.explain(ctx, h.target, err)
		}
		location := http.Header(res.Header).Get("Location")
		method, body, redirected := afterRedirect(res.Status, h)
		if !redirected || location == "" || e.quota.limits.Redirects == 0 {
			return res, nil
		}
		if redirects == e.quota.limits.Redirects {
			return Response{}, e.explain(ctx, h.target, &exceeded{LimitRedirects, fmt.Sprintf("it was redirected more than %d times", redirects)})
		}
		if h, err = h.redirect(location, method, body); err != nil {
			return Response{}, err
		}
	}
}

// explain turns what went wrong into an error that may be shown: no foreign error
// leaves with its text unscrubbed, or wrapped.
func (e *Egress) explain(ctx context.Context, t Target, err error) error {
	var denied *Denied
	if errors.As(err, &denied) {
		return denied
	}
	shown := func(text string) string { return short(scrubString(text, e.scope.Secrets)) }
	f := &Failed{Target: t, Reason: shown(reason(err)), Detail: shown(err.Error()), ended: ctx.Err()}
	if x := exceededLimit(ctx, err); x != nil {
		f.Limit, f.Reason = x.limit, x.text
	}
	return f
}

// A hop is one request of those that a redirected request becomes.
type hop struct {
	target Target
	header http.Header // placeholders still in place
	body   []byte
}

// send takes the steps of one request, in the order that the package promises.
func (e *Egress) send(ctx context.Context, h hop) (Response, error) {
	private, err := e.permit(ctx, h.target)
	if err != nil {
		return Response{}, err
	}
	header, err := e.fill(ctx, h)
	if err != nil {
		return Response{}, err
	}
	if err := e.quota.send(h.size(header)); err != nil {
		return Response{}, err
	}
	to, err := e.client.addresses(ctx, h.target, allowance(private, isLiteral(h.target.Host)))
	if err != nil {
		return Response{}, err
	}
	req := (&http.Request{
		Method: h.target.Method, URL: h.target.url(), Header: header,
		Body: io.NopCloser(bytes.NewReader(h.body)), ContentLength: int64(len(h.body)),
	}).WithContext(ctx)
	if len(h.body) == 0 {
		req.Body = http.NoBody
	}
	res, err := e.client.roundTrip(req, to, h.target.Port)
	if err != nil {
		return Response{}, err
	}
	defer res.Body.Close()
	return e.receive(res)
}

// permit asks the rules, then the policy.
func (e *Egress) permit(ctx context.Context, t Target) (private bool, err error) {
	allowed, private := e.scope.Rules.Allow(t)
	if !allowed {
		need := needed(t)
		return false, &Denied{Target: t, Reason: "no rule allows it", Need: &need}
	}
	if e.scope.Ask == nil {
		return false, &Denied{Target: t, Reason: "the gateway has no policy that could allow it"}
	}
	if err := e.scope.Ask(ctx, t); err != nil {
		return false, &Denied{Target: t, Reason: "the policy does not allow it", Err: err}
	}
	return private, nil
}

// needed returns the narrowest rule that allows t.
func needed(t Target) Rule {
	return Rule{Origin: t.origin().String(), Methods: []string{t.Method}, Path: t.Path}
}

// fill returns h's header with secrets in the place of their placeholders, and
// with what the gateway sets.
func (e *Egress) fill(ctx context.Context, h hop) (http.Header, error) {
	values := map[string]string{} // of secrets, so that the policy is asked once for each
	secret := func(name string) (string, error) {
		v, ok := values[name]
		if !ok {
			s, err := e.secret(ctx, name, h.target)
			if err != nil {
				return "", err
			}
			v = s.open().value
			values[name] = v
		}
		return v, nil
	}
	filled := h.header.Clone()
	for name, texts := range filled {
		for i, text := range texts {
			var err error
			if texts[i], err = fill(text, secret); err != nil {
				return nil, &Denied{Target: h.target, Reason: fmt.Sprintf("header %s: %v", name, err), Err: errors.Unwrap(err)}
			}
		}
	}
	filled.Set("Accept-Encoding", "identity") // or net/http asks for gzip, and unpacks it without a bound
	if filled.Get("User-Agent") == "" {
		filled.Set("User-Agent", "wasmgate")
	}
	return filled, nil
}

// secret returns the secret of that name if it may be sent to t.
func (e *Egress) secret(ctx context.Context, name string, t Target) (Secret, error) {
	i := slices.IndexFunc(e.scope.Secrets, func(s Secret) bool { return s.name == name })
	if i < 0 {
		return Secret{}, fmt.Errorf("secret %s is not granted to this call", name)
	}
	s := e.scope.Secrets[i]
	if s.origin != t.origin() {
		return Secret{}, fmt.Errorf("secret %s is bound to another origin", name)
	}
	if e.scope.AskSecret == nil {
		return Secret{}, fmt.Errorf("secret %s: the gateway has no policy that could allow it", name)
	}
	if err := e.scope.AskSecret(ctx, name, t); err != nil {
		return Secret{}, &withheld{name, err}
	}
	return s, nil
}

// withheld says that the policy did not allow a secret. Its text leaves out the
// cause, which is for the operator.
type withheld struct {
	name  string
	cause error
}

func (w *withheld) Error() string { return "the policy does not allow secret " + w.name }
func (w *withheld) Unwrap() error { return w.cause }

// size is about what h has on the wire, in bytes.
func (h hop) size(header http.Header) int64 {
	return int64(len(h.target.Method)+len(h.target.URL())+len(h.body)) + headerSize(header)
}

func headerSize(header http.Header) (n int64) {
	for name, values := range header {
		for _, v := range values {
			n += int64(len(name) + len(v) + len(": \r\n"))
		}
	}
	return n
}

// receive reads an answer and removes secrets from it.
func (e *Egress) receive(res *http.Response) (Response, error) {
	if res.StatusCode < 200 {
		return Response{}, fmt.Errorf("the server answered with the status %d, which belongs to no request of the tool", res.StatusCode)
	}
	if c := strings.Join(res.Header.Values("Content-Encoding"), ","); c != "" && !strings.EqualFold(c, "identity") {
		return Response{}, fmt.Errorf("the origin sent its answer in the encoding %q, although it was asked for none", short(c))
	}
	if err := e.quota.receive(headerSize(res.Header)); err != nil {
		return Response{}, err
	}
	body, err := io.ReadAll(meter{res.Body, &e.quota})
	if err != nil {
		return Response{}, err
	}
	out := Response{Status: res.StatusCode, Header: e.scrubHeader(res.Header), Body: scrub(body, e.scope.Secrets)}
	if grown := int64(len(out.Body) - len(body)); grown > 0 {
		err = e.quota.receive(grown) // a placeholder may be longer than its secret
	}
	return out, err
}

func (e *Egress) scrubHeader(header http.Header) http.Header {
	clean := http.Header{}
	for name, values := range header {
		if scrubString(name, e.scope.Secrets) != name {
			continue // no name could take its place
		}
		for _, v := range values {
			clean[name] = append(clean[name], scrubString(v, e.scope.Secrets))
		}
	}
	return clean
}

// afterRedirect returns with what method and body a redirect is followed (RFC
// 9110, 15.4.2 to 15.4.9), if it is one.
func afterRedirect(status int, h hop) (method string, body, redirected bool) {
	method, body = h.target.Method, true
	switch status {
	case http.StatusMovedPermanently, http.StatusFound:
		if method == "POST" {
			method, body = "GET", false
		}
	case http.StatusSeeOther:
		if body = false; method != "HEAD" {
			method = "GET"
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return "", false, false
	}
	return method, body, true
}

// redirect returns the hop that follows h. The location is scrubbed: an origin
// that writes a secret into it is not helped to carry it elsewhere.
func (h hop) redirect(location, method string, body bool) (hop, error) {
	deny := func(err error) (hop, error) {
		return hop{}, &Denied{Target: h.target, Reason: "redirect: " + err.Error()}
	}
	if err := checkText(location); err != nil {
		return deny(err)
	}
	ref, err := url.Parse(location)
	if err != nil {
		return deny(errors.New("its location is not a URL"))
	}
	target, err := NewTarget(method, h.target.url().ResolveReference(ref).String())
	if err != nil {
		return deny(err)
	}
	next := hop{target: target, header: h.header, body: h.body}
	if !body {
		next.header, next.body = bodiless(next.header), nil
	}
	if target.origin() != h.target.origin() {
		next.header = abroad(next.header)
	}
	return next, nil
}
