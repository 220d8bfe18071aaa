//go:build linux

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/audit"
	"github.com/wasmgate/wasmgate/gate/codes"
)

// before are the codes of calls that never left; those of a call that left say so.
var before = []string{"refused_parse", "refused_lookup", "refused_authorize", "refused_validate_input", "refused_limit", "refused_busy", "refused_approve", "refused_pin", "refused_store", "refused_record", "not_connected", "spawn_failed"}

// A logged is what the log has of the calls with one document of arguments, which has a tag of
// its own.
type logged struct {
	granted, done int
	codes         []string
	at            time.Time
}

// join holds against each other what the servers saw, what the clients were told and what the log
// has, and returns what is wrong.
func (s *soak) join() (wrong []string) {
	say := func(format string, args ...any) {
		if len(wrong) < 50 {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	for _, what := range s.failed {
		say("an event failed: %s", what)
	}
	path := filepath.Join(s.disk(), "audit.jsonl")
	files, err := audit.Files(path)
	if err != nil {
		return append(wrong, err.Error())
	}
	report, err := audit.VerifyFiles(files, audit.Head{})
	if err != nil {
		say("the chain of the log: %v", err)
	}
	log := make(map[string]*logged)
	records := 0
	for e, err := range audit.Read(context.Background(), path, audit.Filter{}) {
		if err != nil {
			return append(wrong, err.Error())
		}
		records++
		if e.Event != gate.Granted && e.Event != gate.Done {
			continue
		}
		l := log[e.ArgsSHA256]
		if l == nil {
			l = new(logged)
			log[e.ArgsSHA256] = l
		}
		if e.Event == gate.Granted {
			l.granted++
			l.at = e.Time
		} else {
			l.done++
			l.codes = append(l.codes, e.Code)
		}
	}
	saw := make(map[string]int)
	for _, name := range servers {
		b, err := os.ReadFile(witness(s.folder, name))
		if err != nil {
			say("what server %s saw: %v", name, err)
		}
		for line := range strings.Lines(string(b)) {
			args, err := gate.ParseDoc([]byte(strings.TrimSpace(line)))
			if err != nil {
				say("server %s saw %q: %v", name, line, err)
				continue
			}
			saw[args.Digest()]++
		}
	}
	for digest, n := range saw {
		l := log[digest]
		switch {
		case l == nil || l.granted == 0:
			say("a server saw a call (%s) that the log does not grant", digest[:12])
		case n > l.granted:
			say("a server saw a call (%s) %d times that was granted %d times", digest[:12], n, l.granted)
		case l.done == 0 && !s.cut(l.at):
			say("a call (%s) was granted at %v and carried out, and its end is not in the log", digest[:12], l.at)
		}
	}
	told := make(map[string]int)
	tags := make(map[string]bool)
	var longest time.Duration
	for _, t := range s.told {
		tags[t.tag] = true
	}
	for _, t := range s.told {
		told[t.code]++
		longest = max(longest, t.took)
		digest := gate.MustDoc(t.args).Digest()
		switch l := log[digest]; {
		case t.code == "ok" && saw[digest] == 0:
			say("%s: ok, and no server saw it", t.tag)
		case t.code == "ok" && (l == nil || !slices.Contains(l.codes, codes.OK)):
			say("%s: ok, and the log has no such end", t.tag)
		case slices.Contains(before, t.code) && !t.invoked && saw[digest] > 0:
			say("%s: told %s, and its server saw it", t.tag, t.code)
		}
		if t.code == "ok" && !strings.HasPrefix(t.text, t.tag) {
			say("%s: the answer is another's: %.60q", t.tag, t.text)
		}
	}
	if longest > 45*time.Second {
		say("a call took %v", longest)
	}
	if n := s.nothing.Load(); n > 0 {
		say("a client heard %d times of a change that was none, the last time at %s", n, time.UnixMilli(s.nothingAt.Load()).Format(time.TimeOnly))
	}
	if left := s.processes(""); len(left) > 0 {
		say("%d processes of servers are left when the gateway has ended", len(left))
	}
	if third := len(s.mostRSS) / 3; third >= 3 {
		first, last := slices.Max(s.mostRSS[:third]), slices.Max(s.mostRSS[2*third:])
		if last > first+first/2+64<<10 {
			say("resident memory grows: %d MiB in the first third, %d MiB in the last", first>>10, last>>10)
		}
		first, last = slices.Max(s.mostFDs[:third]), slices.Max(s.mostFDs[2*third:])
		if last > 2*first+64 {
			say("descriptors grow: %d in the first third, %d in the last", first, last)
		}
	}
	fmt.Printf("%d calls, %d seen by servers, %d records in %d files, chain of %d holds; the longest call took %v; lists changed %d times for a client\n",
		len(s.told), len(saw), records, len(files), report.Records, longest.Round(time.Millisecond), s.heard.Load())
	for _, code := range slices.Sorted(maps.Keys(told)) {
		fmt.Printf("  %-24s %d\n", code, told[code])
	}
	if told["ok"] < len(s.told)/4 {
		say("only %d of %d calls passed: the run says nothing", told["ok"], len(s.told))
	}
	return wrong
}

// cut reports whether a call that was granted at a time may have been cut off when the gateway
// was killed: the log cannot have its end.
func (s *soak) cut(at time.Time) bool {
	for _, k := range s.killed {
		if at.Before(k.Add(time.Second)) && at.After(k.Add(-40*time.Second)) {
			return true
		}
	}
	return false
}
