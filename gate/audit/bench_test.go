package audit_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/step"
)

// BenchmarkRecord measures a record of a usual call: 1 KB of arguments and
// result, all steps timed. The promise is 10 us. The digests of the documents
// are kept by them, and have BenchmarkDigest of their own.
func BenchmarkRecord(b *testing.B) {
	for _, mode := range []string{"digest", "full"} {
		b.Run(mode, func(b *testing.B) {
			l, r := benched(b, mode)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Record(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(mode+"/parallel", func(b *testing.B) {
			l, r := benched(b, mode)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := l.Record(b.Context(), r); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func benched(b *testing.B, mode string) (*audit.Log, *gate.Record) {
	b.Helper()
	o := options
	o.Record = mode
	l := mustOpen(b, filepath.Join(b.TempDir(), "audit.jsonl"), o)
	r := done(gate.NewID())
	r.Call.ClientName, r.Call.ClientVersion = "inspector", "0.15.0"
	r.Call.Args = gate.MustDoc(`{"path":"/srv/docs/a.txt","text":"` + strings.Repeat("a word ", 70) + `"}`)
	r.Result = gate.MustDoc(`{"content":[{"type":"text","text":"` + strings.Repeat("a word ", 70) + `"}]}`)
	r.Tool.Digest, r.Decision.Revision, r.Snapshot = r.Call.Args.Digest(), r.Result.Digest(), r.Result.Digest()
	r.Decision.Reasons = []string{"granted to local by grants.yaml"}
	for _, s := range []step.Step{
		step.Parse, step.Lookup, step.Authorize, step.ValidateInput, step.Limit, step.Authorize,
		step.Record, step.Invoke, step.ValidateOutput, step.Sanitize,
	} {
		r.Steps = append(r.Steps, step.Time{Step: s, Took: 12345})
	}
	return l, r
}

// BenchmarkDigest measures the part of a record that depends on the size of its
// documents.
func BenchmarkDigest(b *testing.B) {
	text := `{"content":[{"type":"text","text":"` + strings.Repeat("a word ", 140) + `"}]}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		gate.MustDoc(text).Digest()
	}
}

// BenchmarkVerify measures how fast a log is verified.
func BenchmarkVerify(b *testing.B) {
	text := strings.Join(logged(b, 1000), "")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := audit.Verify(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
