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

// Pings asks a server that has said nothing for so long whether it still lives (MCP 2025-11-25,
// basic/utilities/ping), and ends the connection to one that does not answer. While it works on
// a call that counts only if it has answered during an earlier one: others have one thread.
func (l sessions) Pings(ctx context.Context, silent time.Duration) {
	tick := time.NewTicker(silent)
	defer tick.Stop()
	heard := l.Peer.Heard.Load()
	answered, earlier := false, false // it has answered during a call, and during one that is over
	for {
		select {
		case <-tick.C:
		case <-l.ended:
			return
		}
		before, works := heard, l.Peer.Busy()
		earlier = earlier || answered && !works
		if heard = l.Peer.Heard.Load(); heard != before {
			continue
		}
		switch err := l.answersPing(ctx); {
		case err == nil:
			answered = answered || works && l.Peer.Busy()
		case works && !earlier: // it is asked again with the next tick
		default:
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
