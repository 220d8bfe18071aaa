package approval_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/gate/approval"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Approvals(t, func(*testing.T) []approval.Store {
		s := approval.NewMemory()
		return []approval.Store{s, s, s}
	})
}
