package policy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/provenance"
	"github.com/wasmgate/wasmgate/gate/session"
)

// quiet is an upstream that always says the same, some of it what it was told.
type quiet struct{ *model }

func (q quiet) Invoke(context.Context, gate.Permit) (gate.Result, error) {
	return gate.Result{Doc: gate.MustDoc(`{"content":[{"type":"text","text":"sent to bob@corp.example, number 42"}]}`)}, nil
}

// BenchmarkLongSession measures a call whose values the pack flow looks for, in a session that
// has met few and many values before, with and without where it has met them.
func BenchmarkLongSession(b *testing.B) {
	for _, values := range []int{10, 10_000} {
		for _, origins := range []bool{false, true} {
			b.Run(fmt.Sprintf("values=%d/origins=%t", values, origins), func(b *testing.B) {
				m := newModel(b, allGuards)
				kept := session.New(session.Options{})
				for at := 0; at < values/2; at += 500 { // two values each: the line, and the address in it
					var text []string
					for i := at; i < min(values/2, at+500); i++ {
						text = append(text, fmt.Sprintf("person%d@corp.example", i))
					}
					lesson := gate.Lesson{From: wrote(rand.New(rand.NewPCG(1, 1)), text...), Source: provenance.FromUntrusted}
					if err := kept.Learn(b.Context(), modelSession, lesson); err != nil {
						b.Fatal(err)
					}
				}
				g, err := gate.New(gate.Parts{
					Upstream: quiet{m}, Authorizer: m.engine, Labeler: m.engine, Sessions: kept, Sanitizer: m, Recorder: m, TrackValues: true, TrackOrigins: origins,
				})
				if err != nil {
					b.Fatal(err)
				}
				who := &gate.Principal{Owner: alice.Owner, Auth: alice.Auth, Identities: provenance.Identities{known}}
				args := gate.MustDoc(`{"to":"bob@corp.example","body":"` + strings.Repeat("the minutes of the meeting, as you asked. ", 10) + `"}`)
				b.ReportAllocs()
				began := cpuTime()
				for b.Loop() {
					c := gate.Call{ID: gate.NewID(), Action: gate.CallTool, Name: "do__send", Who: who, Session: modelSession, Prompt: modelPrompt, Args: args}
					if _, err := g.Do(b.Context(), c); err != nil {
						b.Fatal(err)
					}
				}
				if s, err := kept.View(b.Context(), modelSession); err != nil || s.Top || s.Values.Len() < values {
					b.Fatalf("the session has met %d values, more than are kept: %t, %v", s.Values.Len(), s.Top, err)
				}
				b.ReportMetric(float64((cpuTime()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}
