package configured

import (
	"context"
	"log/slog"

	"github.com/wasmgate/wasmgate/bridge/configured"
)

// Deprecated: use [configured.Gateway].
type Gateway = configured.Gateway

// Deprecated: use [configured.ErrRuns].
var ErrRuns = configured.ErrRuns

// Open is [configured.Open].
//
// Deprecated: use that.
func Open(ctx context.Context, path string, log *slog.Logger) (*Gateway, error) {
	return configured.Open(ctx, path, log)
}
