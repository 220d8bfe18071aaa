package app_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/wasmgate/wasmgate/internal/auth/authtest"
	"github.com/wasmgate/wasmgate/internal/testing/unraced"
)

// TestKnownCallersUnderFlood: while strangers send one bad token after the other, known callers are
// served, no one else is let in, and no keys are fetched. The test logs how long a known caller waits.
// WASMGATE_FLOOD sets how many tokens come in a second; if it is set, the test runs for longer.
func TestKnownCallersUnderFlood(t *testing.T) {
	unraced.Long(t)
	s, p := newTeam(t)
	calls, rate := 100, 300
	if flood := os.Getenv("WASMGATE_FLOOD"); flood != "" {
		calls, rate = 2000, authtest.HowMany(t, flood, rate)
	}
	good := s.token(p, nil)
	known := &http.Client{Transport: &http.Transport{}}
	defer known.CloseIdleConnections()
	waits := func() (all []time.Duration) {
		for range calls {
			begin := time.Now()
			status, _, doc := s.send(known, s.url, "tools/call", `"name":"files__read","arguments":{}`, "Authorization", good)
			if status != http.StatusOK || doc.At("/result/isError").True() {
				t.Fatalf("the known caller: %d %s", status, doc)
			}
			all = append(all, time.Since(begin))
		}
		return all
	}
	signed := authtest.SignWith(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.EC, KeyID: "ec"}}, p.Claims(map[string]any{"aud": s.url}), nil)
	head, rest, _ := strings.Cut(signed, ".")
	claims, _, _ := strings.Cut(rest, ".")
	floods := map[string]func() string{
		"bad signatures": func() string {
			signature := make([]byte, 64)
			rand.Read(signature)
			return head + "." + claims + "." + base64.RawURLEncoding.EncodeToString(signature)
		},
		"unknown keys": func() string {
			return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"ES256","kid":%q}`, rand.Text())) + "." + rest
		},
		"no tokens": rand.Text,
	}
	quiet, flooded := waits()[:0], map[string][]time.Duration{} // the first are for warming up
	begin := time.Now()
	for range 3 {
		quiet = append(quiet, waits()...)
		for name, next := range floods {
			end := s.flood(rate, next)
			flooded[name] = append(flooded[name], waits()...)
			end()
		}
	}
	fetches(t, p, begin)
	p99 := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)*99/100]
	}
	usual := p99(quiet)
	for name, all := range flooded {
		t.Logf("p99 of a known caller with %d %s a second: %v, without %v", rate, name, p99(all), usual)
	}
}

// flood sends bad tokens at a rate, until end is called.
func (s *site) flood(rate int, next func() string) (end func()) {
	s.t.Helper()
	stop := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		c := &http.Client{Transport: &http.Transport{}}
		defer c.CloseIdleConnections()
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		n := 0
		for ; ; n++ {
			select {
			case <-tick.C:
			case <-stop:
				s.t.Logf("%d came", n)
				return
			}
			if status, _, _ := s.send(c, s.url, "tools/list", "", "Authorization", "Bearer "+next()); status != http.StatusUnauthorized && status != http.StatusServiceUnavailable {
				s.t.Errorf("a bad token: %d", status)
				return
			}
		}
	})
	return func() { close(stop); sender.Wait() }
}
