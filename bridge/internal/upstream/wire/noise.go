package wire

import (
	"bytes"
	"fmt"
	"log/slog"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/mcp"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/gate/doc"
)

const (
	// maxNoise bounds the noise of one minute, in bytes, and maxNoiseLines in lines: more costs the
	// gateway too much to read.
	maxNoise      = 16 << 20
	maxNoiseLines = 10_000
	// maxNoiseLogged bounds the lines of it that are logged in a minute.
	maxNoiseLogged = 20
)

// Noise is what a stdio server writes on its standard output that is no message: banners and
// logs. MCP allows none (2025-11-25, basic/transports, stdio), but clients skip it, and so does
// the gateway. The zero value with a log is ready; one goroutine uses it.
type noise struct {
	log    *slog.Logger
	minute time.Time // when the minute began
	lines  int       // in this minute
	bytes  int       // in this minute
	heard  bool      // since the last message
}

// isNoise reports whether a line is noise: it is no JSON object, or an object that neither says
// nor seems to be JSON-RPC.
func isNoise(line []byte) bool {
	if line[0] != '{' {
		return true
	}
	msg, err := gate.ParseDoc(line)
	if err != nil {
		return !bytes.Contains(line, []byte(`"jsonrpc"`))
	}
	answer := msg.Get("id").Kind() == doc.Number && !msg.Get("result").IsZero()
	return msg.Get("jsonrpc").IsZero() && !answer
}

// add takes a line of noise that came at a time.
func (n *noise) add(line []byte, now time.Time) error {
	if now.Sub(n.minute) >= time.Minute {
		if left := n.lines - maxNoiseLogged; left > 0 {
			n.log.Warn("lines on standard output that are not messages were left out of the log", "lines", left)
		}
		n.minute, n.lines, n.bytes = now, 0, 0
	}
	n.heard = true
	n.lines++
	if n.bytes += len(line); n.bytes > maxNoise || n.lines > maxNoiseLines {
		return &mcp.ProtocolError{Err: fmt.Errorf("more than %d lines or %d MiB on standard output within a minute that are not messages", maxNoiseLines, maxNoise>>20)}
	}
	if n.lines <= maxNoiseLogged {
		n.log.Warn("a line on standard output is not a message", "line", mcp.Quote(line))
	}
	return nil
}
