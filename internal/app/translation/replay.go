package translation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/bridge/recording"
	"github.com/wasmgate/wasmgate/gate"
	"github.com/wasmgate/wasmgate/internal/config"
	"github.com/wasmgate/wasmgate/internal/lock"
	"github.com/wasmgate/wasmgate/internal/match"
)

// Replaying returns the configuration of a gateway that answers from the recording in
// a file. It is another gateway than the one of c: what it records is no evidence of
// calls, and what its sessions read was read before, so that its log and its state are
// its own, in folders below. A file that is not there is [os.ErrNotExist].
func Replaying(c *config.Config, file string) (*config.Config, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	sum := sha256.Sum256([]byte(file))
	own := filepath.Join("replays", hex.EncodeToString(sum[:6])) // short: the path of a socket is bounded
	r := *c
	r.Replay = config.Replay{File: file, State: c.State}
	r.State = filepath.Join(c.State, own)
	r.Audit.Path = filepath.Join(filepath.Dir(c.Audit.Path), own, filepath.Base(c.Audit.Path))
	return &r, nil
}

// Kept is the folder of what a gateway that replays has in common with the one whose
// calls it answers: compiled code, modules, and what servers have declared.
func Kept(c *config.Config) string { return cmp.Or(c.Replay.State, c.State) }

// Replay has the gateway answer from the recording, if there is one.
func Replay(ctx context.Context, c *config.Config, gc *gateway.Config) error {
	if c.Replay.File == "" {
		return nil
	}
	calls, err := recording.Read(ctx, c.Replay.File)
	if err != nil {
		return err
	}
	pins := filepath.Join(Kept(c), "pins")
	gc.Replay = &recording.Replay{
		Calls: calls, Servers: make(map[string]recording.Mode),
		Definition: func(digest string) gate.Doc { return lock.Definition(pins, digest) },
	}
	modes := make(map[string]func(tool string) recording.Mode)
	for _, s := range c.Servers {
		modes[s.ID], gc.Replay.Servers[s.ID] = replayModes(s)
	}
	gc.Replay.Stub = func(server, tool string) bool {
		of := modes[server]
		return of != nil && of(tool) != recording.Live && of(tool) != recording.Pure
	}
	return nil
}

// replayModes returns what is done with each tool of a server, and with the server: it is started if
// any of its tools is called.
func replayModes(s config.Server) (of func(tool string) recording.Mode, server recording.Mode) {
	server = recording.Mode(s.Replay)
	for _, m := range s.Replays {
		if m := recording.Mode(m.Mode); m != recording.MustStub {
			server = m
		}
	}
	return func(tool string) recording.Mode {
		for _, m := range s.Replays {
			if match.Pattern(m.Pattern).Matches(tool) {
				return recording.Mode(m.Mode)
			}
		}
		return recording.Mode(s.Replay)
	}, server
}
