// Package utils stands in the place of the package with which gitleaks checks its
// rules against samples, and prints the samples instead: see samples_test.go.
package utils

import (
	"encoding/json"
	"os"

	"github.com/zricethezav/gitleaks/v8/config"
)

type samples struct {
	Rule, Path          string
	Positive, Negatives []string
}

func show(s samples) {
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		panic(err)
	}
}

// Validate prints the samples of a rule.
func Validate(r config.Rule, positive, negative []string) *config.Rule {
	show(samples{r.RuleID, "", positive, negative})
	return &r
}

// ValidateWithPaths prints the samples of a rule that looks at paths.
func ValidateWithPaths(r config.Rule, positive, negative map[string]string) *config.Rule {
	for path, text := range positive {
		show(samples{r.RuleID, path, []string{text}, nil})
	}
	for path, text := range negative {
		show(samples{r.RuleID, path, nil, []string{text}})
	}
	return &r
}
