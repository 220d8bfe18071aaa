package console

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/wasmgate/wasmgate/bridge/gateway/status"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
	"github.com/wasmgate/wasmgate/internal/app/approvals"
	"github.com/wasmgate/wasmgate/internal/app/inventory"
	"github.com/wasmgate/wasmgate/internal/app/overview"
	"github.com/wasmgate/wasmgate/internal/audit/flow"
	"github.com/wasmgate/wasmgate/internal/audit/index"
	"github.com/wasmgate/wasmgate/internal/escaped"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/match"
	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/replay"
)

//go:embed pages
var pages embed.FS

// templates are the pages, each within the frame.
var templates = sync.OnceValue(func() map[string]*template.Template {
	functions := template.FuncMap{
		"visible": visible, "who": match.Name, "clock": clock, "took": took, "left": left, "help": product.Help, "state": state, "pausing": pausingOf, "escaped": url.PathEscape, "effect": effect, "join": strings.Join, "ago": ago, "percent": func(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) },
		"words": wordsOf, "raw": func(b []byte) string { return escaped.JSON(b) }, "otherwise": replay.Otherwise,
		"why":  func(e audit.Entry) string { return audit.Why(&e) },
		"text": func(b []byte) string { return escaped.Text(string(b)) },
	}
	frame := template.Must(template.New("frame.html").Funcs(functions).ParseFS(pages, "pages/frame.html"))
	all := make(map[string]*template.Template)
	files, err := pages.ReadDir("pages")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".html"); ok && name != "frame" {
			all[name] = template.Must(template.Must(frame.Clone()).ParseFS(pages, "pages/"+f.Name()))
		}
	}
	return all
})

// visible shows a text, of any type whose kind is string. Anything else that reaches a page by
// mistake is an error: a person cannot read it.
func visible(v any) (string, error) {
	if s := reflect.ValueOf(v); s.Kind() == reflect.String {
		return escaped.Text(s.String()), nil
	}
	return "", fmt.Errorf("internal error: a page shows a %T as text", v)
}

// A view is what a page shows.
type view struct {
	Title   string
	At      string  // the link of the navigation under which it stands
	Nav     []group // none if no one is signed in
	Out     bool    // no one is signed in
	Problem string
	Done    string // what was done before
	Of      any
}

// Waiting is how many questions wait for an answer, for the title of the window.
func (v view) Waiting() int {
	for _, g := range v.Nav {
		for _, l := range g.Links {
			if l.At == "approvals" {
				return l.Count
			}
		}
	}
	return 0
}

func page(w http.ResponseWriter, status int, name string, v view) {
	var b bytes.Buffer
	if err := templates()[name].Execute(&b, v); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the browser has gone
}

func (c *Console) show(w http.ResponseWriter, r *http.Request, name, title string, of any) error {
	done := r.FormValue("done")
	if !hmac.Equal([]byte(r.FormValue("seal")), []byte(c.seal(r, done))) {
		done = "" // a link of another's making
	}
	at := cmp.Or(under[name], name)
	page(w, http.StatusOK, name, view{Title: title, At: at, Nav: c.navigation(r, at), Done: done, Of: of})
	return nil
}

// done goes back to a page that says what was done, so that loading it again does nothing.
func (c *Console) done(w http.ResponseWriter, r *http.Request, to, what string) error {
	http.Redirect(w, r, to+"?"+url.Values{"done": {what}, "seal": {c.seal(r, what)}}.Encode(), http.StatusSeeOther)
	return nil
}

// seal proves to the browser of a request that the console has said a text to it.
func (c *Console) seal(r *http.Request, text string) string {
	h := hmac.New(sha256.New, c.sealing)
	if kept, err := r.Cookie(cookieName(stayName, r)); err == nil {
		h.Write([]byte(kept.Value + "\x00"))
	}
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func left(until time.Time) string { return max(0, time.Until(until)).Round(time.Second).String() }

func took(us int64) string {
	return (time.Duration(us) * time.Microsecond).Round(10 * time.Microsecond).String()
}

// effect returns one word for the outcome of a call, for the style sheet.
func effect(code string) string {
	switch {
	case code == codes.OK:
		return "ok"
	case strings.HasPrefix(code, "refused_"):
		return "refused"
	default:
		return "failed"
	}
}

// state returns one word for the state of a server, for the style sheet.
func state(p status.Phase) string {
	switch p {
	case status.Ready:
		return "ok"
	case status.Faulted:
		return "refused"
	default:
		return "failed"
	}
}

// pausing is a server whose calls can be paused, or are.
type pausing struct {
	Server string
	Paused bool
}

func pausingOf(server string, paused []string) pausing {
	return pausing{server, slices.Contains(paused, server)}
}

// count is how often something was.
type count struct {
	Name string
	N    int
}

// mostOf is how many counts a table of the overview shows.
const mostOf = 8

// counted returns counts, the greatest first, at most mostOf.
func counted(of map[string]int) (all []count) {
	for name, n := range of {
		all = append(all, count{name, n})
	}
	slices.SortFunc(all, func(a, b count) int { return cmp.Or(b.N-a.N, strings.Compare(a.Name, b.Name)) })
	return all[:min(len(all), mostOf)]
}

// A trouble is what a person should look at.
type trouble struct{ Text, Page string }

// problemsOf lists them, each with the page that shows more.
func problemsOf(s *overview.Status) (all []trouble) {
	add := func(page, format string, args ...any) { all = append(all, trouble{fmt.Sprintf(format, args...), page}) }
	for _, p := range s.Problems {
		add("", "%s", p)
	}
	switch {
	case s.Approvals == 1:
		add("/ui/approvals", "A call needs approval.")
	case s.Approvals > 1:
		add("/ui/approvals", "%d calls need approval.", s.Approvals)
	}
	for _, one := range s.Servers {
		page := "/ui/servers/" + url.PathEscape(one.Server)
		if one.Error != "" {
			add(page, "Server %s: %s", one.Server, one.Error)
		}
		if one.Circuit != "" {
			add(page, "Server %s fails: its circuit is %s.", one.Server, one.Circuit)
		}
		for _, what := range one.Unenforced {
			add(page, "Server %s is not fully confined: %s", one.Server, what)
		}
		for _, name := range one.Quarantined {
			add("/ui/pins", "Server %s: %s needs approval.", one.Server, name)
		}
		for _, n := range one.Notes {
			if n.Quarantined && !slices.Contains(one.Quarantined, n.Tool) {
				add(page, "Server %s: %s %s", one.Server, n.Tool, n.Text)
			}
		}
	}
	return all
}

func (c *Console) overview(w http.ResponseWriter, r *http.Request) error {
	calls, byCode, byTool, byWho := 0, map[string]int{}, map[string]int{}, map[string]int{}
	now := time.Now()
	hour := lastHour(now)
	p, err := c.index.Each(r.Context(), index.Query{Event: gate.Done, Since: now.Add(-time.Hour)}, func(r index.Row) bool {
		calls++
		byCode[r.Code]++
		byTool[r.Tool]++
		byWho[match.Name(r.Tenant, r.Principal)]++
		hour.addRow(r)
		return true
	})
	if err != nil {
		return err
	}
	s, ready := c.status(), 0
	for _, one := range s.Servers {
		if one.Error == "" {
			ready++
		}
	}
	return c.show(w, r, "overview", "Overview", map[string]any{
		"Status": s, "Problems": problemsOf(s), "Calls": calls, "Codes": counted(byCode), "Tools": counted(byTool), "Principals": counted(byWho), "Ready": ready,
		"Quarantined": quarantinedIn(s), "Chart": chart(hour), "Paused": slices.Contains(s.Paused, ""), "Indexed": p,
	})
}

// outcomes are the codes by which calls are found most often.
var outcomes = []string{
	codes.OK, codes.ToolError, "refused_authorize", "refused_approve", "refused_pin", "refused_lookup", "refused_validate_input", "refused_validate_output",
	"refused_limit", "refused_busy", "refused_store", codes.Timeout, codes.Cancelled, "transport", codes.Protocol,
}

// rareFilters are the filters of calls that are folded unless one of them is used.
var rareFilters = []string{"server", "session", "until", "text", "findings", "gateway"}

func (c *Console) callsPage(w http.ResponseWriter, r *http.Request) error {
	q, err := filter(r)
	if err != nil {
		return err
	}
	own, p, err := c.find(r.Context(), q)
	if err != nil {
		return err
	}
	query, older := r.URL.Query(), template.URL("")
	all, missing := withOthers(r.Context(), c.app.Nodes, own, query, q.Last)
	if len(all) == q.Last {
		next := r.URL.Query()
		if last := all[len(all)-1]; c.app.Nodes.Own() == "" {
			next.Set("before", strconv.FormatUint(last.Seq, 10))
		} else { // each log has numbers of its own
			next.Set("until", last.Time.Format(time.RFC3339Nano))
		}
		older = template.URL(next.Encode()) // which has escaped it
	}
	var over template.HTML
	if len(all) > 1 {
		span := around(all[len(all)-1].Time, all[0].Time)
		for _, e := range all {
			span.add(e.Time, e.Code)
		}
		over = chart(span)
	}
	return c.show(w, r, "calls", "Calls", map[string]any{"Calls": all, "Query": query, "Outcomes": outcomes, "More": slices.ContainsFunc(rareFilters, query.Has), "Live": r.URL.RawQuery == "", "Older": older, "Chart": over, "Indexed": p, "Here": c.app.Nodes.Own(), "Missing": missing})
}

func (c *Console) callPage(w http.ResponseWriter, r *http.Request) error {
	all, err := c.call(r)
	if err != nil {
		return err
	}
	id := r.PathValue("id")
	main, beside := mainOf(id, all), []audit.Entry{}
	for _, e := range all {
		if e.Seq != main.Seq && !(e.ID == id && e.Event == gate.Granted) {
			beside = append(beside, e)
		}
	}
	elsewhere := r.FormValue("gateway") // whose console has more
	if elsewhere == c.app.Nodes.Own() {
		elsewhere = ""
	}
	return c.show(w, r, "call", "Call", map[string]any{"Call": main, "Beside": beside, "Values": flow.Values(main), "Steps": steps(main), "Raw": all, "Elsewhere": elsewhere, "Test": replay.Test(main), "IsTool": main.Action == gate.CallTool && elsewhere == ""})
}

// asked is a question with what the server says about its tool.
type asked struct {
	approvals.Approval
	Description string
	Annotations []byte // JSON; empty if there are none
}

func (c *Console) describe(a approvals.Approval) asked {
	q := asked{Approval: a}
	known := c.app.Inventory.KnownTools()
	if i := slices.IndexFunc(known, func(t *gate.Tool) bool { return t.Name.String() == a.Tool }); i >= 0 {
		q.Description = known[i].Definition.Get("description").Text()
		if hints := known[i].Definition.Get("annotations"); !hints.IsZero() {
			q.Annotations = hints.Raw()
		}
	}
	return q
}

func (c *Console) approvalsPage(w http.ResponseWriter, r *http.Request) error {
	all, err := c.approvals(r.Context())
	if err != nil {
		return err
	}
	for i, a := range all { // with their arguments, which lists leave out
		if one, err := c.app.Approvals.Show(r.Context(), a.ID); err == nil {
			all[i] = *one
		}
	}
	still, err := c.app.Approvals.StillAsked(r.Context())
	if err != nil {
		return err
	}
	var asked []asked
	for _, a := range all {
		asked = append(asked, c.describe(a))
	}
	return c.show(w, r, "approvals", "Approvals", map[string]any{"All": asked, "Asks": c.app.Approvals.On(), "Destinations": c.app.Approvals.Destinations(), "Still": still})
}

func (c *Console) decidePage(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	d := decision{Binding: r.PostFormValue("binding"), Note: r.PostFormValue("note")}
	switch r.PostFormValue("verdict") {
	case "once":
		d.Verdict = gate.Approved
	case "always":
		d.Verdict, d.Always = gate.Approved, true
	case "destination":
		d.Verdict, d.Destination = gate.Approved, true
	case "beside":
		d.Verdict, d.Destination, d.Beside = gate.Approved, true, true
	case "deny":
		d.Verdict = gate.Denied
	}
	decided, err := c.decide(r.Context(), id, d)
	if err != nil {
		return err
	}
	said := fmt.Sprintf("%s by %s is %s.", decided.Approval.Tool, decided.Approval.Principal, d.Verdict)
	if a := decided.Always; a != nil && a.Still != "" {
		said += " No grant was written: the policy will still say " + a.Still + "."
	}
	return c.done(w, r, "/ui/approvals", said)
}

func (c *Console) revokePage(w http.ResponseWriter, r *http.Request) error {
	gone, err := c.revoke(r)
	if err != nil {
		return err
	}
	return c.done(w, r, "/ui/approvals", fmt.Sprintf("the approval of %d destinations was removed", len(gone)))
}

func (c *Console) pinsPage(w http.ResponseWriter, r *http.Request) error {
	all, err := c.app.Pins.List(r.Context(), "")
	if err != nil {
		return c.show(w, r, "pins", "Pins", map[string]any{"Off": err.Error()})
	}
	var waiting []difference
	for _, server := range servers(all.Pins) {
		d, pins, err := c.difference(r.Context(), server)
		if err != nil {
			return err
		}
		if d.Differences = slices.DeleteFunc(d.Differences, func(d lock.Difference) bool { return !d.State.Quarantined() }); len(d.Differences) > 0 && len(pins) > 0 {
			waiting = append(waiting, d)
		}
	}
	return c.show(w, r, "pins", "Pins", map[string]any{"Pins": all, "Servers": byServer(all.Pins), "Waiting": waiting})
}

// pinned are the pins of one server.
type pinned struct {
	Server      string
	Pins        []lock.Entry
	Quarantined int
}

// byServer divides pins, which are sorted by server.
func byServer(pins []lock.Entry) (all []pinned) {
	for _, e := range pins {
		if len(all) == 0 || all[len(all)-1].Server != e.Server {
			all = append(all, pinned{Server: e.Server})
		}
		last := &all[len(all)-1]
		last.Pins = append(last.Pins, e)
		if e.State.Quarantined() {
			last.Quarantined++
		}
	}
	return all
}

// words divides two versions of a text into what both begin and end with, in whole words, and
// what is between.
type words struct{ Before, Old, New, After string }

func wordsOf(c lock.Reviewed) words {
	a, b := strings.SplitAfter(c.Old, " "), strings.SplitAfter(c.New, " ")
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	middle := func(s []string) string { return strings.Join(s[head:len(s)-tail], "") }
	return words{strings.Join(a[:head], ""), middle(a), middle(b), strings.Join(a[len(a)-tail:], "")}
}

// servers returns the ids of the servers with something quarantined.
func servers(pins []lock.Entry) (ids []string) {
	for _, e := range pins {
		if e.State.Quarantined() && !slices.Contains(ids, e.Server) {
			ids = append(ids, e.Server)
		}
	}
	return ids
}

func (c *Console) approvePage(w http.ResponseWriter, r *http.Request) error {
	server := r.PathValue("server")
	added, err := c.approvePins(r.Context(), server, r.PostFormValue("seen"))
	if err != nil {
		return err
	}
	return c.done(w, r, "/ui/pins", fmt.Sprintf("%d definitions of %s are approved", len(added), server))
}

func (c *Console) serversPage(w http.ResponseWriter, r *http.Request) error {
	s := c.status()
	return c.show(w, r, "servers", "Servers", map[string]any{"Status": s, "Paused": s.Paused})
}

func (c *Console) serverPage(w http.ResponseWriter, r *http.Request) error {
	s := c.status()
	id := r.PathValue("server")
	for _, one := range s.Servers {
		if one.Server == id {
			tools, err := c.app.Inventory.Tools(r.Context(), "", true)
			if err != nil {
				return err
			}
			tools = slices.DeleteFunc(tools, func(t inventory.Tool) bool { return t.Server != id })
			return c.show(w, r, "server", id, map[string]any{"Server": one, "Tools": tools, "Paused": s.Paused})
		}
	}
	return &missing{"server " + id}
}

func (c *Console) sessionsPage(w http.ResponseWriter, r *http.Request) error {
	all, err := c.app.Sessions.List(r.Context())
	if err != nil {
		return err
	}
	return c.show(w, r, "sessions", "Sessions", all)
}

func (c *Console) sessionPage(w http.ResponseWriter, r *http.Request) error {
	s, calls, err := c.session(r)
	if err != nil {
		return err
	}
	f := flow.Of(calls)
	return c.show(w, r, "session", "Session", map[string]any{"Session": s, "Flow": f, "Picture": picture(f)})
}

func (c *Console) resetPage(w http.ResponseWriter, r *http.Request) error {
	version, err := strconv.ParseUint(r.PostFormValue("version"), 10, 64)
	if err != nil {
		return &misused{"the form has no version of the session"}
	}
	id := r.PostFormValue("session")
	if err := c.reset(r.Context(), id, version); err != nil {
		return err
	}
	return c.done(w, r, "/ui/sessions", "session "+id+" has no labels now")
}

func (c *Console) pausePage(w http.ResponseWriter, r *http.Request) error {
	server, resume := r.PostFormValue("server"), r.PostFormValue("resume") == "true"
	if _, err := c.app.Pauses.Pause(r.Context(), server, resume, named(r.Context())); err != nil {
		return err
	}
	what, to := "the gateway", "/ui/"
	if server != "" {
		what, to = "server "+server, "/ui/servers"
	}
	if resume {
		return c.done(w, r, to, what+" is resumed")
	}
	return c.done(w, r, to, what+" is paused: every new call is refused")
}

// nodesPage shows the gateways of the database.
func nodesPage(c *Console, w http.ResponseWriter, r *http.Request) error {
	all, err := c.app.Nodes.All(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		return &missing{"database that gateways share: see docs/how-to/cluster.md"}
	}
	return c.show(w, r, "nodes", "Gateways", map[string]any{"Nodes": all.Nodes, "Problems": all.Problems, "Here": c.app.Nodes.Own()})
}
