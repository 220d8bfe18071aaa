package doctor

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/policy"
	"github.com/wasmgate/wasmgate/internal/policyfiles"
)

// An UpgradeLine is a place in a user's files that means something else than it did to an
// earlier version: a row of UPGRADING.md, where it is about that user.
type UpgradeLine struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // 0 if it is about what the file does not say
	Changed string `json:"changed"`
	Write   string `json:"write,omitempty"` // what to write for the old meaning; "" if there is nothing to do
}

// Upgrade returns the places in the files of a configuration that mean something else now.
func Upgrade(ctx context.Context, cfg *config.Config, log *slog.Logger) ([]UpgradeLine, error) {
	p, _, err := policyfiles.Read(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	engine, err := policy.Load(ctx, p.Files, p.Options)
	if err != nil {
		return nil, err
	}
	lines := append(upgradedRules(cfg, engine), upgradedPacks(cfg)...)
	return append(lines, upgradedKeys(cfg)...), nil
}

// upgradedRules are the rules that ask: a question narrows what is allowed, and allows
// nothing any more.
func upgradedRules(cfg *config.Config, engine *policy.Engine) (lines []UpgradeLine) {
	idle := policy.IdleAsks(engine)
	for _, p := range idle {
		one := UpgradeLine{File: p.File, Line: p.Line, Changed: p.Message}
		if p.File == "" {
			one.File, one.Line = cfg.File, config.Line(cfg.File, "policy.packs")
		}
		lines = append(lines, one)
	}
	for _, p := range policy.Asks(engine) {
		if !slices.ContainsFunc(idle, func(q policy.Problem) bool { return q.File == p.File && q.Line == p.Line }) {
			lines = append(lines, UpgradeLine{
				File: p.File, Line: p.Line, Changed: "this rule asks about what something allows, and no longer lets a person allow what nothing does",
				Write: "wasmgate grant PATTERN --to NAME, for tools that it is about and nobody was granted",
			})
		}
	}
	return lines
}

// upgradedPacks are what packs mean now.
func upgradedPacks(cfg *config.Config) (lines []UpgradeLine) {
	at := config.Line(cfg.File, "policy.packs")
	say := func(changed, write string) {
		lines = append(lines, UpgradeLine{cfg.File, at, changed, write})
	}
	has := func(pack string) bool { return slices.Contains(cfg.Policy.Packs, pack) }
	if has("approve") && has("grants") {
		say("pack approve asks about calls that something allows; tools that nobody was granted are hidden, where a person could approve them before", `- {to: ["*"], tools: ["*"]} in the grants file`)
	}
	if !has("grants") {
		say("tools that carry out others (catalog__*, jobs__*) are decided like any call, and without the pack grants nothing allows them", `allow contains "it reaches nothing by itself" if input.tool.relay`)
	}
	if has("flow") || has("flow-ask") {
		say("an amount in one currency is another than in the next, a line break is no space, and addresses in content are found in more spellings: calls after untrusted content can be refused that passed", "")
	}
	return lines
}

// upgradedKeys are what keys of the configuration mean now, and what the lack of one does.
func upgradedKeys(cfg *config.Config) (lines []UpgradeLine) {
	say := func(key, changed, write string) {
		lines = append(lines, UpgradeLine{cfg.File, config.Line(cfg.File, key), changed, write})
	}
	if cfg.File == "" {
		return nil // there is nothing that could mean something else
	}
	for _, s := range cfg.Servers {
		if s.Enabled && strings.Contains(s.Fault, "environment variable") {
			say("servers."+s.ID, s.Fault+": it faults this server alone, where nothing started before", "")
		}
		if s.OwnByDefault() {
			say("servers."+s.ID, "each client has a process of its own of server "+s.ID+"; clients that could be asked nothing shared one", "sessions: shared")
		}
		if s.Enabled && s.Input == "" && len(s.Inputs) == 0 {
			say("servers."+s.ID, "arguments of server "+s.ID+" are coerced to its schemas before the policy decides, where they were refused", "input: enforce")
		}
		if s.Enabled && s.Command != "" && s.Sanitize == "" && cfg.Sanitize.Profile == "text" && len(cfg.Sanitize.Tools) == 0 {
			say("servers."+s.ID, "the profile text exempts nothing that looks like source: markup in files that server "+s.ID+" reads is made inert", `sanitize: {tools: {"`+s.ID+`__*": code}}, for tools that read source`)
		}
	}
	if config.Line(cfg.File, "policy.timeout") > 0 {
		say("policy.timeout", "the timeout of a decision counts steps of evaluation, a microsecond each, and ten times that on the clock", "")
	}
	if config.Line(cfg.File, "sanitize.secrets.report") == 0 {
		say("sanitize.secrets.report", "the rule generic-api-key reports in arguments and results, and redacts in the log alone", "sanitize: {secrets: {report: []}}")
	}
	if config.Line(cfg.File, "audit.hold") == 0 {
		say("audit.hold", "the audit log keeps records for 7 days, for which it takes up to four times max_size x keep", "audit: {hold: 0s}, for keep alone")
	}
	return lines
}
