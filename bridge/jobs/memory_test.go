package jobs_test

import (
	"testing"

	"github.com/wasmgate/wasmgate/bridge/jobs"
	"github.com/wasmgate/wasmgate/internal/testing/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Jobs(t, func(*testing.T) jobs.Store { return new(jobs.Memory) })
}
