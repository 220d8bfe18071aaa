package console

import (
	_ "embed"
	"net/http"

	"github.com/wasmgate/wasmgate/internal/app"
)

// parts are what a console serves, each with what it needs of the gateway and nothing else.
type parts struct {
	*frame
	*access
	approvals    *approvalHandlers
	arguments    *argumentHandlers
	calls        *callHandlers
	comparisons  *comparisonHandlers
	events       *eventHandlers
	exceptions   *exceptionHandlers
	explanations *explanationHandlers
	findings     *findingHandlers
	grants       *grantHandlers
	modules      *moduleHandlers
	nodes        *nodeHandlers
	overview     *overviewHandlers
	pins         *pinHandlers
	policy       *policyHandlers
	servers      *serverHandlers
	sessions     *sessionHandlers
	skills       *skillHandlers
	trials       *trialHandlers
}

func newParts(a *app.App, log *auditLog, f *frame, who *access) parts {
	path := a.AuditPath()
	policy := &currentPolicy{a.Settings, a.Policies, a.Inventory, path}
	return parts{
		frame: f, access: who,
		approvals:    &approvalHandlers{f, who, a.Approvals, a.Inventory},
		arguments:    &argumentHandlers{f, log, a.Documents},
		calls:        &callHandlers{f, log, a.Nodes},
		comparisons:  &comparisonHandlers{frame: f, access: who, policy: policy, policies: a.Policies, inventory: a.Inventory, path: path, documents: a.Documents},
		events:       &eventHandlers{who, path, readers{all: make(map[*reader]*reader)}},
		exceptions:   &exceptionHandlers{f, a.Exceptions},
		explanations: &explanationHandlers{f, log, policy},
		findings:     &findingHandlers{f, log},
		grants:       &grantHandlers{f, who, log, a.Policies, a.Inventory},
		modules:      &moduleHandlers{f, log},
		nodes:        &nodeHandlers{f, a.Nodes},
		overview:     &overviewHandlers{f, log},
		pins:         &pinHandlers{f, a.Pins},
		policy:       &policyHandlers{f, log, a.Policies},
		servers:      &serverHandlers{f, a.Inventory, a.Pauses},
		sessions:     &sessionHandlers{f, log, a.Sessions},
		skills:       &skillHandlers{f, a.Inventory},
		trials:       &trialHandlers{f, policy, a.Inventory, a.Principal},
	}
}

//go:embed openapi.yaml
var openAPI []byte

// routes are all that can be asked for but signing in.
func (p *parts) routes() []route {
	const read, approve, pin, grant = "admin/read", "admin/approve", "admin/pin", "admin/grant"
	return []route{
		{"GET /api/v1/openapi.yaml", read, "openapi.read", "", description},
		{"GET /api/v1/status", read, "status.read", "", p.overview.getStatus},
		{"GET /api/v1/nodes", read, "status.read", "", p.nodes.getNodes},
		{"GET /api/v1/servers", read, "servers.read", "", p.servers.getServers},
		{"GET /api/v1/tools", read, "tools.read", "", p.servers.getTools},
		{"GET /api/v1/skills", read, "skills.read", "", p.skills.getSkills},
		{"GET /api/v1/calls", read, "calls.read", "", p.calls.getCalls},
		{"GET /api/v1/calls/{id}", read, "calls.read", "id", p.calls.getCall},
		{"GET /api/v1/calls/{id}/explanation", read, "calls.read", "id", p.explanations.getExplanation},
		{"GET /api/v1/calls/{id}/arguments", read, readArguments, "id", p.arguments.getArguments},
		{"GET /api/v1/events", read, "events.read", "", p.events.getEvents},
		{"GET /api/v1/approvals", read, "approvals.read", "", p.approvals.getApprovals},
		{"GET /api/v1/approvals/{id}", read, "approvals.read", "id", p.approvals.getApproval},
		{"POST /api/v1/approvals/{id}/decision", approve, "approval.decide", "id", p.approvals.postDecision},
		{"GET /api/v1/destinations", read, "destinations.read", "", p.approvals.getDestinations},
		{"POST /api/v1/destinations/{id}/revocation", approve, "destinations.revoke", "id", p.approvals.postRevocation},
		{"GET /api/v1/pins", read, "pins.read", "", p.pins.getPins},
		{"GET /api/v1/pins/{server}/diff", read, "pins.read", "server", p.pins.getDiff},
		{"POST /api/v1/pins/{server}/approval", pin, "pins.approve", "server", p.pins.postPins},
		{"GET /api/v1/sessions", read, "sessions.read", "", p.sessions.getSessions},
		{"GET /api/v1/sessions/{id...}", read, "sessions.read", "id", p.sessions.getFlow},
		{"POST /api/v1/reset", grant, "session.reset", "", p.sessions.postReset},
		{"GET /api/v1/grants", read, "grants.read", "", p.grants.getGrants},
		{"PUT /api/v1/grants", grant, "grants.write", "", p.grants.putGrants},
		{"GET /api/v1/policy", read, "policy.read", "", p.policy.getPolicy},
		{"POST /api/v1/policy/trial", read, "policy.try", "", p.trials.postTrial},
		{"GET /api/v1/policy/comparison", read, "policy.compare", "", p.comparisons.getComparison},
		{"POST /api/v1/policy/comparison", read, "policy.compare", "", p.comparisons.postComparison},
		{"GET /api/v1/findings", read, "findings.read", "", p.findings.getFindings},
		{"GET /api/v1/findings/exceptions", read, "findings.read", "", p.exceptions.getExceptions},
		{"POST /api/v1/findings/exceptions", grant, "exceptions.write", "", p.exceptions.postException},
		{"GET /api/v1/modules", read, "modules.read", "", p.modules.getModules},
		{"POST /api/v1/pause", grant, "gateway.pause", "", p.servers.postPause},
		{"POST /api/v1/servers/{server}/restart", grant, "servers.restart", "server", p.servers.postRestart},

		{"GET /ui/{$}", read, "status.read", "", p.overview.overviewPage},
		{"GET /ui/calls", read, "calls.read", "", p.calls.callsPage},
		{"GET /ui/calls/{id}", read, "calls.read", "id", p.calls.callPage},
		{"GET /ui/calls/{id}/explanation", read, "calls.read", "id", p.explanations.explanationPage},
		{"GET /ui/calls/{id}/arguments", read, readArguments, "id", p.arguments.argumentsPage},
		{"GET /ui/approvals", read, "approvals.read", "", p.approvals.approvalsPage},
		{"POST /ui/approvals/{id}", approve, "approval.decide", "id", p.approvals.decidePage},
		{"POST /ui/destinations/{id}", approve, "destinations.revoke", "id", p.approvals.revokePage},
		{"GET /ui/pins", read, "pins.read", "", p.pins.pinsPage},
		{"POST /ui/pins/{server}", pin, "pins.approve", "server", p.pins.approvePage},
		{"GET /ui/servers", read, "servers.read", "", p.servers.serversPage},
		{"GET /ui/servers/{server}", read, "servers.read", "server", p.servers.serverPage},
		{"GET /ui/skills", read, "skills.read", "", p.skills.skillsPage},
		{"GET /ui/nodes", read, "status.read", "", p.nodes.nodesPage},
		{"GET /ui/sessions", read, "sessions.read", "", p.sessions.sessionsPage},
		{"GET /ui/sessions/{id...}", read, "sessions.read", "id", p.sessions.sessionPage},
		{"POST /ui/reset", grant, "session.reset", "", p.sessions.resetPage},
		{"GET /ui/grants", read, "grants.read", "", p.grants.grantsPage},
		{"POST /ui/grants", grant, "grants.write", "", p.grants.grantPage},
		{"GET /ui/policy", read, "policy.read", "", p.policy.policyPage},
		{"GET /ui/policy/trial", read, "policy.try", "", p.trials.trialPage},
		{"POST /ui/policy/trial", read, "policy.try", "", p.trials.tryPage},
		{"GET /ui/policy/comparison", read, "policy.compare", "", p.comparisons.comparisonPage},
		{"POST /ui/policy/comparison", read, "policy.compare", "", p.comparisons.comparePage},
		{"GET /ui/findings", read, "findings.read", "", p.findings.findingsPage},
		{"GET /ui/findings/exceptions", read, "findings.read", "", p.exceptions.exceptionsPage},
		{"POST /ui/findings/exceptions", grant, "exceptions.write", "", p.exceptions.exceptPage},
		{"GET /ui/modules", read, "modules.read", "", p.modules.modulesPage},
		{"POST /ui/pause", grant, "gateway.pause", "", p.servers.pausePage},
		{"POST /ui/servers/{server}/restart", grant, "servers.restart", "server", p.servers.restartPage},
	}
}

func description(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
	return nil
}
