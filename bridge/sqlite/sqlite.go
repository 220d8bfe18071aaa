package sqlite

import (
	"context"

	"github.com/wasmgate/wasmgate/bridge/gateway"
	"github.com/wasmgate/wasmgate/internal/store"
)

// File keeps jobs in a file, which is made if there is none; its folder must exist. It is for
// [gateway.Jobs.Open], whose error says what is to be done about a file that cannot be used.
func File(path string) func(context.Context) (gateway.JobStore, error) {
	return func(ctx context.Context) (gateway.JobStore, error) {
		db, err := store.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		return db, nil
	}
}
