package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// provenance says how files were built: an in-toto statement (https://in-toto.io/Statement/v1) with SLSA
// provenance 1.0 (https://slsa.dev/spec/v1.0/provenance). It names neither the machine nor a time, so that anyone
// who builds the commit gets the same statement; SHA256SUMS, which is signed, covers it.
func (r release) provenance(names []string) ([]byte, error) {
	if r.commit == "" {
		return nil, fmt.Errorf("name the commit with -commit")
	}
	type object = map[string]any
	var subjects []object
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, object{"name": filepath.Base(name), "digest": object{"sha256": digestOf(data).Encoded()}})
	}
	text, err := json.MarshalIndent(object{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          source + "/blob/" + r.commit + "/.ci/release",
				"externalParameters": object{"version": r.version},
				"internalParameters": object{"go": runtime.Version()},
				"resolvedDependencies": []object{
					{"uri": "git+" + source + "@" + r.commit, "digest": object{"gitCommit": r.commit}},
				},
			},
			"runDetails": object{"builder": object{"id": source + "/blob/" + r.commit + "/.ci/release"}},
		},
	}, "", " ")
	return append(text, '\n'), err
}
