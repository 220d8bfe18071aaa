package console

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/app/sessions"
	"github.com/wasmgate/wasmgate/internal/audit/flow"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/evict"
	"github.com/wasmgate/wasmgate/internal/lock"
)

//go:embed openapi.yaml
var openAPI []byte

// routes are all that can be asked for but signing in.
func (c *Console) routes() []route {
	const read, approve, pin, grant = "admin/read", "admin/approve", "admin/pin", "admin/grant"
	return []route{
		{"GET /api/v1/openapi.yaml", read, "openapi.read", "", c.description},
		{"GET /api/v1/status", read, "status.read", "", c.getStatus},
		{"GET /api/v1/nodes", read, "status.read", "", func(w http.ResponseWriter, r *http.Request) error {
			all, err := c.app.Nodes.All(r.Context())
			return answer(w, all, err)
		}},
		{"GET /api/v1/servers", read, "servers.read", "", c.getServers},
		{"GET /api/v1/tools", read, "tools.read", "", c.getTools},
		{"GET /api/v1/skills", read, "skills.read", "", c.getSkills},
		{"GET /api/v1/calls", read, "calls.read", "", c.getCalls},
		{"GET /api/v1/calls/{id}", read, "calls.read", "id", c.getCall},
		{"GET /api/v1/calls/{id}/explanation", read, "calls.read", "id", c.getExplanation},
		{"GET /api/v1/calls/{id}/arguments", read, readArguments, "id", c.getArguments},
		{"GET /api/v1/events", read, "events.read", "", c.getEvents},
		{"GET /api/v1/approvals", read, "approvals.read", "", c.getApprovals},
		{"GET /api/v1/approvals/{id}", read, "approvals.read", "id", c.getApproval},
		{"POST /api/v1/approvals/{id}/decision", approve, "approval.decide", "id", c.postDecision},
		{"GET /api/v1/destinations", read, "destinations.read", "", c.getDestinations},
		{"POST /api/v1/destinations/{id}/revocation", approve, "destinations.revoke", "id", c.postRevocation},
		{"GET /api/v1/pins", read, "pins.read", "", c.getPins},
		{"GET /api/v1/pins/{server}/diff", read, "pins.read", "server", c.getDiff},
		{"POST /api/v1/pins/{server}/approval", pin, "pins.approve", "server", c.postPins},
		{"GET /api/v1/sessions", read, "sessions.read", "", c.getSessions},
		{"GET /api/v1/sessions/{id...}", read, "sessions.read", "id", c.getFlow},
		{"POST /api/v1/reset", grant, "session.reset", "", c.postReset},
		{"GET /api/v1/grants", read, "grants.read", "", c.getGrants},
		{"PUT /api/v1/grants", grant, "grants.write", "", c.putGrants},
		{"GET /api/v1/policy", read, "policy.read", "", c.getPolicy},
		{"POST /api/v1/policy/trial", read, "policy.try", "", c.postTrial},
		{"GET /api/v1/policy/comparison", read, "policy.compare", "", c.getComparison},
		{"POST /api/v1/policy/comparison", read, "policy.compare", "", c.postComparison},
		{"GET /api/v1/findings", read, "findings.read", "", c.getFindings},
		{"GET /api/v1/findings/exceptions", read, "findings.read", "", c.getExceptions},
		{"POST /api/v1/findings/exceptions", grant, "exceptions.write", "", c.postException},
		{"GET /api/v1/modules", read, "modules.read", "", c.getModules},
		{"POST /api/v1/pause", grant, "gateway.pause", "", c.postPause},
		{"POST /api/v1/servers/{server}/restart", grant, "servers.restart", "server", func(w http.ResponseWriter, r *http.Request) error {
			return answer(w, map[string]any{}, c.app.Pauses.Restart(r.Context(), r.PathValue("server"), named(r.Context())))
		}},

		{"GET /ui/{$}", read, "status.read", "", c.overview},
		{"GET /ui/calls", read, "calls.read", "", c.callsPage},
		{"GET /ui/calls/{id}", read, "calls.read", "id", c.callPage},
		{"GET /ui/calls/{id}/explanation", read, "calls.read", "id", c.explanationPage},
		{"GET /ui/calls/{id}/arguments", read, readArguments, "id", c.argumentsPage},
		{"GET /ui/approvals", read, "approvals.read", "", c.approvalsPage},
		{"POST /ui/approvals/{id}", approve, "approval.decide", "id", c.decidePage},
		{"POST /ui/destinations/{id}", approve, "destinations.revoke", "id", c.revokePage},
		{"GET /ui/pins", read, "pins.read", "", c.pinsPage},
		{"POST /ui/pins/{server}", pin, "pins.approve", "server", c.approvePage},
		{"GET /ui/servers", read, "servers.read", "", c.serversPage},
		{"GET /ui/servers/{server}", read, "servers.read", "server", c.serverPage},
		{"GET /ui/skills", read, "skills.read", "", c.skillsPage},
		{"GET /ui/nodes", read, "status.read", "", func(w http.ResponseWriter, r *http.Request) error { return nodesPage(c, w, r) }},
		{"GET /ui/sessions", read, "sessions.read", "", c.sessionsPage},
		{"GET /ui/sessions/{id...}", read, "sessions.read", "id", c.sessionPage},
		{"POST /ui/reset", grant, "session.reset", "", c.resetPage},
		{"GET /ui/grants", read, "grants.read", "", c.grantsPage},
		{"POST /ui/grants", grant, "grants.write", "", c.grantPage},
		{"GET /ui/policy", read, "policy.read", "", c.policyPage},
		{"GET /ui/policy/trial", read, "policy.try", "", c.trialPage},
		{"POST /ui/policy/trial", read, "policy.try", "", c.tryPage},
		{"GET /ui/policy/comparison", read, "policy.compare", "", c.comparisonPage},
		{"POST /ui/policy/comparison", read, "policy.compare", "", c.comparePage},
		{"GET /ui/findings", read, "findings.read", "", c.findingsPage},
		{"GET /ui/findings/exceptions", read, "findings.read", "", c.exceptionsPage},
		{"POST /ui/findings/exceptions", grant, "exceptions.write", "", c.exceptPage},
		{"GET /ui/modules", read, "modules.read", "", c.modulesPage},
		{"POST /ui/pause", grant, "gateway.pause", "", c.pausePage},
		{"POST /ui/servers/{server}/restart", grant, "servers.restart", "server", func(w http.ResponseWriter, r *http.Request) error {
			server := r.PathValue("server")
			if err := c.app.Pauses.Restart(r.Context(), server, named(r.Context())); err != nil {
				return err
			}
			return c.done(w, r, "/ui/servers", "server "+server+" has restarted")
		}},
	}
}

func (c *Console) description(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
	return nil
}

func (c *Console) status() *overview.Status {
	s := c.app.Overview.Status()
	s.Running = true
	return s
}

func (c *Console) getStatus(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, c.status(), nil)
}

func (c *Console) getServers(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, c.status().Servers, nil)
}

func (c *Console) getTools(w http.ResponseWriter, r *http.Request) error {
	tools, err := c.app.Inventory.Tools(r.Context(), r.FormValue("as"), r.FormValue("all") == "true")
	if err != nil {
		return &misused{err.Error()}
	}
	return answer(w, tools, nil)
}

// usual bounds of what is shown of the log at once.
const (
	usualCalls = 100
	mostCalls  = 1000
)

// filter reads which calls are wanted.
func filter(r *http.Request) (q index.Query, err error) {
	q = index.Query{
		Event: gate.Done, Tool: r.FormValue("tool"), Server: r.FormValue("server"), Principal: r.FormValue("principal"), Session: r.FormValue("session"),
		Code: r.FormValue("code"), Refused: r.FormValue("denied") == "true", Text: r.FormValue("text"), Findings: r.FormValue("findings") == "true", Last: usualCalls,
	}
	if s := r.FormValue("last"); s != "" {
		if q.Last, err = strconv.Atoi(s); err != nil || q.Last <= 0 || q.Last > mostCalls {
			return q, &misused{fmt.Sprintf("last %q is not a number from 1 to %d", s, mostCalls)}
		}
	}
	if s := r.FormValue("before"); s != "" {
		if q.Before, err = strconv.ParseUint(s, 10, 64); err != nil {
			return q, &misused{fmt.Sprintf("before %q is not a number of a record", s)}
		}
	}
	if q.Since, err = moment(r, "since"); err == nil {
		q.Until, err = moment(r, "until")
	}
	return q, err
}

// moment reads a time: so long ago, or as RFC 3339 or a browser writes it, then in this
// machine's zone.
func moment(r *http.Request, name string) (time.Time, error) {
	s := r.FormValue(name)
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &misused{fmt.Sprintf("%s %q is neither a duration such as 1h nor a time such as 2006-01-02T15:04", name, s)}
}

// find returns what the log has, the newest first.
func (c *Console) find(ctx context.Context, q index.Query) ([]audit.Entry, index.Progress, error) {
	all, p, err := c.index.Find(ctx, q)
	if errors.Is(err, path.ErrBadPattern) {
		err = &misused{err.Error()}
	}
	return all, p, err
}

// raw are records as they were written.
func raw(entries []audit.Entry) []rawJSON {
	all := make([]rawJSON, 0, len(entries))
	for _, e := range entries {
		all = append(all, rawJSON(e.Raw))
	}
	return all
}

// rawJSON is JSON already.
type rawJSON []byte

func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// getCalls also says how much of the log was looked at.
func (c *Console) getCalls(w http.ResponseWriter, r *http.Request) error {
	q, err := filter(r)
	if err != nil {
		return err
	}
	all, p, err := c.find(r.Context(), q)
	if err != nil {
		return err
	}
	w.Header().Set("Wasmgate-Indexed", strconv.FormatFloat(p.Part, 'f', 4, 64))
	return answer(w, raw(all), nil)
}

// call returns all records of a call, the oldest first.
func (c *Console) call(r *http.Request) ([]audit.Entry, error) {
	if at := r.FormValue("gateway"); at != "" && at != c.app.Nodes.Own() {
		return otherCall(r.Context(), c.app.Nodes, at, r.PathValue("id"))
	}
	all, p, err := c.find(r.Context(), index.Query{Call: r.PathValue("id"), Last: mostCalls})
	if err == nil && len(all) == 0 {
		what := "call " + r.PathValue("id") + " in the log"
		if !p.Done() {
			what += fmt.Sprintf(", as far as it is indexed (%.0f %%)", 100*p.Part)
		}
		err = &missing{what}
	}
	slices.Reverse(all)
	return all, err
}

func (c *Console) getCall(w http.ResponseWriter, r *http.Request) error {
	all, err := c.call(r)
	return answer(w, raw(all), err)
}

const (
	// maxReaders is how many may read events at once: each reads the log for itself.
	maxReaders = 16
	// readTime is after how long a reader has to ask again, which EventSource does by itself:
	// a policy that denies it by then holds.
	readTime = 5 * time.Minute
)

var errReaders = fmt.Errorf("%d open pages show events already: close one of them, and try again", maxReaders)

// readers are the open streams of events.
type readers struct {
	mu  sync.Mutex
	all map[*reader]*reader
}

type reader struct {
	owner gate.Owner // none for the operator
	since time.Time
	end   func()
}

// enter makes room for one more: in a full table the oldest reader of the caller that has the most
// ends, unless it is the same caller.
func (t *readers) enter(by caller, end func()) (leave func(), err error) {
	one := &reader{since: time.Now(), end: end}
	if !by.operator {
		one.owner = by.Owner
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxReaders {
		out := evict.Next(t.all, func(r *reader) (gate.Owner, time.Time) { return r.owner, r.since })
		if out.owner == one.owner {
			return nil, errReaders
		}
		out.end()
		delete(t.all, out)
	}
	t.all[one] = one
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.all, one)
	}, nil
}

// getEvents sends records as they are written, after the one with the number Last-Event-ID (WHATWG
// HTML, server-sent events). It sends nothing more to a reader that has signed out.
func (c *Console) getEvents(w http.ResponseWriter, r *http.Request) error {
	f := audit.Filter{Follow: true, Since: time.Now()}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		after, err := strconv.ParseUint(last, 10, 64)
		if err != nil {
			return &misused{fmt.Sprintf("Last-Event-ID %q is not a number of a record", last)}
		}
		f.After, f.Since = after, time.Time{}
	}
	ctx, cancel := context.WithTimeout(r.Context(), readTime)
	defer cancel()
	leave, err := c.readers.enter(by(r.Context()), cancel)
	if err != nil {
		return err
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	fmt.Fprint(w, ": the records as they are written\n\n")
	_ = flush.Flush()
	for e, err := range audit.Read(ctx, c.app.AuditPath(), f) {
		if err != nil {
			continue // damage, which verify reports
		}
		if _, err := c.caller(r, false, false); err != nil {
			return nil
		}
		if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.Seq, e.Raw); err != nil {
			return nil
		}
		_ = flush.Flush()
	}
	return nil
}

func (c *Console) approvals(ctx context.Context) ([]approvals.Approval, error) {
	if !c.app.Approvals.On() {
		return []approvals.Approval{}, nil
	}
	return c.app.Approvals.List(ctx)
}

func (c *Console) getApprovals(w http.ResponseWriter, r *http.Request) error {
	all, err := c.approvals(r.Context())
	return answer(w, all, err)
}

func (c *Console) getApproval(w http.ResponseWriter, r *http.Request) error {
	one, err := c.app.Approvals.Show(r.Context(), r.PathValue("id"))
	if err != nil {
		return &missing{err.Error()}
	}
	return answer(w, one, nil)
}

// A decision answers an approval as it was seen: Binding is the one that it had.
type decision struct {
	Verdict gate.Verdict `json:"verdict"`
	Binding string       `json:"binding"`
	Note    string       `json:"note"`
	Always  bool         `json:"always"`
	// Destination approves the call's destinations, too, until its session ends.
	Destination bool `json:"destination"`
	// Also approve the values that are shown next to the destinations.
	Beside bool `json:"beside"`
}

func (c *Console) decide(ctx context.Context, id string, d decision) (*approvals.Decided, error) {
	if d.Verdict != gate.Approved && d.Verdict != gate.Denied {
		return nil, &misused{"verdict is approved or denied"}
	}
	one, err := c.app.Approvals.Show(ctx, id)
	if err != nil {
		return nil, &missing{err.Error()}
	}
	if one.Binding != d.Binding {
		return nil, &conflict{"approval " + id}
	}
	if d.Always {
		if err := c.may(ctx, "admin/grant", "grant.always", one.Tool, true); err != nil {
			return nil, err
		}
	}
	request := approvals.DecideRequest{ID: id, Verdict: d.Verdict, Note: d.Note, Always: d.Always, Destination: d.Destination, Beside: d.Beside}
	request.Token = by(ctx).key // whose answer it is then
	return c.app.Approvals.Decide(ctx, request)
}

func (c *Console) postDecision(w http.ResponseWriter, r *http.Request) error {
	var d decision
	if err := read(r, &d); err != nil {
		return err
	}
	done, err := c.decide(r.Context(), r.PathValue("id"), d)
	return answer(w, done, err)
}

func (c *Console) getDestinations(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, c.app.Approvals.Destinations(), nil)
}

// revoke takes back the destinations that an approval was for.
func (c *Console) revoke(r *http.Request) ([]gate.Destination, error) {
	return c.app.Approvals.RevokeDestinations(r.Context(), r.PathValue("id"), named(r.Context()))
}

func (c *Console) postRevocation(w http.ResponseWriter, r *http.Request) error {
	gone, err := c.revoke(r)
	return answer(w, gone, err)
}

func (c *Console) getPins(w http.ResponseWriter, r *http.Request) error {
	pins, err := c.app.Pins.List(r.Context(), "")
	return answer(w, pins, err)
}

// difference is how a server differs from what was approved. Seen names that state.
type difference struct {
	Server      string            `json:"server"`
	Seen        string            `json:"seen"`
	Differences []lock.Difference `json:"differences"`
}

func (c *Console) difference(ctx context.Context, server string) (d difference, pins []lock.Pin, err error) {
	review, err := c.app.Pins.Review(ctx, server)
	if errors.Is(err, lock.ErrNothing) {
		err = &missing{"pinned server " + server}
	}
	if err != nil {
		return d, nil, err
	}
	seen := ""
	for _, p := range review.Approval {
		seen += p.String() + " " + p.Digest + "\n"
	}
	return difference{server, fmt.Sprintf("%x", sum(seen)), review.Differences}, review.Approval, nil
}

func (c *Console) getDiff(w http.ResponseWriter, r *http.Request) error {
	d, _, err := c.difference(r.Context(), r.PathValue("server"))
	return answer(w, d, err)
}

// approvePins approves of what a server declares now, if it is what was seen.
func (c *Console) approvePins(ctx context.Context, server, seen string) ([]lock.Pin, error) {
	d, pins, err := c.difference(ctx, server)
	if err != nil {
		return nil, err
	}
	if d.Seen != seen {
		return nil, &conflict{"what server " + server + " declares"}
	}
	return c.app.Pins.Approve(ctx, pins, by(ctx).ID)
}

func (c *Console) postPins(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Seen string `json:"seen"`
	}
	if err := read(r, &asked); err != nil {
		return err
	}
	added, err := c.approvePins(r.Context(), r.PathValue("server"), asked.Seen)
	return answer(w, map[string]any{"approved": append([]lock.Pin{}, added...)}, err)
}

func (c *Console) getSessions(w http.ResponseWriter, r *http.Request) error {
	all, err := c.app.Sessions.List(r.Context())
	return answer(w, all, err)
}

// session returns a session and its calls, the oldest first.
func (c *Console) session(r *http.Request) (sessions.Session, []audit.Entry, error) {
	all, err := c.app.Sessions.List(r.Context())
	if err != nil {
		return sessions.Session{}, nil, err
	}
	s, err := sessions.Find(all, r.PathValue("id"))
	if err != nil {
		return sessions.Session{}, nil, err
	}
	since, err := c.since(r.Context(), s)
	if err != nil {
		return sessions.Session{}, nil, err
	}
	calls, _, err := c.find(r.Context(), index.Query{Event: gate.Done, Session: s.Session, Principal: s.Principal, Since: since, Last: mostCalls})
	calls = slices.DeleteFunc(calls, func(e audit.Entry) bool { return e.Tenant != s.Tenant })
	slices.Reverse(calls)
	return s, calls, err
}

// since is when a session began, or the first of the calls with which its labels came: those of
// one that was kept over a restart came before.
func (c *Console) since(ctx context.Context, s sessions.Session) (time.Time, error) {
	since := s.Began.Add(-time.Second)
	for _, id := range s.Raised {
		raised, _, err := c.find(ctx, index.Query{Event: gate.Done, Call: id, Session: s.Session, Principal: s.Principal})
		if err != nil {
			return since, err
		}
		for _, e := range raised {
			if e.ID == id && e.Time.Before(since) {
				since = e.Time
			}
		}
	}
	return since, nil
}

func (c *Console) getFlow(w http.ResponseWriter, r *http.Request) error {
	s, calls, err := c.session(r)
	return answer(w, map[string]any{"session": s, "flow": flow.Of(calls)}, err)
}

// reset takes from a session what it has read, if it is still the version that was seen.
func (c *Console) reset(ctx context.Context, id string, version uint64) error {
	all, err := c.app.Sessions.List(ctx)
	if err != nil {
		return err
	}
	s, err := sessions.Find(all, id)
	if err != nil {
		return err
	}
	if s.Version != version {
		return &conflict{"session " + id}
	}
	if _, err = c.app.Sessions.Reset(ctx, s, named(ctx)); errors.Is(err, gate.ErrStale) { // it has read something meanwhile
		return &conflict{"session " + id}
	}
	return err
}

func (c *Console) postReset(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Session string `json:"session"`
		Version uint64 `json:"version"`
	}
	if err := read(r, &asked); err != nil {
		return err
	}
	if err := c.reset(r.Context(), asked.Session, asked.Version); err != nil {
		return err
	}
	return answer(w, map[string]any{"session": asked.Session}, nil)
}

func (c *Console) postPause(w http.ResponseWriter, r *http.Request) error {
	var asked struct {
		Server string `json:"server"`
		Resume bool   `json:"resume"`
	}
	if err := read(r, &asked); err != nil {
		return err
	}
	paused, err := c.app.Pauses.Pause(r.Context(), asked.Server, asked.Resume, named(r.Context()))
	return answer(w, map[string]any{"paused": append([]string{}, paused...)}, err)
}
