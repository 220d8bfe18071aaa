package policydata_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmgate/wasmgate/internal/config/policydata"
)

func TestReadRateLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ratelimit.yaml")
	write(t, path, `# who may use how much
- {to: ["*"], calls: 60, per: 1m}
- to: [alice, "role:dev"]
  tools: ["pay__*"]
  except: [pay__balance]
  key: [principal, tool]
  calls: 5
  burst: 2
  bytes: 1MiB
  per: 1h
- {to: [bob], servers: [files], bytes: 512B, per: 90s}
`)
	got, err := policydata.ReadRateLimits(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []policydata.RateLimit{
		{To: []string{"*"}, Calls: 60, Per: time.Minute},
		{
			To: []string{"alice", "role:dev"}, Tools: []string{"pay__*"}, Except: []string{"pay__balance"}, Key: []string{"principal", "tool"},
			Calls: 5, Burst: 2, Bytes: 1 << 20, Per: time.Hour,
		},
		{To: []string{"bob"}, Servers: []string{"files"}, Bytes: 512, Per: 90 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if none, err := policydata.ReadRateLimits(""); none != nil || err != nil {
		t.Errorf("no file: %v, %v", none, err)
	}
	if _, err := policydata.ReadRateLimits(path + "x"); err == nil {
		t.Error("a file that does not exist was read")
	}
}

func TestReadRateLimitsProblems(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"a mapping":              {"to: [a]\n", `:1: must be a list, not a mapping`},
		"no principal":           {"- {calls: 1, per: 1m}\n", `:1: [0].to: is missing: name whose calls are limited`},
		"nothing limited":        {"- {to: [a], per: 1m}\n", `:1: [0]: limits nothing: add calls, bytes or both`},
		"no time":                {"- {to: [a], calls: 1}\n", `:1: [0].per: is missing: give the period, such as 1m`},
		"a burst of bytes":       {"- {to: [a], bytes: 1B, burst: 1, per: 1m}\n", `:1: [0].burst: works only with calls: add calls`},
		"no calls at all":        {"- {to: [a], calls: 0, per: 1m}\n", `:1: [0].calls: "0" is not a whole number from 1`},
		"bytes without a unit":   {"- {to: [a], bytes: 100, per: 1m}\n", `:1: [0].bytes: 100 has no unit`},
		"a time without a unit":  {"- {to: [a], calls: 1, per: 60}\n", `:1: [0].per: 60 has no unit`},
		"a time too short":       {"- {to: [a], calls: 1, per: 1ms}\n", `:1: [0].per: "1ms" is not from 1s`},
		"an unknown key":         {"- {to: [a], calls: 1, per: 1m, key: [ip]}\n", `:1: [0].key[0]: "ip" is not one of principal, session, server, tool`},
		"an unknown name in key": {"- {to: [a], calls: 1, per: 1m, burts: 1}\n", `:1: [0].burts: unknown key`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ratelimit.yaml")
			write(t, path, tt.file)
			_, err := policydata.ReadRateLimits(path)
			if err == nil || !strings.Contains(err.Error(), "ratelimit.yaml"+tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
