package approval

import (
	"strings"
	"time"

	"github.com/wasmgate/wasmgate/gate"
)

// quickest is how long a person takes at least to close a question.
const quickest = 500 * time.Millisecond

// closers are clients that close questions by themselves in some of their modes, and how. A person
// at such a client who closes a question in this way is taken for the client: the question stays
// open to the other channels, which refuses nothing that the person allowed.
var closers = []struct {
	client, versions string // its name for itself, and the beginning of its versions
	verdict          gate.Verdict
}{
	{"codex-mcp-client", "0.", gate.Denied}, // Codex: codex exec, and the TUI without approvals
	{"claude-code", "2.", gate.Dismissed},   // Claude Code: claude -p
}

// closed returns the word for an answer that is the client's own and no person's; "" for others.
func closed(a gate.Answer, took time.Duration, by *gate.Call) string {
	if !a.Unfilled {
		return ""
	}
	itself := took < quickest
	for _, c := range closers {
		itself = itself || c.client == by.ClientName && strings.HasPrefix(by.ClientVersion, c.versions) && c.verdict == a.Verdict
	}
	if !itself {
		return ""
	}
	return map[gate.Verdict]string{gate.Approved: "accepted", gate.Denied: "declined", gate.Dismissed: "dismissed"}[a.Verdict]
}
