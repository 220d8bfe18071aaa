package main

import (
	"net/url"
	"path/filepath"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/app"
	"github.com/wasmgate/wasmgate/internal/scan"
)

// The part of SARIF 2.1.0 (OASIS Standard, 27 March 2020) that a scan needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Short   sarifMessage `json:"shortDescription"`
		Default struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine int `json:"startLine"`
		} `json:"region"`
	}
	sarifLogical struct {
		Name          string `json:"name"`
		QualifiedName string `json:"fullyQualifiedName"`
		Kind          string `json:"kind"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
)

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// levels are those of SARIF, section 3.27.10.
var levels = map[scan.Severity]string{scan.High: "error", scan.Medium: "warning", scan.Low: "note"}

func (c *cli) printSARIF(s *app.Scan) error { return c.printJSON(sarif(s)) }

// sarif is the report of a scan.
func sarif(s *app.Scan) sarifLog {
	run := sarifRun{Results: []sarifResult{}, Invocations: []sarifInvocation{{Successful: len(s.Faults) == 0}}}
	run.Tool.Driver = sarifDriver{Name: "wasmgate", Version: gateway.Version()}
	index := make(map[string]int)
	for i, r := range scan.Rules() {
		rule := sarifRule{ID: r.ID, Short: sarifMessage{r.Help}}
		rule.Default.Level = levels[r.Severity]
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		index[r.ID] = i
	}
	for _, f := range s.Faults {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{"error", sarifMessage{f}})
	}
	for _, f := range s.Findings {
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: levels[f.Severity],
			Message: sarifMessage{f.Help + " Found: " + f.Excerpt}, Locations: []sarifLocation{placeOf(f)},
		})
	}
	return sarifLog{sarifSchema, "2.1.0", []sarifRun{run}}
}

// placeOf names the tool and the place in its definition, and the file if there is
// one.
func placeOf(f app.Scanned) sarifLocation {
	place := sarifLocation{Logical: []sarifLogical{{scan.Visible(toolOf(f)), scan.Visible(toolOf(f) + f.At), "member"}}}
	if f.File != "" && f.File != "-" {
		place.Physical = new(sarifPhysical)
		place.Physical.Artifact.URI = (&url.URL{Path: filepath.ToSlash(f.File)}).String()
		place.Physical.Region.StartLine = max(1, f.Line)
	}
	return place
}
