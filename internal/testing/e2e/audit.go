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

// A Logged is a line of the audit log, as far as these tests look at it.
type Logged struct {
	Log, Event, ID, Session, Principal, Server, Tool, Effect, Code, Error string
	Seq                                                                   int
	Reasons                                                               []string
	Parent, Action, Remedy                                                string
	Fuel                                                                  uint64
	MemoryPeak                                                            int64  `json:"memory_peak"`
	HostCalls                                                             int    `json:"host_calls"`
	ArgsSHA256                                                            string `json:"args_sha256"`
	Findings                                                              []LoggedFinding
	Raw                                                                   string `json:"-"`
}

// A LoggedFinding is a finding of the sanitizer in a record.
type LoggedFinding struct {
	Rule, At string
	Removed  bool
}

// Log reads the audit log. A line that is only half written is left out.
func (pl *Place) Log() []Logged {
	pl.T.Helper()
	f, err := os.Open(pl.File("state/audit.jsonl"))
	if err != nil {
		pl.T.Fatal(err)
	}
	defer f.Close()
	var all []Logged
	for s := bufio.NewReader(f); ; {
		line, err := s.ReadString('\n')
		if err != nil {
			return all
		}
		e := Logged{Raw: strings.TrimSpace(line)}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			pl.T.Fatalf("audit log: %v\n%s", err, line)
		}
		all = append(all, e)
	}
}

// LastDone returns the last record of a call of a tool.
func (pl *Place) LastDone(tool string) Logged {
	pl.T.Helper()
	var last Logged
	for _, e := range pl.Log() {
		if e.Event == "done" && e.Tool == tool {
			last = e
		}
	}
	if last.ID == "" {
		pl.T.Fatalf("no record of a call of %s", tool)
	}
	return last
}

// Verify checks the chain, with the program.
func (pl *Place) Verify() {
	pl.T.Helper()
	if out := pl.Must("audit", "verify", pl.File("state/audit.jsonl")); !strings.Contains(out, "chain holds") {
		pl.T.Errorf("audit verify: %s", out)
	}
}

// Digest returns what the audit log calls args_sha256, of arguments that are in
// their canonical form (RFC 8785).
func Digest(args string) string {
	sum := sha256.Sum256([]byte(args))
	return hex.EncodeToString(sum[:])
}

// Processes returns the command lines of the processes whose arguments hold the
// mark, by id. Only Linux shows them to everybody.
func Processes(t *testing.T, mark string) map[int]string {
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

// WaitGone waits until no process is left whose arguments hold the mark.
func WaitGone(t *testing.T, mark string) {
	t.Helper()
	timelimit.Wait(t, "no process with "+mark+" is left", func() bool { return len(Processes(t, mark)) == 0 })
}
