package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmgate/wasmgate/bridge/internal/upstream/wire"
)

const (
	// pingTime is how long a server may take to answer a ping, and maxSilent how many in
	// a row it may leave unanswered.
	pingTime  = 10 * time.Second
	maxSilent = 2
)

// Pings asks a server that has said nothing for so long, and is asked nothing, whether
// it still lives (MCP 2025-11-25, basic/utilities/ping), and ends the connection to one
// that does not answer. One that works on a call is not asked: it may have but one
// thread.
func (l sessions) Pings(ctx context.Context, silent time.Duration) {
	tick := time.NewTicker(silent)
	defer tick.Stop()
	heard := l.Peer.Heard.Load()
	for {
		select {
		case <-tick.C:
		case <-l.ended:
			return
		}
		before := heard
		if heard = l.Peer.Heard.Load(); heard != before || l.Peer.Busy() {
			continue
		}
		if err := l.answersPing(ctx); err != nil {
			l.Peer.Fail(err)
			return
		}
	}
}

// answersPing pings until the server answers, or has not too often. Any answer will do.
func (l sessions) answersPing(ctx context.Context) error {
	for range maxSilent {
		timed, cancel := context.WithTimeout(ctx, pingTime)
		_, err := l.Peer.Call(timed, "ping", []byte("{}"))
		cancel()
		if _, spoke := errors.AsType[*wire.RPCError](err); err == nil || spoke {
			return nil
		}
	}
	return fmt.Errorf("%d pings in a row without an answer: %w", maxSilent, context.DeadlineExceeded)
}
