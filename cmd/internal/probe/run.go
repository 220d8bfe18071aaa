package probe

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Verdict is the outcome of a check.
type Verdict string

// The verdicts. Stopped and Kept are good, Through and Lost are not.
const (
	Stopped Verdict = "stopped"   // the attack did not come through
	Through Verdict = "through"   // it did
	Kept    Verdict = "kept"      // what must survive did
	Lost    Verdict = "lost"      // it did not
	Untried Verdict = "not tried" // nothing can be said
)

// A Finding is what one check found in one revision of MCP.
type Finding struct {
	Check    string  `json:"check"`
	Title    string  `json:"title"`
	Revision string  `json:"revision"`
	Verdict  Verdict `json:"verdict"`
	Seen     string  `json:"seen,omitempty"` // what shows it
}

// Bad reports whether something came through that should not, or was lost.
func (f Finding) Bad() bool { return f.Verdict == Through || f.Verdict == Lost }

// Options say where the gateway is.
type Options struct {
	URL    string // its MCP endpoint
	Header http.Header
	// Timeout bounds one check. Zero means 30 s.
	Timeout time.Duration
	// Progress is called with each check before it runs; it may be nil.
	Progress func(check, revision string)
}

// Run probes the gateway at a URL, behind which a [Liar] must be reachable, in
// both revisions. A revision that the gateway does not speak has one finding. It
// is an error if the liar cannot be found at all.
func Run(ctx context.Context, o Options) ([]Finding, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string, string) {}
	}
	var all []Finding
	reached := false
	var why error
	for _, revision := range []string{WithSessions, WithoutSessions} {
		found, err := o.revision(ctx, revision)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			all = append(all, Finding{"revision", "the revision is spoken", revision, Untried, err.Error()})
			why = errors.Join(why, fmt.Errorf("revision %s: %w", revision, err))
			continue
		}
		reached = true
		all = append(all, found...)
	}
	if !reached {
		return nil, why
	}
	return all, nil
}

func (o Options) revision(ctx context.Context, revision string) ([]Finding, error) {
	t := &target{o: o, revision: revision, names: make(map[string]string)}
	timed, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var err error
	if t.client, err = t.connect(timed); err != nil {
		return nil, err
	}
	names, _, err := t.client.listed(timed)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if i := strings.Index(name, "probe_"); i >= 0 {
			t.names[name[i:]] = name
		}
	}
	if t.names["probe_echo"] == "" || t.names["probe_seen"] == "" {
		return nil, errors.New("the gateway does not offer the tools of the probe's server: put `wasmgate probe serve` behind it and allow its tools")
	}
	var all []Finding
	for _, c := range checks {
		o.Progress(c.name, revision)
		all = append(all, t.check(ctx, c))
	}
	return all, nil
}

func (t *target) check(ctx context.Context, c check) Finding {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	f := Finding{Check: c.name, Title: c.title, Revision: t.revision}
	v, seen, err := c.run(ctx, t)
	f.Verdict, f.Seen = v, seen
	if err != nil {
		f.Verdict, f.Seen = Untried, err.Error()
	}
	return f
}

// target is a gateway in one revision.
type target struct {
	o        Options
	revision string
	client   *client
	names    map[string]string // of the liar's tools, as the gateway offers them
	stdio    bool              // the liar is on standard input and output, as it has said last
}

func (t *target) connect(ctx context.Context) (*client, error) { return t.dial(ctx, false) }

// dial connects a client, which shows pages or does not.
func (t *target) dial(ctx context.Context, apps bool) (*client, error) {
	header := t.o.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	c := &client{http: &http.Client{}, url: t.o.URL, header: header, revision: t.revision, apps: apps}
	return c, c.open(ctx)
}

// errHidden says that a tool is not offered, so that nothing reaches it.
var errHidden = errors.New("the gateway does not offer the tool")

// call calls one of the liar's tools, by its own name.
func (t *target) call(ctx context.Context, tool string, args map[string]any) (reply, error) {
	name := t.names[tool]
	if name == "" {
		return reply{}, fmt.Errorf("%s: %w", tool, errHidden)
	}
	return t.client.call(ctx, name, args)
}

// arrived asks the liar how often a call with an id reached it, and whether it
// held a text.
func (t *target) arrived(ctx context.Context, id, text string) (n int, found bool, err error) {
	r, err := t.call(ctx, "probe_seen", map[string]any{"id": id, "hash": fingerprint(text), "size": len(text)})
	if err != nil {
		return 0, false, err
	}
	var res struct {
		StructuredContent struct {
			Calls        int
			Found, Stdio bool
		}
	}
	if json.Unmarshal(r.result, &res) != nil || r.failed() {
		return 0, false, fmt.Errorf("the liar does not answer: %s", r.texts())
	}
	t.stdio = res.StructuredContent.Stdio
	return res.StructuredContent.Calls, res.StructuredContent.Found, nil
}

func newID() string { return rand.Text() }

// Summary counts verdicts.
func Summary(all []Finding) (good, bad, untried int) {
	for _, f := range all {
		switch {
		case f.Bad():
			bad++
		case f.Verdict == Untried:
			untried++
		default:
			good++
		}
	}
	return good, bad, untried
}

// Sort puts the findings of one check side by side.
func Sort(all []Finding) {
	order := make(map[string]int)
	for i, c := range checks {
		order[c.name] = i + 1
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return order[a.Check] - order[b.Check] })
}
