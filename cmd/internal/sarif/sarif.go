package sarif

import (
	"net/url"
	"path/filepath"

	"github.com/wasmgate/wasmgate/internal/product"
	"github.com/wasmgate/wasmgate/internal/scan"
	"github.com/wasmgate/wasmgate/internal/scan/report"
)

// The part of SARIF 2.1.0 (OASIS Standard, 27 March 2020) that a scan needs.
type (
	log struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []run  `json:"runs"`
	}
	run struct {
		Tool        toolOf       `json:"tool"`
		Invocations []invocation `json:"invocations"`
		Results     []result     `json:"results"`
	}
	toolOf struct {
		Driver driver `json:"driver"`
	}
	driver struct {
		Name    string   `json:"name"`
		Version string   `json:"version"`
		Rules   []ruleOf `json:"rules"`
	}
	ruleOf struct {
		ID      string  `json:"id"`
		Short   message `json:"shortDescription"`
		Default struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	invocation struct {
		Successful    bool           `json:"executionSuccessful"`
		Notifications []notification `json:"toolExecutionNotifications,omitempty"`
	}
	notification struct {
		Level   string  `json:"level"`
		Message message `json:"message"`
	}
	result struct {
		RuleID    string     `json:"ruleId"`
		RuleIndex int        `json:"ruleIndex"`
		Level     string     `json:"level"`
		Message   message    `json:"message"`
		Locations []location `json:"locations"`
	}
	location struct {
		Physical *physical `json:"physicalLocation,omitempty"`
		Logical  []logical `json:"logicalLocations"`
	}
	physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine int `json:"startLine"`
		} `json:"region"`
	}
	logical struct {
		Name          string `json:"name"`
		QualifiedName string `json:"fullyQualifiedName"`
		Kind          string `json:"kind"`
	}
	message struct {
		Text string `json:"text"`
	}
)

const schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// levels are those of SARIF, section 3.27.10.
var levels = map[scan.Severity]string{scan.High: "error", scan.Medium: "warning", scan.Low: "note"}

// Of is the report of a scan, to be written as JSON. Tool names the tool of a finding.
func Of(s *report.Report, tool func(report.Finding) string) any {
	one := run{Results: []result{}, Invocations: []invocation{{Successful: len(s.Faults) == 0}}}
	one.Tool.Driver = driver{Name: "wasmgate", Version: product.Version()}
	index := make(map[string]int)
	for i, r := range scan.Rules() {
		rule := ruleOf{ID: r.ID, Short: message{r.Help}}
		rule.Default.Level = levels[r.Severity]
		one.Tool.Driver.Rules = append(one.Tool.Driver.Rules, rule)
		index[r.ID] = i
	}
	for _, f := range s.Faults {
		one.Invocations[0].Notifications = append(one.Invocations[0].Notifications, notification{"error", message{f}})
	}
	for _, f := range s.Findings {
		one.Results = append(one.Results, result{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: levels[f.Severity],
			Message: message{f.Help + " Found: " + f.Excerpt}, Locations: []location{placeOf(f, tool(f))},
		})
	}
	return log{schema, "2.1.0", []run{one}}
}

// placeOf names the tool and the place in its definition, and the file if there is
// one.
func placeOf(f report.Finding, tool string) location {
	place := location{Logical: []logical{{scan.Visible(tool), scan.Visible(tool + f.At), "member"}}}
	if f.File != "" && f.File != "-" {
		place.Physical = new(physical)
		place.Physical.Artifact.URI = (&url.URL{Path: filepath.ToSlash(f.File)}).String()
		place.Physical.Region.StartLine = max(1, f.Line)
	}
	return place
}
