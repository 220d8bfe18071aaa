//go:build unix

package e2e

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/timelimit"
)

// A logged is a line of the audit log, as far as these tests look at it.
type logged struct {
	Log, Event, ID, Session, Principal, Server, Tool, Effect, Code, Error string
	Seq                                                                   int
	Reasons                                                               []string
	Parent, Action, Remedy                                                string
	Fuel                                                                  uint64
	MemoryPeak                                                            int64  `json:"memory_peak"`
	HostCalls                                                             int    `json:"host_calls"`
	ArgsSHA256                                                            string `json:"args_sha256"`
	Findings                                                              []loggedFinding
	Raw                                                                   string `json:"-"`
}

type loggedFinding struct {
	Rule, At string
	Removed  bool
}

// log reads the audit log. A line that is only half written is left out.
func (pl *place) log() []logged {
	pl.t.Helper()
	f, err := os.Open(pl.file("state/audit.jsonl"))
	if err != nil {
		pl.t.Fatal(err)
	}
	defer f.Close()
	var all []logged
	for s := bufio.NewReader(f); ; {
		line, err := s.ReadString('\n')
		if err != nil {
			return all
		}
		e := logged{Raw: strings.TrimSpace(line)}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			pl.t.Fatalf("audit log: %v\n%s", err, line)
		}
		all = append(all, e)
	}
}

// lastDone returns the last record of a call of a tool.
func (pl *place) lastDone(tool string) logged {
	pl.t.Helper()
	var last logged
	for _, e := range pl.log() {
		if e.Event == "done" && e.Tool == tool {
			last = e
		}
	}
	if last.ID == "" {
		pl.t.Fatalf("no record of a call of %s", tool)
	}
	return last
}

// verify checks the chain, with the program.
func (pl *place) verify() {
	pl.t.Helper()
	if out := pl.must("audit", "verify", pl.file("state/audit.jsonl")); !strings.Contains(out, "chain holds") {
		pl.t.Errorf("audit verify: %s", out)
	}
}

// digest returns what the audit log calls args_sha256, of arguments that are in
// their canonical form (RFC 8785).
func digest(args string) string {
	sum := sha256.Sum256([]byte(args))
	return hex.EncodeToString(sum[:])
}

// processes returns the command lines of the processes whose arguments hold the
// mark, by id. Only Linux shows them to everybody.
func processes(t *testing.T, mark string) map[int]string {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("there is no /proc to count processes in")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[int]string)
	for _, f := range files {
		b, _ := os.ReadFile(f) // it may have ended
		line := strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil && strings.Contains(line, mark) {
			found[pid] = line
		}
	}
	return found
}

// none waits until no process is left whose arguments hold the mark.
func none(t *testing.T, mark string) {
	t.Helper()
	timelimit.Wait(t, "no process with "+mark+" is left", func() bool { return len(processes(t, mark)) == 0 })
}
