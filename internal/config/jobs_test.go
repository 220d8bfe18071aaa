package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config"
)

func TestJobs(t *testing.T) {
	usual := config.Jobs{Tasks: true, Keep: 24 * time.Hour, Max: 10_000, MaxSize: 256 << 20}
	offered := usual
	offered.Offer = true
	tests := map[string]struct {
		file string
		want config.Jobs
		err  string
	}{
		"nothing said":        {"", usual, ""},
		"offered":             {"jobs: {offer: true}\n", offered, ""},
		"all of it":           {"jobs: {offer: true, tasks: false, keep: 90m, max: 5, max_size: 2MiB}\n", config.Jobs{Offer: true, Keep: 90 * time.Minute, Max: 5, MaxSize: 2 << 20}, ""},
		"kept for no time":    {"jobs: {keep: 0s}\n", config.Jobs{}, `wasmgate.yaml:1: jobs.keep: "0s" is not from 1m to 8760h`},
		"none kept":           {"jobs: {max: 0}\n", config.Jobs{}, `wasmgate.yaml:1: jobs.max: "0" is not a whole number from 1 to 1000000`},
		"too little room":     {"jobs: {max_size: 1KiB}\n", config.Jobs{}, `wasmgate.yaml:1: jobs.max_size: "1KiB" is not from 1MiB to 1024GiB`},
		"a key that is none":  {"jobs: {ttl: 1h}\n", config.Jobs{}, `wasmgate.yaml:1: jobs.ttl: unknown key; known are keep, max, max_size, offer, tasks`},
		"a word for a switch": {"jobs: {offer: maybe}\n", config.Jobs{}, `wasmgate.yaml:1: jobs.offer: must be true or false, not text`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("wasmgate.yaml", []byte(tt.file), options(t.TempDir()))
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, c.Jobs); diff != "" {
				t.Error(diff)
			}
		})
	}
}
